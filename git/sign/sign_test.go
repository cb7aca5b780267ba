package sign_test

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/internal/compare"
)

const commit = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n" +
	"author Ann <ann@example.com> 1767225600 +0000\n" +
	"committer Ann <ann@example.com> 1767225600 +0000\n\nshop: blue\n"

// keygen creates a key with the real ssh-keygen. It returns the key file's path, and the line with the public key.
func keygen(t testing.TB, args ...string) (file, public string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key")
	sshKeygen(t, append([]string{"-q", "-N", "", "-C", "", "-f", file}, args...)...)
	return file, strings.TrimSpace(string(read(t, file+".pub")))
}

func sshKeygen(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	return data
}

func write(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// opensshSigns signs content with the real ssh-keygen, as git signs a commit.
func opensshSigns(t testing.TB, key, space, content string) string {
	t.Helper()
	file := write(t, content)
	sshKeygen(t, "-Y", "sign", "-n", space, "-f", key, file)
	return string(read(t, file+".sig"))
}

func insert(t testing.TB, content, signature string) []byte {
	t.Helper()
	signed, err := sign.Insert([]byte(content), signature)
	must(t, err)
	return signed
}

// verify verifies a commit with the text of an allowed_signers file.
func verify(t testing.TB, signers string, signed []byte) (string, error) {
	t.Helper()
	list, err := sign.ParseSigners("signers", []byte(signers))
	must(t, err)
	return sign.Policy{SSH: list}.Verify(signed)
}

func TestSignaturesOfOpenSSH(t *testing.T) {
	for _, kind := range []string{"ed25519", "rsa -b 2048", "ecdsa -b 256", "ecdsa -b 521"} {
		key, public := keygen(t, append([]string{"-t"}, strings.Fields(kind)...)...)
		signed := insert(t, commit, opensshSigns(t, key, "git", commit))
		who, err := verify(t, "ann@example.com,ann namespaces=\"git\" "+public+" a comment\n", signed)
		if err != nil || who != "ann@example.com" {
			t.Errorf("%s: %q, %v", kind, who, err)
		}
		for name, other := range map[string]string{
			"another message": strings.Replace(string(signed), "shop: blue", "shop: evil", 1),
			"another tree":    strings.Replace(string(signed), "tree 4b", "tree 5b", 1),
			"another parent":  strings.Replace(string(signed), "\nauthor", "\nparent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor", 1),
		} {
			if who, err := verify(t, "ann "+public, []byte(other)); err == nil {
				t.Errorf("%s: %s verifies as %s", kind, name, who)
			}
		}
	}
}

func TestKeyIsChecked(t *testing.T) {
	key, public := keygen(t, "-t", "ed25519")
	_, other := keygen(t, "-t", "ed25519")
	signed := insert(t, commit, opensshSigns(t, key, "git", commit)) // the commit's time is 2026-01-01T00:00:00Z
	file := insert(t, commit, opensshSigns(t, key, "file", commit))
	const brokenArmor = "-----BEGIN SSH SIGNATURE-----\n!!!\n-----END SSH SIGNATURE-----"
	cases := map[string]struct {
		signers string
		commit  []byte
		want    string // "" means accepted
	}{
		"listed":               {"ann " + public, signed, ""},
		"indented":             {"\t ann " + public + " \r\n", signed, ""},
		"valid from then on":   {`ann valid-after="20260101" ` + public, signed, ""},
		"valid to the second":  {`ann valid-before="20260101000001" ` + public, signed, ""},
		"listed second":        {"# team\n\nbob " + other + "\nann " + public, signed, ""},
		"quoted principal":     {`"ann lee" ` + public, signed, ""},
		"not listed":           {"bob " + other, signed, "not in signers"},
		"unsigned":             {"ann " + public, []byte(commit), "not signed"},
		"for files":            {"ann " + public, file, `namespace is "file"`},
		"valid":                {`ann valid-after="20251231",valid-before="20260102Z" ` + public, signed, ""},
		"not valid yet":        {`ann valid-after="202601010001" ` + public, signed, "valid from"},
		"not valid any more":   {`ann valid-before="20260101" ` + public, signed, "valid until"},
		"valid on one line":    {`ann valid-before="20250101" ` + public + "\nann " + public, signed, ""},
		"other namespace":      {`ann namespaces="file" ` + public + "\nbob " + other, signed, "not in signers"},
		"pattern of namespace": {`ann namespaces="file,g*" ` + public, signed, ""},
		"negated namespace":    {`ann namespaces="*,!git" ` + public + "\nbob " + other, signed, "not in signers"},
		"every namespace must": {`ann namespaces="file",namespaces="git" ` + public + "\nbob " + other, signed, "not in signers"},
		"two signatures":       {"ann " + public, insert(t, string(signed), opensshSigns(t, key, "git", commit)), "more than one"},
		"no armor":             {"ann " + public, insert(t, commit, "hello"), "neither"},
		"broken armor":         {"ann " + public, insert(t, commit, brokenArmor), "malformed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			who, err := verify(t, c.signers, c.commit)
			if compare.CheckError(t, who, err, c.want); c.want == "" && who == "" {
				t.Error("it is signed by no name")
			}
		})
	}
	if _, err := verify(t, "ann "+public, []byte(commit)); !errors.Is(err, sign.ErrUnsigned) {
		t.Errorf("unsigned: %v", err)
	}
}

func TestSignersThatAreRefused(t *testing.T) {
	_, public := keygen(t, "-t", "ed25519")
	for text, want := range map[string]string{
		"":                             "lists no key",
		"# nothing\n":                  "lists no key",
		"ann\n":                        "the line must have a principal and a key",
		",ann " + public:               "the line must have a principal and a key",
		`"" ` + public:                 "the line must have a principal and a key",
		"ann ssh-ed25519":              "the key of ann cannot be read",
		"\nann ssh-ed25519 AAAA":       "line 2",
		"ann cert-authority " + public: "cert-authority is not supported",
		"ann valid-before=\"tomorrow\" " + public: "tomorrow",
		"ann surprise " + public:                  "surprise",
		`ann namespaces="file" ` + public:         "lists no key",
	} {
		_, err := sign.ParseSigners("signers", []byte(text))
		compare.CheckError(t, text, err, want)
		compare.CheckError(t, text, err, "signers")
	}
}

// TestOpenSSHReadsOurs checks that the real ssh-keygen accepts the signatures of Key.Sign.
func TestOpenSSHReadsOurs(t *testing.T) {
	for _, args := range [][]string{{"-t", "ed25519"}, {"-t", "rsa", "-b", "2048"}} {
		file, public := keygen(t, args...)
		key, err := sign.ParseKey(read(t, file), nil)
		must(t, err)
		signature, err := key.Sign(rand.Reader, []byte(commit))
		must(t, err)
		if again, err := key.Sign(rand.Reader, []byte(commit)); err != nil || again != signature {
			t.Errorf("%v: signed twice, two signatures (%v)", args, err)
		}
		check := exec.Command("ssh-keygen", "-Y", "verify", "-n", "git", "-I", "bot",
			"-f", write(t, "bot "+public+"\n"), "-s", write(t, signature))
		check.Stdin = strings.NewReader(commit)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v: ssh-keygen -Y verify: %v\n%s", args, err, out)
		}
		if who, err := (sign.Policy{SSH: key.Signers("bot")}).Verify(insert(t, commit, signature)); err != nil || who != "bot" {
			t.Errorf("%v: %q, %v", args, who, err)
		}
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	locked, _ := keygen(t, "-t", "ed25519")
	sshKeygen(t, "-q", "-p", "-P", "", "-N", "open sesame", "-f", locked)
	data := read(t, locked)
	for _, passphrase := range []string{"", "wrong"} {
		if _, err := sign.ParseKey(data, []byte(passphrase)); !errors.Is(err, sign.ErrPassphrase) {
			t.Errorf("passphrase %q: %v", passphrase, err)
		}
	}
	_, err := sign.ParseKey(data, []byte("open sesame"))
	must(t, err)
	ecdsa, _ := keygen(t, "-t", "ecdsa")
	_, err = sign.ParseKey(read(t, ecdsa), nil)
	compare.CheckError(t, "ecdsa", err, "ssh-ed25519")
	if _, err := sign.ParseKey([]byte("no key"), nil); err == nil {
		t.Error("no key was read")
	}
}

// FuzzVerify changes a signed commit, and checks that Verify refuses each commit whose signed content has changed. The
// seeds are a commit with an SSH signature and a commit with an OpenPGP signature.
func FuzzVerify(f *testing.F) {
	key, public := keygen(f, "-t", "ed25519")
	list, err := sign.ParseSigners("signers", []byte("ann "+public))
	must(f, err)
	keyring, signature := openPGP(f, commit)
	ring, err := sign.ParseKeyring("keyring", []byte(keyring))
	must(f, err)
	policy := sign.Policy{SSH: list, OpenPGP: ring}
	for _, good := range []string{opensshSigns(f, key, "git", commit), signature} {
		signed := insert(f, commit, good)
		if who, err := policy.Verify(signed); err != nil {
			f.Fatalf("%q, %v", who, err)
		}
		f.Add(signed)
	}
	f.Add([]byte(commit))
	f.Add(insert(f, commit, "-----BEGIN PGP SIGNATURE-----\n\niQEz\n-----END PGP SIGNATURE-----\n"))
	ofSignature := regexp.MustCompile(`(?m)^gpgsig.*\n( .*\n)*`)
	f.Fuzz(func(t *testing.T, data []byte) {
		who, err := policy.Verify(data)
		head, body, _ := strings.Cut(string(data), "\n\n")
		if without := ofSignature.ReplaceAllString(head+"\n", "") + "\n" + body; err == nil && without != commit {
			t.Errorf("%q verifies as %s", data, who)
		}
	})
}

func FuzzParseSigners(f *testing.F) {
	f.Add(`ann namespaces="git",valid-before="20260101" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJl3dIeudNqd0DPMRD6OIh65tjkxFNOtGiiJmDDWvmJT`)
	f.Add(`"a b",c cert-authority ssh-rsa AAAA`)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := sign.ParseSigners("signers", []byte(text))
		if (list == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", text, list, err)
		}
	})
}

// TestCommitsThatCannotBeChecked checks that Verify refuses a commit with an incomplete header or without a valid time.
func TestCommitsThatCannotBeChecked(t *testing.T) {
	key, public := keygen(t, "-t", "ed25519")
	signs := func(content string) []byte { return insert(t, content, opensshSigns(t, key, "git", content)) }
	const stamp = "<ann@example.com> 1767225600 +0000\n\n"
	for name, c := range map[string]struct {
		commit []byte
		want   string // "" means accepted
	}{
		"whole":           {signs(commit), ""},
		"no end":          {[]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"), "no end of its header"},
		"no committer":    {signs("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nshop\n"), "valid committer time"},
		"no address":      {signs(strings.Replace(commit, stamp, "ann 1767225600 +0000\n\n", 1)), "valid committer time"},
		"no time":         {signs(strings.Replace(commit, stamp, "<ann@example.com>\n\n", 1)), "valid committer time"},
		"no number":       {signs(strings.Replace(commit, stamp, "<ann@example.com> now +0000\n\n", 1)), "valid committer time"},
		"a time of 0":     {signs(strings.Replace(commit, stamp, "<ann@example.com> 0 +0000\n\n", 1)), "valid committer time"},
		"a negative time": {signs(strings.Replace(commit, stamp, "<ann@example.com> -5 +0000\n\n", 1)), "valid committer time"},
		"the first time":  {signs(strings.Replace(commit, stamp, "<ann@example.com> 1 +0000\n\n", 1)), ""},
		"only an author":  {signs(strings.Replace(commit, "committer Ann <ann@example.com> 1767225600 +0000\n", "", 1)), "valid committer time"},
		"no name":         {signs(strings.Replace(commit, "Ann "+stamp, stamp, 1)), ""},
		"another header":  {signs(strings.Replace(commit, "\n\n", "\nencoding x\n\n", 1)), ""},
		"a folded header": {signs(strings.Replace(commit, "\n\n", "\nmergetag a\n b\n c\n\n", 1)), ""},
	} {
		_, err := verify(t, "ann "+public, c.commit)
		compare.CheckError(t, name, err, c.want)
	}
	for content, signature := range map[string]string{"tree x\n": "s", commit: " \n"} {
		if got, err := sign.Insert([]byte(content), signature); err == nil {
			t.Errorf("%q is put into %q: %q", signature, content, got)
		}
	}
}
