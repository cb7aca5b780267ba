package wire

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/memory"
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
			s := &Session{
				advertisement: &advertisement{v2: v2, caps: capabilities{
					"shallow": "", "side-band-64k": "", "report-status": "", "delete-refs": ""}},
				stats:    &counters{},
				exchange: func(context.Context, []byte) (io.ReadCloser, error) { return body(), nil },
			}
			_, _ = s.LookUp(ctx, []string{"refs/heads/"})
			want := plumbing.NewHash(strings.Repeat("a", 40))
			st := memory.NewStorage()
			_ = s.Fetch(ctx, st, Question{[]plumbing.Hash{want}, nil, Shallow})
			if _, err := st.EncodedObject(plumbing.AnyObject, want); err == nil {
				t.Error("a commit whose id is not the hash of any content was accepted")
			}
			c := Command{Ref: "refs/heads/main", New: want}
			if err := s.Push(ctx, []Command{c}, memory.NewStorage(), nil); err == nil &&
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
