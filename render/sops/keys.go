package sops

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/ProtonMail/go-crypto/openpgp"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
)

// Keys decrypt files' data keys.
type Keys struct {
	age []age.Identity
	pgp openpgp.EntityList
}

// ReadKeys reads age keys in *.agekey, and OpenPGP keys without a passphrase in *.asc. Errors quote no key.
func ReadKeys(data map[string]string) (*Keys, error) {
	k := &Keys{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		switch path.Ext(name) {
		case ".agekey":
			found, err := age.ParseIdentities(strings.NewReader(data[name]))
			if err != nil {
				return nil, fmt.Errorf("%s has no age key; write the key with age-keygen", name)
			}
			k.age = append(k.age, found...)
		case ".asc":
			found, err := openpgp.ReadArmoredKeyRing(strings.NewReader(data[name]))
			if err != nil {
				return nil, fmt.Errorf("%s has no OpenPGP key; write the key with gpg --export-secret-keys --armor", name)
			}
			k.pgp = append(k.pgp, found...)
		}
	}
	if len(k.age)+len(k.pgp) == 0 {
		return nil, errors.New("has no entry whose name ends in .agekey or .asc")
	}
	return k, nil
}

// ErrLocked means that no key opens the file.
var ErrLocked = errors.New("none of the keys opens it")

// Unlock returns the data key from the first lock that a key opens. All sizes are limited, because the input is
// untrusted.
func (k *Keys) Unlock(locks []Lock) ([]byte, error) {
	for _, l := range locks[:min(len(locks), 100)] {
		opened, err := io.Reader(nil), ErrLocked
		switch {
		case len(l.Encrypted) > 64<<10:
		case l.Kind == KindAge && len(k.age) > 0:
			opened, err = age.Decrypt(armor.NewReader(strings.NewReader(l.Encrypted)), k.age...)
		case l.Kind == KindPGP && len(k.pgp) > 0:
			opened, err = k.message(l.Encrypted)
		}
		if err != nil {
			continue
		}
		if key, err := io.ReadAll(io.LimitReader(opened, 33)); err == nil && len(key) == 32 {
			return key, nil
		}
	}
	return nil, ErrLocked
}

func (k *Keys) message(armored string) (io.Reader, error) {
	block, err := pgparmor.Decode(strings.NewReader(armored))
	if err != nil {
		return nil, err
	}
	message, err := openpgp.ReadMessage(block.Body, k.pgp, nil, nil)
	if err != nil {
		return nil, err
	}
	return message.UnverifiedBody, nil
}

// Recipients lists recipients for messages.
func Recipients(locks []Lock) string {
	var names []string
	for _, l := range locks[:min(len(locks), 5)] {
		names = append(names, l.Kind+" "+l.Recipient[:min(len(l.Recipient), 80)])
	}
	switch {
	case len(locks) > 5:
		names = append(names, fmt.Sprintf("%d more", len(locks)-5))
	case len(locks) == 0:
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// Readable reports whether any lock is of a supported kind.
func Readable(locks []Lock) bool {
	return slices.ContainsFunc(locks, func(l Lock) bool { return l.Kind == KindAge || l.Kind == KindPGP })
}
