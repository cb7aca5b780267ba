package git

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	"gitrollout.dev/gitrollout/git/sign"
)

// KeyFiles name the files of keys whose signatures count, in the format of allowed_signers but for Keyring, which is
// armored OpenPGP. An empty name asks for no signatures.
type KeyFiles struct {
	Commits   string // the users' branch is followed only to commits that are signed with a key in it
	Keyring   string // the same; with both, a key in either will do
	Promoters string // promotion files count only if they were committed or merged by one of these
	State     string // the record counts only if the state branch's newest commit is by one of these
}

// Keys are the policies of KeyFiles. They are read again at each poll, since that is how keys come and go. It is safe
// for concurrent use.
type Keys struct {
	files KeyFiles

	mu                        sync.Mutex
	data                      [4][]byte // as read last
	reads                     int       // how often it was other than before
	commits, promoters, state sign.Policy
}

// OpenKeys reads the files, so that a mistake in them is found at the start. Without any it is nil.
func OpenKeys(files KeyFiles) (*Keys, error) {
	if files == (KeyFiles{}) {
		return nil, nil
	}
	k := &Keys{files: files}
	return k, k.Read()
}

// Read reads the files, and parses them if they have changed. After an error the keys of before count.
func (k *Keys) Read() error {
	var data [4][]byte
	for i, f := range []struct{ flag, name string }{
		{"--verify-commits", k.files.Commits}, {"--verify-keyring", k.files.Keyring},
		{"--promoters", k.files.Promoters}, {"--verify-state", k.files.State},
	} {
		if f.name == "" {
			continue
		}
		var err error
		if data[i], err = os.ReadFile(f.name); err != nil {
			return fmt.Errorf("%s: %w", f.flag, err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reads > 0 && slices.EqualFunc(data[:], k.data[:], bytes.Equal) {
		return nil
	}
	var commits, promoters, state sign.Policy
	var err error
	if k.files.Commits != "" {
		commits.SSH, err = sign.ParseSigners("the file of --verify-commits", data[0])
	}
	if err == nil && k.files.Keyring != "" {
		commits.OpenPGP, err = sign.ParseKeyring("the file of --verify-keyring", data[1])
	}
	if err == nil && k.files.Promoters != "" {
		promoters.SSH, err = sign.ParseSigners("the file of --promoters", data[2])
	}
	if err == nil && k.files.State != "" {
		state.SSH, err = sign.ParseSigners("the file of --verify-state", data[3])
	}
	if err != nil {
		return err
	}
	k.data, k.commits, k.promoters, k.state = data, commits, promoters, state
	k.reads++
	return nil
}

// Version changes when other keys count than before.
func (k *Keys) Version() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strconv.Itoa(k.reads)
}

// Files tells for what signatures are asked; nil asks for none.
func (k *Keys) Files() KeyFiles {
	if k == nil {
		return KeyFiles{}
	}
	return k.files
}

// Commits is whose signature a head of the users' branch needs.
func (k *Keys) Commits() sign.Policy { return k.policy(&k.commits) }

// Promoters is whose signature a promotion file needs.
func (k *Keys) Promoters() sign.Policy { return k.policy(&k.promoters) }

// State is whose signature the newest commit of the state branch needs.
func (k *Keys) State() sign.Policy { return k.policy(&k.state) }

func (k *Keys) policy(p *sign.Policy) sign.Policy {
	k.mu.Lock()
	defer k.mu.Unlock()
	return *p
}
