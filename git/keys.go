package git

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/git/wire"
)

// KeyFiles has the paths of files with accepted keys. All are allowed_signers files, except Keyring. If a kind of
// commit has no path, such commits are not verified.
type KeyFiles struct {
	Commits   string // accepted signers of commits on the users' branch
	Keyring   string // OpenPGP keys for the same commits; a key in either file suffices
	Promoters string // accepted signers of the commit or merge that added a promotion file
	State     string // accepted signers of the state branch's newest commit
	Fleet     string // accepted signers of other clusters' state branches; the principal is the cluster's name
}

// Keys holds the accepted keys. Each Fetch reads the files again. Keys is safe for concurrent use.
type Keys struct {
	files KeyFiles

	accepted wire.Parsed[Accepted]
}

// Accepted has the keys of KeyFiles.
type Accepted struct{ Commits, Promoters, State, Fleet sign.Policy }

// OpenKeys reads the files, so that an error prevents gitrollout's start. Without paths, it returns nil.
func OpenKeys(files KeyFiles) (*Keys, error) {
	if files == (KeyFiles{}) {
		return nil, nil
	}
	k := &Keys{files: files}
	return k, k.Read()
}

// Read parses all files if one has changed. After an error, the previous keys stay in use.
func (k *Keys) Read() error {
	files := []wire.File{
		{Purpose: "--verify-commits", Name: k.files.Commits}, {Purpose: "--verify-keyring", Name: k.files.Keyring},
		{Purpose: "--promoters", Name: k.files.Promoters}, {Purpose: "--verify-state", Name: k.files.State},
		{Purpose: "--verify-fleet", Name: k.files.Fleet},
	}
	_, err := k.accepted.Read(files, func(data [][]byte, _ Accepted) (a Accepted, err error) {
		parse := func(into **sign.Signers, i int) {
			if err == nil && files[i].Name != "" {
				*into, err = sign.ParseSigners("the file of "+files[i].Purpose, data[i])
			}
		}
		parse(&a.Commits.SSH, 0)
		if err == nil && k.files.Keyring != "" {
			a.Commits.OpenPGP, err = sign.ParseKeyring("the file of --verify-keyring", data[1])
		}
		parse(&a.Promoters.SSH, 2)
		parse(&a.State.SSH, 3)
		parse(&a.Fleet.SSH, 4)
		return a, err
	})
	return err
}

// Version returns a text that changes when the accepted keys change.
func (k *Keys) Version() string {
	_, reads := k.accepted.Last()
	return strconv.Itoa(reads)
}

// Files returns the key files' paths, or the zero value if k is nil.
func (k *Keys) Files() KeyFiles {
	if k == nil {
		return KeyFiles{}
	}
	return k.files
}

// Accepted returns the keys in force.
func (k *Keys) Accepted() Accepted {
	a, _ := k.accepted.Last()
	return a
}

// Signer signs with the key in a file. It reads the file for each commit, but parses only a changed file.
type Signer struct {
	File       string
	Passphrase string

	key wire.Parsed[*sign.Key]
}

// Read returns the key, or why it cannot be used.
func (s *Signer) Read() (*sign.Key, error) {
	files := []wire.File{{Purpose: "signing key", Name: s.File}}
	return s.key.Read(files, func(data [][]byte, _ *sign.Key) (*sign.Key, error) {
		key, err := sign.ParseKey(data[0], []byte(s.Passphrase))
		if errors.Is(err, sign.ErrPassphrase) {
			return nil, fmt.Errorf("signing key %s: %w: set GITROLLOUT_SIGNING_PASSPHRASE", s.File, err)
		}
		if err != nil {
			return nil, fmt.Errorf("signing key %s: %w", s.File, err)
		}
		return key, nil
	})
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
