package wire

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// pkts returns lines as packets; "" is a flush.
func pkts(lines ...string) []byte {
	var w pktWriter
	for _, line := range lines {
		if line == "" {
			w.flush()
		} else {
			w.linef("%s", line)
		}
	}
	return w.buf
}

// answering returns a session with a server that gives every request the same answer.
func answering(v2 bool, answer []byte) *Session {
	return &Session{
		bounds: boundsOver(1),
		advertisement: &advertisement{v2: v2, caps: capabilities{
			"shallow": "", "side-band-64k": "", "report-status": "", "delete-refs": ""}},
		stats: &counters{},
		exchange: func(context.Context, []byte) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(answer)), nil
		},
	}
}

// packed returns a commit with one file, and the pack that a server sends for it.
func packed(t testing.TB) (commit plumbing.Hash, pack []byte) {
	t.Helper()
	st := newTestStore()
	add := func(kind plumbing.ObjectType, encode func(plumbing.EncodedObject) error) plumbing.Hash {
		o := &plumbing.MemoryObject{}
		o.SetType(kind)
		err := encode(o)
		r, _ := o.Reader() // it returns no errors
		data, read := io.ReadAll(r)
		if err = errors.Join(err, read); err != nil {
			t.Fatal(err)
		}
		return st.Keep(kind, data)
	}
	blob := st.Keep(plumbing.BlobObject, []byte("hello\n"))
	tree := &object.Tree{Entries: []object.TreeEntry{{Name: "f", Mode: 0o100644, Hash: blob}}}
	root := add(plumbing.TreeObject, tree.Encode)
	commit = add(plumbing.CommitObject, (&object.Commit{TreeHash: root, Message: "m"}).Encode)
	pack, err := encodePack(st, []plumbing.Hash{blob, root, commit})
	if err != nil {
		t.Fatal(err)
	}
	return commit, pack
}

// TestReports checks a server's answers to a push. An answer without an explicit success is a failure.
func TestReports(t *testing.T) {
	main, state := Command{Ref: "refs/heads/main"}, Command{Ref: "refs/heads/state"}
	main.New, state.New = plumbing.NewHash(strings.Repeat("1", 40)), plumbing.NewHash(strings.Repeat("2", 40))
	for name, c := range map[string]struct {
		report []string
		want   string // "" = success
		moved  bool
	}{
		"both are there":   {[]string{"unpack ok\n", "ok refs/heads/main\n", "ok refs/heads/state\n", ""}, "", false},
		"one is left out":  {[]string{"unpack ok\n", "ok refs/heads/main\n", ""}, "state: no report", false},
		"another is there": {[]string{"unpack ok\n", "ok refs/heads/main\n", "ok refs/heads/other\n", ""}, "state: no report", false},
		"one has moved":    {[]string{"unpack ok\n", "ng refs/heads/main fetch first\n", "ok refs/heads/state\n", ""}, "main: fetch first", true},
		"a hook":           {[]string{"unpack ok\n", "ng refs/heads/main hook declined\n", "ok refs/heads/state\n", ""}, "main: hook declined", false},
		"a cause and another": {[]string{"unpack ok\n", "ng refs/heads/main hook declined\n",
			"ng refs/heads/state atomic push failure\n", ""}, "main: hook declined", false},
		"no cause": {[]string{"unpack ok\n", "ng refs/heads/main atomic push failure\n",
			"ng refs/heads/state atomic push failure\n", ""}, "main: atomic push failure; state: atomic push failure", false},
		"not unpacked": {[]string{"unpack index-pack abnormal exit\n", "ok refs/heads/main\n", "ok refs/heads/state\n", ""},
			"unpack: index-pack abnormal exit", false},
	} {
		t.Run(name, func(t *testing.T) {
			answer := pkts("\x01"+string(pkts(c.report...)), "\x02from a hook\n", "")
			err := answering(false, answer).report(bytes.NewReader(answer), []Command{main, state})
			if c.want == "" {
				if err != nil {
					t.Errorf("%v, want a success", err)
				}
				return
			}
			var no *Refused
			if !errors.As(err, &no) || strings.Join(no.Reasons, "; ") != c.want || no.Moved != c.moved || no.Remarks != "from a hook" {
				t.Errorf("%+v (%v), want %q, moved %t", no, err, c.want, c.moved)
			}
		})
	}
}

// TestFetchReadsAPack checks that the seeds of FuzzServerAnswers reach the parser of packs, in both versions.
func TestFetchReadsAPack(t *testing.T) {
	commit, pack := packed(t)
	for name, answer := range packAnswers(pack) {
		into := newTestStore()
		err := answering(name == "v2", answer).Fetch(t.Context(), into, Question{Wants: []plumbing.Hash{commit}, Depth: Shallow})
		if kind, _, has := into.Content(commit); err != nil || !has || kind != plumbing.CommitObject {
			t.Errorf("%s: %v, %v", name, err, has)
		}
		cut := packAnswers(append(pack[:len(pack)-1:len(pack)-1], pack[len(pack)-1]^1))[name]
		if err := answering(name == "v2", cut).Fetch(t.Context(), newTestStore(), Question{Wants: []plumbing.Hash{commit}, Haves: nil, Depth: Shallow}); err == nil {
			t.Errorf("%s: a pack with a wrong checksum was taken", name)
		}
	}
}

// packAnswers returns answers to a shallow fetch with a pack, by version.
func packAnswers(pack []byte) map[string][]byte {
	return map[string][]byte{
		"v2": pkts("packfile\n", "\x02counting\n", "\x01"+string(pack), ""),
		"v0": append(pkts("", "NAK\n"), pkts("\x01"+string(pack), "")...),
	}
}

// TestRedirectToPlainHTTP checks that a request to https is not repeated in plain text, with or without credentials.
func TestRedirectToPlainHTTP(t *testing.T) {
	asked := false
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer plain.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, auth := range map[string]Auth{
		"no credentials": {TLS: TLS{CAFile: ca}},
		"credentials":    {TLS: TLS{CAFile: ca}, Username: "u", Password: "p"},
	} {
		remote, _, err := ParseRemote(server.URL + "/repo.git")
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(remote, auth, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ToFetch(t.Context()); err == nil || !strings.Contains(err.Error(), "from https to plain http") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked {
		t.Error("the plain server was asked")
	}
}

// TestRedactURL checks the shown form of invalid URLs and other texts.
func TestRedactURL(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                 "",
		"/srv/repo.git":                    "/srv/repo.git",
		"git@host:org/repo":                "git@host:org/repo",
		"://u:secret@host/r":               "://host/r",
		"https://host/r":                   "https://host/r",
		"https://u:secret@host/r":          "https://host/r",
		"https://u:sec/ret@host/r":         "https://host/r",
		"https://host/r?token=secret rest": "https://host/r rest",
		"https://u:secret@host":            "https://host",
	} {
		if got := RedactURL(raw); got != want {
			t.Errorf("RedactURL(%q) = %q, want %q", raw, got, want)
		}
	}
}

// TestParseRemote checks the result of each form of a repository's address, with its credentials separate.
func TestParseRemote(t *testing.T) {
	for raw, want := range map[string]struct {
		r    Remote
		auth Auth
	}{
		"https://Git.Example.com/org/repo/":     {Remote{scheme: "https", host: "git.example.com", path: "/org/repo"}, Auth{}},
		"https://ann:s3cret@host/repo.git":      {Remote{scheme: "https", host: "host", path: "/repo.git"}, Auth{Username: "ann", Password: "s3cret"}},
		"ssh://deploy@host:2222/org/repo":       {Remote{scheme: "ssh", user: "deploy", host: "host:2222", path: "/org/repo"}, Auth{}},
		"git+ssh://deploy:x@host/repo":          {Remote{scheme: "ssh", user: "deploy", host: "host", path: "/repo"}, Auth{}},
		"ssh://host/repo":                       {Remote{scheme: "ssh", host: "host", path: "/repo"}, Auth{}},
		"deploy@host:org/repo":                  {Remote{scheme: "ssh", user: "deploy", host: "host", path: "org/repo"}, Auth{}},
		"git://host/repo":                       {Remote{scheme: "git", host: "host", path: "/repo"}, Auth{}},
		"file://elsewhere/srv/../srv/repo.git/": {Remote{scheme: "file", path: "/srv/repo.git"}, Auth{}},
	} {
		if r, auth, err := ParseRemote(raw); err != nil || r != want.r || auth.Username != want.auth.Username || auth.Password != want.auth.Password {
			t.Errorf("%s is %+v %+v, %v", raw, r, auth, err)
		}
	}
	for _, raw := range []string{
		"", "a\nb", "ext::sh", "ftp://host/repo", "https://host/repo?a=b", "https://host/repo#main", "ssh:///repo", "ssh://-oProxy/repo", "https://host/",
	} {
		if r, _, err := ParseRemote(raw); err == nil {
			t.Errorf("%q is %+v", raw, r)
		}
	}
}
