package git

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"path"
	"sort"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/rollout"
)

// A server may send anything: no answer may panic, hang, or be taken for objects that it does not hold.
func FuzzServerAnswers(f *testing.F) {
	f.Add([]byte("000eversion 2\n0015agent=git/2.39.5\n0000"))
	f.Add([]byte("001e# service=git-upload-pack\n00000030" + strings.Repeat("a", 40) + " HEAD\x00\n0000"))
	f.Add([]byte("0032" + strings.Repeat("b", 40) + " HEAD\n0000"))
	f.Add([]byte("000dpackfile\n0009\x01PACK0000"))
	f.Add([]byte("0008NAK\n0009\x02text0000"))
	f.Add([]byte("000eunpack ok\n0016ok refs/heads/main\n0000"))
	f.Add([]byte("0008ERR \n0001000200030004fffe"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		ctx := context.Background()
		body := func() io.ReadCloser { return io.NopCloser(bytes.NewReader(answer)) }
		_, _ = readAdvertisement(newPktReader(body()))
		for _, v2 := range []bool{true, false} {
			s := &session{
				advertisement: &advertisement{v2: v2, caps: capabilities{
					"shallow": "", "side-band-64k": "", "report-status": "", "delete-refs": ""}},
				exchange: func(context.Context, []byte) (io.ReadCloser, error) { return body(), nil },
			}
			_, _ = s.lookUp(ctx, []string{"refs/heads/"})
			want := plumbing.NewHash(strings.Repeat("a", 40))
			st := newStore()
			if err := s.download(ctx, st, question{[]plumbing.Hash{want}, nil, shallow}); err == nil && st.verify(want) == nil {
				t.Error("a commit whose id is not the hash of any content was accepted")
			}
			c := command{ref: "refs/heads/main", new: want}
			if err := s.upload(ctx, []command{c}, newStore()); err == nil &&
				!(bytes.Contains(answer, []byte("unpack ok")) && bytes.Contains(answer, []byte("ok refs/heads/main"))) {
				t.Error("a push without a good report was taken for a success")
			}
		}
	})
}

// Whatever surrounds it, the password of a URL is never shown.
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
		if strings.Contains(remote.String(), secret) {
			t.Errorf("ParseRemote(%q) = %s", raw, remote)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("ParseRemote(%q): %v", raw, err)
		}
		if strings.Contains(RedactURL(raw), secret) {
			t.Errorf("RedactURL(%q) = %s", raw, RedactURL(raw))
		}
	})
}

// Edits in memory against a map of paths; the slower test against git itself is TestEditsAgainstModel.
func FuzzTreeEdits(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed*7)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		names := []string{"a", "a.b", "a-", "b"}
		st, root, files := newStore(), plumbing.ZeroHash, map[string]string{}
		for range 12 {
			edits := map[string][]byte{}
			for range 1 + r.IntN(3) {
				p := path.Join(names[r.IntN(4)], []string{"", "x", "a.b/y"}[r.IntN(3)])
				if edits[p] = nil; r.IntN(2) > 0 {
					edits[p] = []byte{byte('0' + r.IntN(3))}
				}
			}
			build := &builder{from: st, made: newStore()}
			next, err := build.root(root, rollout.Update{Edits: edits})
			want, ok := applyToMap(files, edits)
			if (err == nil) != ok {
				t.Fatalf("edits %q on %q: %v", edits, files, err)
			}
			if err != nil {
				continue
			}
			st.addAll(build.made)
			if err := st.verifyTree(next); err != nil {
				t.Fatal(err)
			}
			root, files = next, want
			s := &Snapshot{store: st, root: root}
			for p, content := range files {
				if got, err := s.ReadFile(p); string(got) != content || err != nil {
					t.Fatalf("after %q: %s = %q, %v, want %q", edits, p, got, err, content)
				}
			}
			changes, err := Changes(EmptySnapshot(), s, "")
			if err != nil || len(changes) != len(files) {
				t.Fatalf("after %q: %d files, want %d: %v", edits, len(changes), len(files), err)
			}
		}
	})
}

func applyToMap(files map[string]string, edits map[string][]byte) (map[string]string, bool) {
	next := map[string]string{}
	for p, content := range files {
		keep := true
		for e, c := range edits {
			keep = keep && !(c == nil && (p == e || strings.HasPrefix(p, e+"/")))
		}
		if keep {
			next[p] = content
		}
	}
	for p, content := range edits {
		if content != nil {
			next[p] = string(content)
		}
	}
	all := make([]string, 0, len(next))
	for p := range next {
		all = append(all, p+"/")
	}
	sort.Strings(all)
	for i := 1; i < len(all); i++ {
		if strings.HasPrefix(all[i], all[i-1]) {
			return nil, false // a file and a directory of the same name
		}
	}
	return next, true
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
