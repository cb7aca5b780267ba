package sign

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// The format is defined in OpenSSH's PROTOCOL.sshsig.
const (
	sshType  = "SSH SIGNATURE"
	sshMagic = "SSHSIG"
)

type blob struct {
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

// message is the signed data after sshMagic. Sum is the digest of the content.
type message struct {
	Namespace string
	Reserved  string
	Hash      string
	Sum       []byte
}

func digest(hash string, data []byte) ([]byte, error) {
	switch hash {
	case "sha256":
		sum := sha256.Sum256(data)
		return sum[:], nil
	case "sha512":
		sum := sha512.Sum512(data)
		return sum[:], nil
	}
	return nil, fmt.Errorf("its hash %q must be sha256 or sha512", hash)
}

func (m message) bytes() []byte { return append([]byte(sshMagic), ssh.Marshal(m)...) }

func readBlob(armored string) (b blob, key ssh.PublicKey, err error) {
	block, rest := pem.Decode([]byte(armored))
	if block == nil || block.Type != sshType || strings.TrimSpace(string(rest)) != "" {
		return b, nil, errors.New("the SSH signature is malformed")
	}
	raw, ok := strings.CutPrefix(string(block.Bytes), sshMagic)
	if !ok {
		return b, nil, errors.New("the SSH signature is malformed")
	}
	if err := ssh.Unmarshal([]byte(raw), &b); err != nil {
		return b, nil, fmt.Errorf("the SSH signature is malformed: %w", err)
	}
	switch {
	case b.Version != 1:
		return b, nil, fmt.Errorf("the SSH signature has version %d, not 1", b.Version)
	case b.Namespace != namespace:
		return b, nil, fmt.Errorf("the SSH signature's namespace is %q, not %q", b.Namespace, namespace)
	}
	if key, err = ssh.ParsePublicKey(b.PublicKey); err != nil {
		return b, nil, fmt.Errorf("the key of the SSH signature cannot be read: %w", err)
	}
	if _, is := key.(*ssh.Certificate); is {
		return b, nil, errors.New("it is signed with an SSH certificate, which is not supported; sign with the key itself")
	}
	return b, key, nil
}

var sshAlgorithms = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
}

func (s *Signers) check(c signed) (string, error) {
	b, key, err := readBlob(c.signature)
	if err != nil {
		return "", err
	}
	sum, err := digest(b.Hash, c.payload)
	if err != nil {
		return "", err
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(b.Signature, &signature); err != nil {
		return "", fmt.Errorf("the SSH signature is malformed: %w", err)
	}
	if !slices.Contains(sshAlgorithms, signature.Format) {
		return "", fmt.Errorf("its SSH signature of kind %q is not accepted", signature.Format)
	}
	m := message{Namespace: b.Namespace, Reserved: b.Reserved, Hash: b.Hash, Sum: sum}
	if err := key.Verify(m.bytes(), &signature); err != nil {
		return "", errors.New("its SSH signature does not match the commit's content")
	}
	who, err := s.allows(key.Marshal(), c.when)
	if err != nil {
		return "", fmt.Errorf("%w (%s)", err, ssh.FingerprintSHA256(key))
	}
	return who, nil
}

// Key is an Ed25519 or RSA key. Both algorithms sign equal content with equal signatures.
type Key struct{ signer ssh.AlgorithmSigner }

// ErrPassphrase means that the passphrase is missing or wrong.
var ErrPassphrase = errors.New("the key's passphrase is missing or wrong")

// ParseKey parses a private key of ssh-keygen. For an unencrypted key, the passphrase is ignored.
func ParseKey(data, passphrase []byte) (*Key, error) {
	signer, err := ssh.ParsePrivateKey(data)
	if locked := new(ssh.PassphraseMissingError); errors.As(err, &locked) {
		if signer, err = ssh.ParsePrivateKeyWithPassphrase(data, passphrase); err != nil {
			return nil, ErrPassphrase
		}
	}
	if err != nil {
		return nil, errors.New("no private SSH key can be read; make one with: ssh-keygen -t ed25519")
	}
	kind := signer.PublicKey().Type()
	algorithm, ok := signer.(ssh.AlgorithmSigner)
	if !ok || kind != ssh.KeyAlgoED25519 && kind != ssh.KeyAlgoRSA {
		return nil, fmt.Errorf("a key of type %s is not supported for signing commits; use ssh-ed25519 or ssh-rsa", kind)
	}
	return &Key{signer: algorithm}, nil
}

// Sign returns an armored signature for Insert. The random bytes (crypto/rand's Reader) only protect RSA keys against
// side channels.
func (k *Key) Sign(random io.Reader, commit []byte) (string, error) {
	const hash = "sha512"
	sum, err := digest(hash, commit)
	if err != nil {
		return "", err
	}
	algorithm := k.signer.PublicKey().Type()
	if algorithm == ssh.KeyAlgoRSA {
		algorithm = ssh.KeyAlgoRSASHA512
	}
	m := message{Namespace: namespace, Hash: hash, Sum: sum}
	signature, err := k.signer.SignWithAlgorithm(random, m.bytes(), algorithm)
	if err != nil {
		return "", fmt.Errorf("sign with SSH: %w", err)
	}
	b := blob{
		Version: 1, PublicKey: k.signer.PublicKey().Marshal(), Namespace: namespace, Hash: hash,
		Signature: ssh.Marshal(*signature),
	}
	data := append([]byte(sshMagic), ssh.Marshal(b)...)
	return string(pem.EncodeToMemory(&pem.Block{Type: sshType, Bytes: data})), nil
}

// Signers returns a list with only this key, to verify gitrollout's own signatures.
func (k *Key) Signers(principal string) *Signers {
	return &Signers{file: "the signing key", keys: []allowed{{principal: principal, key: k.signer.PublicKey().Marshal()}}}
}
