package sign_test

import (
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"gitrollout.dev/gitrollout/internal/compare"
)

// sshsig is the content of an SSH signature after the magic bytes, as in OpenSSH's PROTOCOL.sshsig.
type sshsig struct {
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

// signer reads a private key from a file of ssh-keygen.
func signer(t *testing.T, file string) ssh.AlgorithmSigner {
	t.Helper()
	key, err := ssh.ParsePrivateKey(read(t, file))
	must(t, err)
	return key.(ssh.AlgorithmSigner)
}

// armored signs the test's commit as ssh-keygen does, with the given algorithm. The signature is passed to `edit` before its encoding.
func armored(t *testing.T, key ssh.AlgorithmSigner, algorithm string, edit func(*sshsig)) string {
	t.Helper()
	sum := sha512.Sum512([]byte(commit))
	signs := ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{"git", "", "sha512", sum[:]})
	signature, err := key.SignWithAlgorithm(rand.Reader, append([]byte("SSHSIG"), signs...), algorithm)
	must(t, err)
	s := sshsig{Version: 1, PublicKey: key.PublicKey().Marshal(), Namespace: "git", Hash: "sha512", Signature: ssh.Marshal(*signature)}
	edit(&s)
	data := append([]byte("SSHSIG"), ssh.Marshal(s)...)
	return string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: data}))
}

// TestSignaturesThatDoNotCount checks that Verify refuses a signature if any field is invalid.
func TestSignaturesThatDoNotCount(t *testing.T) {
	edFile, edPublic := keygen(t, "-t", "ed25519")
	rsaFile, rsaPublic := keygen(t, "-t", "rsa", "-b", "2048")
	ed, rsa := signer(t, edFile), signer(t, rsaFile)
	certificate := &ssh.Certificate{Key: ed.PublicKey(), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	must(t, certificate.SignCert(rand.Reader, ed))
	whole := func(*sshsig) {}
	edited := func(edit func(*sshsig)) string { return armored(t, ed, ssh.KeyAlgoED25519, edit) }
	for name, c := range map[string]struct{ signature, want string }{
		"Ed25519":              {edited(whole), ""},
		"RSA with SHA-2":       {armored(t, rsa, ssh.KeyAlgoRSASHA256, whole), ""},
		"RSA with SHA-1":       {armored(t, rsa, ssh.KeyAlgoRSA, whole), `kind "ssh-rsa" is not accepted`},
		"another version":      {edited(func(s *sshsig) { s.Version = 2 }), "version 2"},
		"another hash":         {edited(func(s *sshsig) { s.Hash = "md5" }), `"md5"`},
		"no key":               {edited(func(s *sshsig) { s.PublicKey = []byte("key") }), "cannot be read"},
		"no signature":         {edited(func(s *sshsig) { s.Signature = []byte("s") }), "malformed"},
		"reserved":             {edited(func(s *sshsig) { s.Reserved = "x" }), "does not match"},
		"a certificate":        {edited(func(s *sshsig) { s.PublicKey = certificate.Marshal() }), "certificate, which is not supported"},
		"text after the armor": {edited(whole) + "more\n", "malformed"},
		"two armors":           {strings.Repeat(edited(whole), 2), "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := verify(t, "ann "+edPublic+"\nann "+rsaPublic, insert(t, commit, c.signature))
			if compare.CheckError(t, who, err, c.want); c.want == "" && who != "ann" {
				t.Errorf("it is signed by %q, want ann", who)
			}
		})
	}
}

// TestSignatureOfTheOtherHash checks a commit with the headers gpgsig and gpgsig-sha256. The signed content contains neither header.
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
