package sign_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/internal/compare"
)

// gnupg is a home directory of the real gpg, with one key.
type gnupg struct {
	t    *testing.T
	home string
}

func newGnuPG(t *testing.T, owner string) gnupg {
	t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Fatal("gpg is not installed, which makes the signatures that this test checks: make programs")
	}
	home, err := os.MkdirTemp("", "gpg") // a short path, because gpg creates a socket in this directory, and a socket's path must be short
	must(t, err)
	g := gnupg{t: t, home: home}
	t.Cleanup(func() {
		kill := exec.Command("gpgconf", "--kill", "all")
		kill.Env = append(os.Environ(), "GNUPGHOME="+home)
		_ = kill.Run()
		_ = os.RemoveAll(home)
	})
	g.run("", "--quick-generate-key", owner, "ed25519", "sign", "never")
	return g
}

func (g gnupg) run(stdin string, args ...string) string {
	g.t.Helper()
	cmd := exec.Command("gpg", append([]string{"--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback"}, args...)...)
	cmd.Env = append(os.Environ(), "GNUPGHOME="+g.home)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		g.t.Fatalf("gpg %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// revoke revokes the key with gpg's revocation certificate. It first removes the colon with which gpg disables the certificate.
func (g gnupg) revoke() {
	g.t.Helper()
	files, err := filepath.Glob(filepath.Join(g.home, "openpgp-revocs.d", "*.rev"))
	if err != nil || len(files) != 1 {
		g.t.Fatalf("revocation certificates: %v, %v", files, err)
	}
	g.run(strings.Replace(string(read(g.t, files[0])), ":-----BEGIN", "-----BEGIN", 1), "--import")
}

// trusting returns a policy that accepts the keys of a keyring.
func trusting(t *testing.T, keyring string) sign.Policy {
	t.Helper()
	keys, err := sign.ParseKeyring("keyring", []byte(keyring))
	must(t, err)
	return sign.Policy{OpenPGP: keys}
}

func TestOpenPGP(t *testing.T) {
	ann, bob := newGnuPG(t, "Ann <ann@example.com>"), newGnuPG(t, "Bob <bob@example.com>")
	public, others := ann.run("", "--armor", "--export"), bob.run("", "--armor", "--export")
	policy := trusting(t, others+public)
	signature := ann.run(commit, "--armor", "--detach-sign")
	signed := insert(t, commit, signature)
	if who, err := policy.Verify(signed); err != nil || !strings.HasPrefix(who, "Ann <ann@example.com> (") {
		t.Errorf("%q, %v", who, err)
	}
	signs := func(flags ...string) []byte {
		return insert(t, commit, ann.run(commit, append([]string{"--armor", "--detach-sign"}, flags...)...))
	}
	for name, c := range map[string]struct {
		policy sign.Policy
		commit []byte
		want   string
	}{
		"changed":        {policy, []byte(strings.Replace(string(signed), "blue", "evil", 1)), "not by a key in keyring"},
		"not listed":     {trusting(t, others), signed, "not by a key in keyring"},
		"none trusted":   {sign.Policy{}, signed, "no OpenPGP keys are trusted"},
		"SHA-1":          {policy, signs("--digest-algo", "SHA1", "--weak-digest", "MD5"), "SHA"},
		"text signature": {policy, signs("--textmode"), "instead of binary data"},
		"broken":         {policy, insert(t, commit, strings.Replace(signature, "\n\n", "\n\nAAAA", 1)), "OpenPGP"},
	} {
		_, err := c.policy.Verify(c.commit)
		compare.CheckError(t, name, err, c.want)
	}
	private := ann.run("", "--armor", "--export-secret-keys")
	ann.revoke()
	for name, text := range map[string]string{
		"empty":       "",
		"private key": private,
		"revoked":     ann.run("", "--armor", "--export"),
		"binary":      bob.run("", "--export"),
		"cut off":     public[:len(public)/2],
	} {
		_, err := sign.ParseKeyring("keyring", []byte(text))
		compare.CheckError(t, name, err, "keyring")
	}
}

// openPGP creates a key and signs a text with it. It returns the public key, as gpg --export prints it, and the signature, both in armor.
func openPGP(t testing.TB, text string) (public, signature string) {
	t.Helper()
	key, err := openpgp.NewEntity("Ann", "", "ann@example.com", nil)
	must(t, err)
	var exported, signed strings.Builder
	w, err := armor.Encode(&exported, openpgp.PublicKeyType, nil)
	if err == nil {
		err = errors.Join(key.Serialize(w), w.Close())
	}
	must(t, errors.Join(err, openpgp.ArmoredDetachSign(&signed, key, strings.NewReader(text), nil)))
	return exported.String(), signed.String()
}

// FuzzParseKeyring checks that ParseKeyring returns either an error or a keyring. The test armors some inputs, because most changes of an
// armored text would only make the checksum wrong.
func FuzzParseKeyring(f *testing.F) {
	public, signature := openPGP(f, commit)
	signed := insert(f, commit, signature)
	f.Add([]byte(public), false)
	f.Add([]byte(public+"\n"+public), false)
	f.Add([]byte("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDM=\n-----END PGP PUBLIC KEY BLOCK-----"), false)
	block, err := armor.Decode(strings.NewReader(public))
	must(f, err)
	packets, err := io.ReadAll(block.Body)
	must(f, err)
	f.Add(packets, true)
	f.Fuzz(func(t *testing.T, data []byte, inArmor bool) {
		if inArmor {
			var text bytes.Buffer
			w, err := armor.Encode(&text, openpgp.PublicKeyType, nil)
			must(t, err)
			_, err = w.Write(data)
			must(t, errors.Join(err, w.Close()))
			data = text.Bytes()
		}
		keys, err := sign.ParseKeyring("keyring", data)
		if (keys == nil) == (err == nil) {
			t.Fatalf("%q: %v, %v", data, keys, err)
		}
		if err != nil {
			return
		}
		who, err := sign.Policy{OpenPGP: keys}.Verify(signed)
		if err == nil && !strings.Contains(who, "(") {
			t.Errorf("%q: signed by %q", data, who)
		}
	})
}
