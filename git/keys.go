package git

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/git/wire"
)

// KeyFiles has the paths of accepted keys (allowed_signers; Keyring: OpenPGP). "" disables a check.
type KeyFiles struct {
	Commits   string // must sign the users' branch's commits
	Keyring   string // OpenPGP keys for the same; a key in either file suffices
	Promoters string // must sign a promotion file's commit or merge
	State     string // must sign the state branch's newest commit
}

// Keys holds the keys, which each Fetch reads again. Keys is safe for concurrent use.
type Keys struct {
	files KeyFiles

	accepted wire.Parsed[accepted]
}

type accepted struct{ commits, promoters, state sign.Policy }

// OpenKeys reads the files, because an error must prevent the start. It returns nil without paths.
func OpenKeys(files KeyFiles) (*Keys, error) {
	if files == (KeyFiles{}) {
		return nil, nil
	}
	k := &Keys{files: files}
	return k, k.Read()
}

// Read parses changed files. After an error, the last keys stay in force.
func (k *Keys) Read() error {
	files := []wire.File{
		{Purpose: "--verify-commits", Name: k.files.Commits}, {Purpose: "--verify-keyring", Name: k.files.Keyring},
		{Purpose: "--promoters", Name: k.files.Promoters}, {Purpose: "--verify-state", Name: k.files.State},
	}
	_, err := k.accepted.Read(files, func(data [][]byte, _ accepted) (a accepted, err error) {
		parse := func(into **sign.Signers, i int) {
			if err == nil && files[i].Name != "" {
				*into, err = sign.ParseSigners("the file of "+files[i].Purpose, data[i])
			}
		}
		parse(&a.commits.SSH, 0)
		if err == nil && k.files.Keyring != "" {
			a.commits.OpenPGP, err = sign.ParseKeyring("the file of --verify-keyring", data[1])
		}
		parse(&a.promoters.SSH, 2)
		parse(&a.state.SSH, 3)
		return a, err
	})
	return err
}

// Version changes with the accepted keys.
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

// Commits returns the keys for the users' branch.
func (k *Keys) Commits() sign.Policy { return k.last().commits }

// Promoters returns the keys for promotion files.
func (k *Keys) Promoters() sign.Policy { return k.last().promoters }

// State returns the keys for the state branch.
func (k *Keys) State() sign.Policy { return k.last().state }

func (k *Keys) last() accepted {
	a, _ := k.accepted.Last()
	return a
}

// Signer signs with the key in a file, which it reads for each commit and parses after a change.
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
