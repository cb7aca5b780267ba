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

	"gitrollout.dev/gitrollout/internal/compare"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pkts encodes each line as a packet, and a line "" as a flush packet.
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

// answering returns a session with a server that responds to each request with the same bytes.
func answering(v2 bool, answer []byte) *Session {
	return &Session{
		bounds: boundsOver(1),
		advertisement: &advertisement{V2: v2, caps: capabilities{
			"shallow": "", "side-band-64k": "", "report-status": "", "delete-refs": ""}},
		stats: &counters{},
		exchange: func(context.Context, []byte) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(answer)), nil
		},
	}
}

// packed returns the id of a commit with one file, and a pack of this commit, its tree and its file.
func packed(t testing.TB) (commit plumbing.Hash, pack []byte) {
	t.Helper()
	st := newTestStore()
	add := func(kind plumbing.ObjectType, encode func(plumbing.EncodedObject) error) plumbing.Hash {
		o := &plumbing.MemoryObject{}
		o.SetType(kind)
		err := encode(o)
		r, _ := o.Reader() // Reader never returns an error
		data, read := io.ReadAll(r)
		must(t, errors.Join(err, read))
		return st.Keep(kind, data)
	}
	blob := st.Keep(plumbing.BlobObject, []byte("hello\n"))
	tree := &object.Tree{Entries: []object.TreeEntry{{Name: "f", Mode: 0o100644, Hash: blob}}}
	root := add(plumbing.TreeObject, tree.Encode)
	commit = add(plumbing.CommitObject, (&object.Commit{TreeHash: root, Message: "m"}).Encode)
	pack, err := encodePack(st, []plumbing.Hash{blob, root, commit})
	must(t, err)
	return commit, pack
}

// TestReports checks the reports that a server sends after a push. A ref without "ok" counts as failed.
func TestReports(t *testing.T) {
	main, state := Command{Ref: "refs/heads/main"}, Command{Ref: "refs/heads/state"}
	main.New, state.New = plumbing.NewHash(strings.Repeat("1", 40)), plumbing.NewHash(strings.Repeat("2", 40))
	const okMain, okState = "ok refs/heads/main\n", "ok refs/heads/state\n"
	const hooked, atomic = "ng refs/heads/main hook declined\n", "ng refs/heads/state atomic push failure\n"
	for name, c := range map[string]struct {
		report []string
		want   string // "" means success
		moved  bool
	}{
		"both are there":      {[]string{"unpack ok\n", okMain, okState}, "", false},
		"one is left out":     {[]string{"unpack ok\n", okMain}, "state: no report", false},
		"another is there":    {[]string{"unpack ok\n", okMain, "ok refs/heads/other\n"}, "state: no report", false},
		"one has moved":       {[]string{"unpack ok\n", "ng refs/heads/main fetch first\n", okState}, "main: fetch first", true},
		"a hook":              {[]string{"unpack ok\n", hooked, okState}, "main: hook declined", false},
		"a cause and another": {[]string{"unpack ok\n", hooked, atomic}, "main: hook declined", false},
		"no cause": {[]string{"unpack ok\n", "ng refs/heads/main atomic push failure\n", atomic},
			"main: atomic push failure; state: atomic push failure", false},
		"not unpacked": {[]string{"unpack index-pack abnormal exit\n", okMain, okState}, "unpack: index-pack abnormal exit", false},
	} {
		t.Run(name, func(t *testing.T) {
			answer := pkts("\x01"+string(pkts(append(c.report, "")...)), "\x02from a hook\n", "")
			err := answering(false, answer).report(bytes.NewReader(answer), []Command{main, state})
			if c.want == "" {
				must(t, err)
				return
			}
			var no *Refused
			if !errors.As(err, &no) || strings.Join(no.Reasons, "; ") != c.want || no.Moved != c.moved || no.Remarks != "from a hook" {
				t.Errorf("%+v (%v), want %q, moved %t", no, err, c.want, c.moved)
			}
		})
	}
}

// TestFetchReadsAPack checks that Fetch reads the packs in packAnswers. FuzzServerAnswers needs these seeds to reach the pack parser.
func TestFetchReadsAPack(t *testing.T) {
	commit, pack := packed(t)
	for name, answer := range packAnswers(pack) {
		into, question := newTestStore(), Question{Wants: []plumbing.Hash{commit}, Depth: Shallow}
		err := answering(name == "v2", answer).Fetch(t.Context(), into, question)
		if kind, _, has := into.Content(commit); err != nil || !has || kind != plumbing.CommitObject {
			t.Errorf("%s: %v, %v", name, err, has)
		}
		cut := packAnswers(append(pack[:len(pack)-1:len(pack)-1], pack[len(pack)-1]^1))[name]
		if err := answering(name == "v2", cut).Fetch(t.Context(), newTestStore(), question); err == nil {
			t.Errorf("%s: a pack with a wrong checksum was taken", name)
		}
	}
}

// packAnswers returns the response to a shallow fetch with the given pack, for each protocol version.
func packAnswers(pack []byte) map[string][]byte {
	return map[string][]byte{
		"v2": pkts("packfile\n", "\x02counting\n", "\x01"+string(pack), ""),
		"v0": append(pkts("", "NAK\n"), pkts("\x01"+string(pack), "")...),
	}
}

// TestRedirectToPlainHTTP checks that no redirect from https to http is followed, with or without credentials.
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
	must(t, os.WriteFile(ca, certificate, 0o600))
	for name, auth := range map[string]Auth{
		"no credentials": {TLS: TLS{CAFile: ca}},
		"credentials":    {TLS: TLS{CAFile: ca}, Username: "u", Password: "p"},
	} {
		remote, _, err := ParseRemote(server.URL + "/repo.git")
		must(t, err)
		s, err := Open(remote, auth, 1<<20)
		must(t, err)
		_, err = s.ToFetch(t.Context())
		compare.CheckError(t, name, err, "from https to plain http")
	}
	if asked {
		t.Error("the plain server was asked")
	}
}

// TestRedactURL checks RedactURL for valid and invalid URLs, and for other texts.
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

// TestParseRemote checks the parts, the printed form and the credentials for each form of a repository's address.
func TestParseRemote(t *testing.T) {
	const secret = "hunter2-secret"
	for raw, want := range map[string]struct {
		shown string
		r     Remote
		auth  Auth
	}{
		"https://Git.Example.com/org/repo/": {"https://git.example.com/org/repo",
			Remote{scheme: "https", host: "git.example.com", path: "/org/repo"}, Auth{}},
		"https://ann:" + secret + "@host/repo.git": {"https://host/repo.git",
			Remote{scheme: "https", host: "host", path: "/repo.git"}, Auth{Username: "ann", Password: secret}},
		"https://" + secret + "@host/r": {"https://host/r", Remote{scheme: "https", host: "host", path: "/r"}, Auth{Username: secret}},
		"http://127.0.0.1:8080/r":       {"http://127.0.0.1:8080/r", Remote{scheme: "http", host: "127.0.0.1:8080", path: "/r"}, Auth{}},
		"ssh://deploy@host:2222/org/repo": {"ssh://deploy@host:2222/org/repo",
			Remote{scheme: "ssh", user: "deploy", host: "host:2222", path: "/org/repo"}, Auth{}},
		"ssh://deploy:" + secret + "@host/repo": {"ssh://deploy@host/repo",
			Remote{scheme: "ssh", user: "deploy", host: "host", path: "/repo"}, Auth{}},
		"git+ssh://deploy:x@host/repo": {"ssh://deploy@host/repo",
			Remote{scheme: "ssh", user: "deploy", host: "host", path: "/repo"}, Auth{}},
		"ssh://host/repo": {"ssh://host/repo", Remote{scheme: "ssh", host: "host", path: "/repo"}, Auth{}},
		"deploy@host:org/repo": {"ssh://deploy@host/org/repo",
			Remote{scheme: "ssh", user: "deploy", host: "host", path: "org/repo"}, Auth{}},
		"host:repo":                             {"ssh://host/repo", Remote{scheme: "ssh", host: "host", path: "repo"}, Auth{}},
		"git://host/repo":                       {"git://host/repo", Remote{scheme: "git", host: "host", path: "/repo"}, Auth{}},
		"file://elsewhere/srv/../srv/repo.git/": {"/srv/repo.git", Remote{scheme: "file", path: "/srv/repo.git"}, Auth{}},
		"file:///srv/repo.git":                  {"/srv/repo.git", Remote{scheme: "file", path: "/srv/repo.git"}, Auth{}},
		"/srv/repo.git":                         {"/srv/repo.git", Remote{scheme: "file", path: "/srv/repo.git"}, Auth{}},
	} {
		r, auth, err := ParseRemote(raw)
		if err != nil || r != want.r || r.String() != want.shown || auth.Username != want.auth.Username || auth.Password != want.auth.Password {
			t.Errorf("%s is %+v %+v, %v", raw, r, auth, err)
		}
	}
	for _, raw := range []string{
		"", "a\nb", "https://host/\nr", "ext::sh -c " + secret, "ftp://u:" + secret + "@host/r", "https://host/r?token=" + secret,
		"https://host/repo#main", "https://host/", "https://u:" + secret + "@/path", "https://u:" + secret + "@host",
		"https://u:" + secret + "/x@host:bad/y", "https://u:" + secret + "@host:port/r", "https://u:" + secret + "%zz@host/r",
		"ssh:///repo", "ssh://-oProxyCommand=x/r",
	} {
		r, _, err := ParseRemote(raw)
		if err == nil {
			t.Errorf("%q is %+v", raw, r)
		} else if strings.Contains(err.Error(), secret) && !strings.HasPrefix(raw, "ext") {
			t.Errorf("ParseRemote(%q) tells the secret: %v", raw, err)
		}
	}
}
