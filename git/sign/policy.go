package sign

import (
	"errors"
	"strings"
)

// Policy holds the accepted signing keys. If a field is nil, no key of that format is accepted.
type Policy struct {
	SSH     *Signers
	OpenPGP *Keyring
}

// Verify returns the signer of a commit: the principal of an SSH key, or an OpenPGP user id with the key's fingerprint.
// The error says why Verify refuses the signature. For a commit without a signature, it is ErrUnsigned.
func (p Policy) Verify(commit []byte) (signer string, err error) {
	c, err := split(commit)
	if err != nil {
		return "", err
	}
	switch {
	case strings.HasPrefix(c.signature, "-----BEGIN "+sshType):
		if p.SSH == nil {
			return "", errors.New("it is signed with SSH, and no SSH keys are trusted")
		}
		return p.SSH.check(c)
	case strings.HasPrefix(c.signature, "-----BEGIN PGP SIGNATURE"):
		if p.OpenPGP == nil {
			return "", errors.New("it is signed with OpenPGP, and no OpenPGP keys are trusted")
		}
		return p.OpenPGP.check(c)
	}
	return "", errors.New("its signature is neither SSH nor OpenPGP")
}
