package git

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"

	"gitrollout.dev/gitrollout/git/sign"
)

// Signer signs with the key in a file. It reads the file for each commit, and parses it again if it changed.
type Signer struct {
	File       string
	Passphrase string // passphrase of the key, "" for none

	mu   sync.Mutex
	data []byte
	key  *sign.Key
}

// Read returns the key, or an error that says why the key cannot be used.
func (s *Signer) Read() (*sign.Key, error) {
	data, err := os.ReadFile(s.File)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil && bytes.Equal(data, s.data) {
		return s.key, nil
	}
	key, err := sign.ParseKey(data, []byte(s.Passphrase))
	if errors.Is(err, sign.ErrPassphrase) {
		return nil, fmt.Errorf("signing key %s: %w: set GITROLLOUT_SIGNING_PASSPHRASE", s.File, err)
	}
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", s.File, err)
	}
	s.data, s.key = data, key
	return key, nil
}

// Sign implements Options.Sign.
func (s *Signer) Sign(commit []byte) ([]byte, error) {
	key, err := s.Read()
	if err != nil {
		return nil, err
	}
	signature, err := key.Sign(rand.Reader, commit)
	if err != nil {
		return nil, err
	}
	return sign.Insert(commit, signature)
}
