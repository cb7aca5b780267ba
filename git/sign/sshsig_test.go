package sign_test

import (
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// sshsig is the content of an SSH signature after its magic bytes, as in OpenSSH's PROTOCOL.sshsig.
type sshsig struct {
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

// signer reads a key of ssh-keygen.
func signer(t *testing.T, file string) ssh.AlgorithmSigner {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	return key.(ssh.AlgorithmSigner)
}

// armored signs the commit like ssh-keygen, with another algorithm and an edited result.
func armored(t *testing.T, key ssh.AlgorithmSigner, algorithm string, edit func(*sshsig)) string {
	t.Helper()
	sum := sha512.Sum512([]byte(commit))
	signs := ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{"git", "", "sha512", sum[:]})
	signature, err := key.SignWithAlgorithm(rand.Reader, append([]byte("SSHSIG"), signs...), algorithm)
	if err != nil {
		t.Fatal(err)
	}
	s := sshsig{Version: 1, PublicKey: key.PublicKey().Marshal(), Namespace: "git", Hash: "sha512", Signature: ssh.Marshal(*signature)}
	edit(&s)
	data := append([]byte("SSHSIG"), ssh.Marshal(s)...)
	return string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: data}))
}

// TestSignaturesThatDoNotCount changes one part of a valid signature at a time.
func TestSignaturesThatDoNotCount(t *testing.T) {
	edFile, edPublic := keygen(t, "-t", "ed25519")
	rsaFile, rsaPublic := keygen(t, "-t", "rsa", "-b", "2048")
	ed, rsa := signer(t, edFile), signer(t, rsaFile)
	certificate := &ssh.Certificate{Key: ed.PublicKey(), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, ed); err != nil {
		t.Fatal(err)
	}
	as := func(key ssh.AlgorithmSigner, algorithm string, edit func(*sshsig)) string {
		return armored(t, key, algorithm, edit)
	}
	whole := func(*sshsig) {}
	for name, c := range map[string]struct{ signature, want string }{
		"Ed25519":         {as(ed, ssh.KeyAlgoED25519, whole), ""},
		"RSA with SHA-2":  {as(rsa, ssh.KeyAlgoRSASHA256, whole), ""},
		"RSA with SHA-1":  {as(rsa, ssh.KeyAlgoRSA, whole), `kind "ssh-rsa" is not accepted`},
		"another version": {as(ed, ssh.KeyAlgoED25519, func(s *sshsig) { s.Version = 2 }), "version 2"},
		"another hash":    {as(ed, ssh.KeyAlgoED25519, func(s *sshsig) { s.Hash = "md5" }), `"md5"`},
		"no key":          {as(ed, ssh.KeyAlgoED25519, func(s *sshsig) { s.PublicKey = []byte("key") }), "cannot be read"},
		"no signature":    {as(ed, ssh.KeyAlgoED25519, func(s *sshsig) { s.Signature = []byte("s") }), "malformed"},
		"reserved":        {as(ed, ssh.KeyAlgoED25519, func(s *sshsig) { s.Reserved = "x" }), "does not match"},
		"a certificate": {as(ed, ssh.KeyAlgoED25519, func(s *sshsig) { s.PublicKey = certificate.Marshal() }),
			"certificate, which is not supported"},
		"text after the armor": {as(ed, ssh.KeyAlgoED25519, whole) + "more\n", "malformed"},
		"two armors":           {strings.Repeat(as(ed, ssh.KeyAlgoED25519, whole), 2), "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := verify(t, "ann "+edPublic+"\nann "+rsaPublic, insert(t, commit, c.signature))
			if c.want == "" && (err != nil || who != "ann") {
				t.Errorf("%q, %v; want ann", who, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%q, %v; want an error with %q", who, err, c.want)
			}
		})
	}
}

// TestSignatureOfTheOtherHash checks a commit of a repository with two hashes: it has two signatures, and git signs
// the content without both.
func TestSignatureOfTheOtherHash(t *testing.T) {
	key, public := keygen(t, "-t", "ed25519")
	signed := string(insert(t, commit, opensshSigns(t, key, "git", commit)))
	both := strings.Replace(signed, "\ngpgsig ", "\ngpgsig-sha256 -----BEGIN SSH SIGNATURE-----\n AAAA\n -----END\ngpgsig ", 1)
	if both == signed {
		t.Fatal("no second signature")
	}
	if who, err := verify(t, "ann "+public, []byte(both)); err != nil || who != "ann" {
		t.Errorf("%q, %v; want ann", who, err)
	}
}
