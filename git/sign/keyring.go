package sign

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Keyring holds the accepted OpenPGP public keys.
type Keyring struct {
	file string
	keys openpgp.EntityList
}

// ParseKeyring parses the output of gpg --armor --export. It refuses private and revoked keys. Its errors begin with
// `file`.
func ParseKeyring(file string, data []byte) (*Keyring, error) {
	k := &Keyring{file: file}
	const begin = "-----BEGIN PGP "
	for _, block := range strings.Split(string(data), begin)[1:] {
		keys, err := openpgp.ReadArmoredKeyRing(strings.NewReader(begin + block))
		if err != nil {
			return nil, fmt.Errorf("%s: OpenPGP key block %d cannot be read: %w; write the output of gpg --armor --export",
				file, len(k.keys)+1, err)
		}
		k.keys = append(k.keys, keys...)
	}
	if len(k.keys) == 0 {
		return nil, fmt.Errorf("%s: holds no OpenPGP public key; write the output of gpg --armor --export", file)
	}
	for _, key := range k.keys {
		switch {
		case key.PrivateKey != nil:
			return nil, fmt.Errorf("%s: %s is a private key; export the public one: gpg --armor --export", file, owner(key))
		case len(key.Revocations) > 0:
			return nil, fmt.Errorf("%s: the key of %s is revoked; remove it", file, owner(key))
		}
	}
	return k, nil
}

func owner(e *openpgp.Entity) string {
	name := "?"
	if id := e.PrimaryIdentity(); id != nil {
		name = strings.Map(printable, id.Name)
	}
	return fmt.Sprintf("%s (%X)", name, e.PrimaryKey.Fingerprint)
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

var weak = []crypto.Hash{crypto.MD5, crypto.SHA1, crypto.RIPEMD160}

var errMalformed = errors.New("the OpenPGP signature is malformed")

// check verifies a signature. If malformed input makes the library panic, check returns an error.
func (k *Keyring) check(c signed) (who string, err error) {
	defer func() {
		if recover() != nil {
			who, err = "", errMalformed
		}
	}()
	block, err := armor.Decode(strings.NewReader(c.signature))
	if err != nil || block.Type != openpgp.SignatureType {
		return "", errMalformed
	}
	raw, errRead := io.ReadAll(block.Body)
	first, err := packet.NewReader(bytes.NewReader(raw)).Next()
	said, is := first.(*packet.Signature)
	if errRead != nil || err != nil || !is {
		return "", errMalformed
	}
	// The key must be valid when the signature is made, which may be just after the commit's time.
	config := &packet.Config{Time: func() time.Time { return said.CreationTime }}
	payload := bytes.NewReader(c.payload)
	signature, signer, err := openpgp.VerifyDetachedSignature(k.keys, payload, bytes.NewReader(raw), config)
	switch {
	case err != nil && signer == nil:
		return "", fmt.Errorf("its OpenPGP signature is not by a key in %s, or does not match the commit's content", k.file)
	case err != nil:
		return "", fmt.Errorf("its OpenPGP signature by %s: %w", owner(signer), err)
	case signature == nil || signer == nil || signature.SigType != packet.SigTypeBinary:
		return "", errors.New("its OpenPGP signature signs text instead of binary data")
	case slices.Contains(weak, signature.Hash):
		return "", fmt.Errorf("its OpenPGP signature uses %s, which can be forged", signature.Hash)
	}
	return owner(signer), nil
}
