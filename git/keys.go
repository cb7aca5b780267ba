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

// KeyFiles has the paths of files with accepted keys (allowed_signers; Keyring: OpenPGP). A path "" means no check.
type KeyFiles struct {
	Commits   string // keys that must sign a commit of the users' branch before it is followed
	Keyring   string // like Commits; with both files, a key in either file suffices
	Promoters string // keys that must sign the commit or merge of a promotion file
	State     string // keys that must sign the newest commit of the state branch
}

// Keys holds the keys in the KeyFiles. Each Fetch reads the files again. Keys is safe for concurrent use.
type Keys struct {
	files KeyFiles

	mu                        sync.Mutex
	data                      [4][]byte // content of the files as last read
	reads                     int       // how often the content has changed
	commits, promoters, state sign.Policy
}

// OpenKeys reads the files, so that a mistake in a file is a startup error. It returns nil if all paths are "".
func OpenKeys(files KeyFiles) (*Keys, error) {
	if files == (KeyFiles{}) {
		return nil, nil
	}
	k := &Keys{files: files}
	return k, k.Read()
}

// Read reads the files, and parses them again if they changed. After an error the previous keys stay in force.
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

// Version returns a string that changes whenever the accepted keys change.
func (k *Keys) Version() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strconv.Itoa(k.reads)
}

// Files returns the paths of the key files. All paths are "" if k is nil.
func (k *Keys) Files() KeyFiles {
	if k == nil {
		return KeyFiles{}
	}
	return k.files
}

// Commits returns the keys accepted for heads of the users' branch.
func (k *Keys) Commits() sign.Policy { return k.policy(&k.commits) }

// Promoters returns the keys accepted for promotion files.
func (k *Keys) Promoters() sign.Policy { return k.policy(&k.promoters) }

// State returns the keys accepted for the newest commit of the state branch.
func (k *Keys) State() sign.Policy { return k.policy(&k.state) }

func (k *Keys) policy(p *sign.Policy) sign.Policy {
	k.mu.Lock()
	defer k.mu.Unlock()
	return *p
}
