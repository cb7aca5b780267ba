package wire

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// FuzzServerAnswers checks that no response of a server makes a fetch or push panic or hang. The id of each stored object must be the
// object's hash.
func FuzzServerAnswers(f *testing.F) {
	f.Add([]byte("000eversion 2\n0015agent=git/2.39.5\n0000"))
	f.Add([]byte("001e# service=git-upload-pack\n00000030" + strings.Repeat("a", 40) + " HEAD\x00\n0000"))
	f.Add([]byte("0032" + strings.Repeat("b", 40) + " HEAD\n0000"))
	f.Add([]byte("000dpackfile\n0009\x01PACK0000"))
	f.Add([]byte("0008NAK\n0009\x02text0000"))
	f.Add([]byte("000eunpack ok\n0016ok refs/heads/main\n0000"))
	f.Add([]byte("0008ERR \n0001000200030004fffe"))
	commit, pack := packed(f)
	for _, answer := range packAnswers(pack) {
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		ctx := context.Background()
		body := func() io.ReadCloser { return io.NopCloser(bytes.NewReader(answer)) }
		_, _ = readAdvertisement(newPktReader(body()))
		for _, v2 := range []bool{true, false} {
			s := answering(v2, answer)
			_, _ = s.LookUp(ctx, []string{"refs/heads/"})
			want := plumbing.NewHash(strings.Repeat("a", 40))
			st := newTestStore()
			_ = s.Fetch(ctx, st, Question{Wants: []plumbing.Hash{want, commit}, Depth: Shallow})
			if _, _, has := st.Content(want); has {
				t.Error("a commit whose id is not the hash of any content was accepted")
			}
			for id, data := range st.objects { // a stored object must not share a buffer that is reused
				if plumbing.ComputeHash(st.kinds[id], data) != id {
					t.Errorf("%s is kept as %s", st.kinds[id], id)
				}
			}
			c := Command{Ref: "refs/heads/main", New: want}
			if err := s.Push(ctx, []Command{c}, newTestStore(), nil); err == nil &&
				!(bytes.Contains(answer, []byte("unpack ok")) && bytes.Contains(answer, []byte("ok refs/heads/main"))) {
				t.Error("a push without a good report was taken for a success")
			}
		}
	})
}

// FuzzParseRemote checks that neither a printed URL nor an error contains the URL's password, even if the URL is invalid.
func FuzzParseRemote(f *testing.F) {
	const secret = "hunter2-secret"
	for _, rest := range []string{"host/repo", "host:bad/repo", "host", "/x@y/z", "ho st/%zz", "host/\n"} {
		f.Add("https", "user", rest)
		f.Add("ssh", "u:v", rest)
	}
	f.Fuzz(func(t *testing.T, scheme, user, rest string) {
		if strings.ContainsAny(scheme, ":/?@") || strings.ContainsAny(user, "/?#") || strings.Contains(scheme+user+rest, secret) {
			t.Skip()
		}
		raw := scheme + "://" + user + ":" + secret + "@" + rest
		remote, _, err := ParseRemote(raw)
		if shown := fmt.Sprintf("%s, %v, %s", remote.String(), err, RedactURL(raw)); strings.Contains(shown, secret) {
			t.Errorf("%q is shown: %s", raw, shown)
		}
	})
}

// listedKey returns a server's host key, and its text in a known_hosts file.
func listedKey(t testing.TB) (key ssh.PublicKey, listed string) {
	t.Helper()
	key, err := ssh.NewPublicKey(ed25519.PublicKey(bytes.Repeat([]byte{7}, ed25519.PublicKeySize)))
	must(t, err)
	return key, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// FuzzKnownHosts checks that a host's key is accepted only if the known_hosts file contains this key.
func FuzzKnownHosts(f *testing.F) {
	key, listed := listedKey(f)
	_, encoded, _ := strings.Cut(listed, " ")
	f.Add("git.example.com " + listed + " a comment\n# and more\n")
	f.Add("[git.example.com]:2222,*.example.com,!x ssh-rsa AAAA")
	f.Add("@revoked * " + listed)
	f.Add("@cert-authority *.example.com " + listed)
	f.Add(knownhosts.HashHostname("git.example.com") + " " + listed)
	f.Add("|1|AAAA|AAAA ssh-ed25519")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(dir, "known_hosts")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		d := &sshDialer{known: file, addr: "git.example.com:22"}
		check, err := d.hosts()
		if err != nil {
			return
		}
		d.hostKeyAlgorithms(check)
		address := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 22}
		if check(d.addr, address, key) == nil && !strings.Contains(text, encoded) {
			t.Errorf("%q knows a key that is not in it", text)
		}
	})
}

// TestKnownHosts checks which known_hosts files make a host's key accepted.
func TestKnownHosts(t *testing.T) {
	key, listed := listedKey(t)
	for text, want := range map[string]bool{
		"git.example.com " + listed:                               true,
		knownhosts.HashHostname("git.example.com") + " " + listed: true,
		"*.example.com " + listed:                                 true,
		"*.example.com,!git.example.com " + listed:                false,
		"[git.example.com]:2222 " + listed:                        false,
		"@revoked * " + listed:                                    false,
		"@revoked * " + listed + "\ngit.example.com " + listed:    false,
		"# git.example.com " + listed:                             false,
	} {
		file := filepath.Join(t.TempDir(), "known_hosts")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		check, err := (&sshDialer{known: file}).hosts()
		must(t, err)
		err = check("git.example.com:22", &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 22}, key)
		if (err == nil) != want {
			t.Errorf("%q: %v, want known %t", text, err, want)
		}
	}
}

func TestClassifyReasons(t *testing.T) {
	cases := map[string]struct{ moved, race bool }{
		"non-fast-forward":     {true, false},
		"fetch first":          {true, false},
		"failed to update ref": {true, true},
		"cannot lock ref 'refs/heads/x': is at 1 but expected 2": {true, true},
		"incorrect old value provided":                           {true, true},
		"stale info":                                             {true, true},
		"reference already exists":                               {true, true},
		"pre-receive hook declined":                              {false, false},
		"hook declined: failed to update ref":                    {false, false},
		"protected branch hook declined":                         {false, false},
		"refusing to update checked out branch":                  {false, false},
		"branch is currently checked out":                        {false, false},
	}
	for reason, want := range cases {
		if got := saysMoved(reason); got != want.moved {
			t.Errorf("saysMoved(%q) = %v", reason, got)
		}
		if got := saysRace(reason); got != want.race {
			t.Errorf("saysRace(%q) = %v", reason, got)
		}
	}
}
