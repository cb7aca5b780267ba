package sign

import (
	"errors"
	"strings"
)

// Policy holds the accepted keys. A nil field accepts none of that format.
type Policy struct {
	SSH     *Signers
	OpenPGP *Keyring
}

// Verify returns a commit's signer: an SSH key's principal, or an OpenPGP user id with fingerprint. Without a
// signature, the error is ErrUnsigned.
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
