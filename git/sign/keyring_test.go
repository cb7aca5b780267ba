package sign_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git/sign"
)

// gnupg is a home of the real gpg, with one key.
type gnupg struct {
	t    *testing.T
	home string
}

func newGnuPG(t *testing.T, owner string) gnupg {
	t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Fatal("gpg is not installed, which makes the signatures that this test checks: make programs")
	}
	home, err := os.MkdirTemp("", "gpg") // its socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
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

func TestOpenPGP(t *testing.T) {
	ann, bob := newGnuPG(t, "Ann <ann@example.com>"), newGnuPG(t, "Bob <bob@example.com>")
	public := ann.run("", "--armor", "--export")
	both, err := sign.ParseKeyring("keyring", []byte(bob.run("", "--armor", "--export")+public))
	if err != nil {
		t.Fatal(err)
	}
	policy := sign.Policy{OpenPGP: both}
	signature := ann.run(commit, "--armor", "--detach-sign")
	signed := insert(t, commit, signature)
	if who, err := policy.Verify(signed); err != nil || !strings.HasPrefix(who, "Ann <ann@example.com> (") {
		t.Errorf("%q, %v", who, err)
	}
	only, err := sign.ParseKeyring("keyring", []byte(bob.run("", "--armor", "--export")))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		policy sign.Policy
		commit []byte
		want   string
	}{
		"changed":        {policy, []byte(strings.Replace(string(signed), "blue", "evil", 1)), "not by a key in keyring"},
		"not listed":     {sign.Policy{OpenPGP: only}, signed, "not by a key in keyring"},
		"none trusted":   {sign.Policy{}, signed, "no OpenPGP keys are trusted"},
		"SHA-1":          {policy, insert(t, commit, ann.run(commit, "--armor", "--detach-sign", "--digest-algo", "SHA1", "--weak-digest", "MD5")), "SHA"},
		"text signature": {policy, insert(t, commit, ann.run(commit, "--armor", "--detach-sign", "--textmode")), "not one of data"},
		"broken":         {policy, insert(t, commit, strings.Replace(signature, "\n\n", "\n\nAAAA", 1)), "OpenPGP"},
	} {
		if who, err := c.policy.Verify(c.commit); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %q", name, who, err, c.want)
		}
	}
	for name, text := range map[string]string{
		"empty":       "",
		"private key": ann.run("", "--armor", "--export-secret-keys"),
		"binary":      ann.run("", "--export"),
	} {
		if _, err := sign.ParseKeyring("keyring", []byte(text)); err == nil || !strings.Contains(err.Error(), "keyring") {
			t.Errorf("%s keyring: %v", name, err)
		}
	}
}
