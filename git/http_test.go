package git_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

func httpWorld(t *testing.T) (*world, *gittest.Server) {
	t.Helper()
	server := newRepo(t, map[string]string{"README": "hello\n"})
	s := server.HTTP(gittest.HTTPOptions{})
	return &world{T: t, server: server, opts: git.Options{URL: s.URL}}, s
}

// TestHTTPRequests checks the HTTP requests that each operation sends.
func TestHTTPRequests(t *testing.T) {
	w, s := httpWorld(t)
	r := w.open()
	const poll, fetches, pushes = "POST /git-upload-pack", "POST /git-upload-pack", "POST /git-receive-pack"
	var log []string
	step := func(what string, requests ...string) {
		t.Helper()
		all := s.Requests()
		for i := range all {
			all[i] = strings.Replace(all[i], "/repo.git/", "/", 1)
		}
		log = append(log, requests...)
		compare.CheckNamed(t, what, log, all)
	}
	fetch(w, r)
	step("clone", "GET /info/refs?service=git-upload-pack", poll, fetches)
	for range 3 {
		fetch(w, r)
	}
	step("three idle polls", poll, poll, poll)
	first := push(w, r, stateUpdate("", "x", "1"))[0]
	step("the first push", "GET /info/refs?service=git-receive-pack", pushes)
	push(w, r, stateUpdate(first, "x", "2"))
	step("the second push", pushes)
	fetch(w, r)
	step("a poll after our own push", poll)
	w.server.CommitFiles("next", map[string]string{"n": "1"})
	fetch(w, r)
	step("a new commit", poll, fetches)

	stats := r.Stats()
	if int(stats.Requests) != len(s.Requests()) {
		t.Errorf("Stats counts %d requests, the server %d", stats.Requests, len(s.Requests()))
	}
	in, out := s.Bytes()
	if stats.Sent != in || stats.Received != out {
		t.Errorf("Stats counts %d bytes sent and %d received, the server %d and %d", stats.Sent, stats.Received, in, out)
	}
}

// greetings counts the requests for the capabilities of the server. The first push needs one such request.
func greetings(s *gittest.Server) (n int) {
	for _, request := range s.Requests() {
		if strings.HasSuffix(request, "/info/refs?service=git-receive-pack") {
			n++
		}
	}
	return n
}

func TestHTTPFaults(t *testing.T) {
	cases := map[string]struct {
		faults gittest.Faults
		want   error // the error that the push must return
		landed bool
	}{
		"the server is overloaded":                     {gittest.Faults{RejectPushes: 1}, git.ErrUnreachable, false},
		"the connection breaks before the server acts": {gittest.Faults{DropBefore: 1}, git.ErrUnreachable, false},
		"the connection breaks after the server acted": {gittest.Faults{DropAfter: 1}, nil, true},
		"the ref moves while the push is on its way":   {gittest.Faults{}, git.ErrConflict, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, s := httpWorld(t)
			r := w.open()
			fetch(w, r)
			if errors.Is(c.want, git.ErrConflict) {
				c.faults.BeforePush = func(int) { w.server.InBare("update-ref", "refs/heads/"+stateBranch, "refs/heads/main") }
			}
			s.Fault(c.faults)
			ids, err := pushAll(t.Context(), r, stateUpdate("", "x", "1"))
			if !errors.Is(err, c.want) {
				t.Fatalf("Push: %v, want %v", err, c.want)
			}
			s.Fault(gittest.Faults{})
			heads := fetch(w, r)
			switch {
			case c.landed && heads.State != ids[0]:
				t.Errorf("the commit %v did not land: %+v", ids, heads)
			case errors.Is(c.want, git.ErrUnreachable):
				if heads.State != "" {
					t.Errorf("something landed: %+v", heads)
				}
				before := greetings(s)
				push(w, r, stateUpdate("", "x", "1"))
				if greetings(s) == before {
					t.Error("a server that did not do as it said was not greeted anew")
				}
			case errors.Is(c.want, git.ErrConflict) && heads.State != w.server.Head():
				t.Errorf("heads %+v", heads)
			}
			w.server.Fsck()
		})
	}
}

func TestHTTPAnswersThatAreNotGit(t *testing.T) {
	answer := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	const advertisement = "application/x-git-upload-pack-advertisement"
	cases := map[string]struct {
		handler http.HandlerFunc
		want    error
		text    string
	}{
		"login page":   {answer(200, "text/html", "<html>Sign in</html>"), git.ErrNotFound, "not a Git repository"},
		"not found":    {answer(404, "text/plain", "Repository not found."), git.ErrNotFound, "Repository not found."},
		"unauthorised": {answer(401, "text/plain", "token "+secret+" expired"), git.ErrAuth, "token *** expired"},
		"forbidden":    {answer(403, "text/plain", "your IP is blocked"), git.ErrAuth, "your IP is blocked"},
		"rate limit":   {answer(429, "text/plain", "slow down"), git.ErrUnreachable, "slow down"},
		"bad gateway":  {answer(502, "text/html", "<html>"), git.ErrUnreachable, "502"},
		"teapot":       {answer(418, "text/plain", "short and stout"), nil, "short and stout"},
		"garbage":      {answer(200, advertisement, "hello"), nil, "not Git's protocol"},
		"cut off":      {answer(200, advertisement, "001e# service=git-upl"), git.ErrUnreachable, "unexpected EOF"},
		"nothing":      {answer(200, advertisement, ""), git.ErrUnreachable, ""},
		"error line":   {answer(200, advertisement, "0019ERR access denied: no"), git.ErrAuth, "access denied"},
		"SHA-256":      {answer(200, advertisement, "000eversion 2\n0019object-format=sha256\n0000"), nil, "sha256"},
		"rate limit until": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", "Sun, 29 Nov 2026 12:00:00 GMT")
			w.Header().Set("Retry-After", "Sun, 29 Nov 2026 12:00:30 GMT")
			http.Error(w, "slow down", http.StatusTooManyRequests)
		}, git.ErrUnreachable, "slow down"},
		"redirect in a loop": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"?service=git-upload-pack", http.StatusMovedPermanently)
		}, nil, "redirects"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(c.handler)
			defer srv.Close()
			r := open(t, git.Options{URL: srv.URL + "/x.git", Branch: "main", Auth: wire.Auth{Username: "u", Password: secret}})
			_, err := r.Fetch(t.Context())
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("Fetch: %v, want %v with %q", err, c.want, c.text)
			}
			if strings.HasPrefix(name, "rate limit") && rollout.RetryAfter(err) != 30*time.Second {
				t.Errorf("the next attempt waits %s, want as long as the server says", rollout.RetryAfter(err))
			}
			if strings.Contains(err.Error(), "<html>") {
				t.Errorf("a page is quoted: %v", err)
			}
			noSecret(t, err)
		})
	}
}

const secret = "hunter2-secret"

func noSecret(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("the error tells the secret: %v", err)
	}
}

func TestHTTPCredentials(t *testing.T) {
	repo := newRepo(t, map[string]string{"f": "1"})
	basic := repo.HTTP(gittest.HTTPOptions{User: "bot", Password: secret})
	inURL := strings.Replace(basic.URL, "://", "://bot:"+secret+"@", 1)
	wrongInURL := strings.Replace(basic.URL, "://", "://"+secret+":x@", 1)
	refreshed := 0
	refresh := func(context.Context) (user, password string, err error) {
		refreshed++
		return "bot", secret, nil
	}
	sealed := func(context.Context) (user, password string, err error) { return "", "", errors.New("vault is sealed") }
	cases := map[string]struct {
		url  string
		auth wire.Auth
		want error
	}{
		"in the URL":    {inURL, wire.Auth{}, nil},
		"in Auth":       {basic.URL, wire.Auth{Username: "bot", Password: secret}, nil},
		"Auth wins":     {wrongInURL, wire.Auth{Username: "bot", Password: secret}, nil},
		"none":          {basic.URL, wire.Auth{}, git.ErrAuth},
		"wrong":         {basic.URL, wire.Auth{Username: "bot", Password: secret + "x"}, git.ErrAuth},
		"wrong in URL":  {wrongInURL, wire.Auth{}, git.ErrAuth},
		"refreshed":     {basic.URL, wire.Auth{Refresh: refresh}, nil},
		"not refreshed": {basic.URL, wire.Auth{Refresh: sealed}, git.ErrAuth},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := open(t, git.Options{URL: c.url, Branch: "main", Auth: c.auth})
			if strings.Contains(r.Remote().String(), secret) {
				t.Errorf("Remote tells the secret: %s", r.Remote())
			}
			_, err := r.Fetch(t.Context())
			wantError(t, "Fetch", err, c.want)
			_, pushErr := pushAll(t.Context(), r, update("b", "", "m", map[string][]byte{name: {}}))
			if c.want != nil && !errors.Is(pushErr, c.want) {
				t.Errorf("Push: %v, want %v", pushErr, c.want)
			}
			noSecret(t, err)
			noSecret(t, pushErr)
		})
	}
	if refreshed == 0 {
		t.Error("Refresh was not asked")
	}
}

// TestHTTPRedirect checks that credentials are sent only to the configured server.
func TestHTTPRedirect(t *testing.T) {
	w, s := httpWorld(t)
	var authorized, posted bool
	final := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		authorized = authorized || r.Header.Get("Authorization") != ""
		posted = posted || r.Method == http.MethodPost
		s.Proxy().ServeHTTP(rw, r)
	}))
	defer final.Close()
	target := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		authorized = authorized || r.Header.Get("Authorization") != ""
		http.Redirect(rw, r, final.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	defer target.Close()
	origin := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			t.Error("no credentials for the origin")
		}
		http.Redirect(rw, r, target.URL+strings.Replace(r.URL.RequestURI(), "old", "repo", 1), http.StatusMovedPermanently)
	}))
	defer origin.Close()
	w.opts = git.Options{URL: origin.URL + "/old.git", Auth: wire.Auth{Username: "u", Password: secret}}
	r := w.open()
	fetch(w, r)
	push(w, r, stateUpdate("", "x", "1"))
	fetch(w, r)
	if !posted {
		t.Error("the final server was not asked for anything")
	}
	if authorized {
		t.Error("the credentials followed a redirect to another origin")
	}
}

// TestIncompletePack checks that Fetch refuses a commit that the server sends without its files.
func TestIncompletePack(t *testing.T) {
	w, s := httpWorld(t)
	const line = "packfile\n"
	alone := exec.Command("git", "pack-objects", "-q", "--stdout") // packs the commit without its tree and files
	alone.Dir, alone.Env, alone.Stdin = w.server.Bare, gittest.Env(), strings.NewReader(w.server.Head()+"\n")
	pack, err := alone.Output()
	must(t, err)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte("command=fetch")) {
			s.Proxy().ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = fmt.Fprintf(rw, "%04x%s%04x\x01%s0000", len(line)+4, line, len(pack)+5, pack)
	}))
	defer srv.Close()
	r := open(t, git.Options{URL: srv.URL + "/repo.git", Branch: "main"})
	_, err = r.Fetch(t.Context())
	compare.CheckError(t, "Fetch", err, "incomplete pack")
	if held(r, w.server.Head()) {
		t.Error("a commit without its files is held")
	}
}

// TestPushOneByOne checks pushes to a server without atomic pushes. The branches are pushed one by one until the server refuses a push.
func TestPushOneByOne(t *testing.T) {
	w, _ := httpWorld(t)
	w.server.InBare("config", "receive.advertiseAtomic", "false")
	r := w.open()
	heads := fetch(w, r)
	ids := push(w, r, stateUpdate("", "x", "1"), proposal("shop", "", heads.Main))
	if got := r.Stats().Pushes; got != 2 {
		t.Errorf("%d pushes for two branches", got)
	}
	push(w, r, stateUpdate(ids[0], "x", "2")) // one update is one push
	if got := r.Stats().Pushes; got != 3 {
		t.Errorf("%d pushes after one more", got)
	}
	state, next := w.server.Ref(stateBranch), w.server.CommitFiles("next", map[string]string{"n": "1"})
	_, err := pushAll(t.Context(), r, proposal("shop", heads.Main, next), stateUpdate(state, "x", "3"))
	wantError(t, "a proposal that is elsewhere", err, git.ErrConflict)
	if got := w.server.Ref(stateBranch); got != state {
		t.Errorf("the commit after the refusal was pushed: %s, was %s", got, state)
	}
}

// randomText returns n bytes that do not compress.
func randomText(n int) string {
	text := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(text)
	return string(text)
}

func TestHTTPTimeAndSize(t *testing.T) {
	w, s := httpWorld(t)
	s.Fault(gittest.Faults{Delay: 10 * time.Second})
	r := open(t, git.Options{URL: s.URL, Branch: "main", Timeout: 100 * time.Millisecond})
	_, err := r.Fetch(t.Context())
	wantError(t, "slow server", err, git.ErrUnreachable)
	wantError(t, "slow server", err, context.DeadlineExceeded)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err = r.Fetch(ctx); err == nil {
		t.Error("a cancelled Fetch succeeded")
	}
	s.Fault(gittest.Faults{})
	w.server.CommitFiles("big", map[string]string{"big": randomText(5000)})
	_, err = open(t, git.Options{URL: s.URL, Branch: "main", MaxBytes: 300}).Fetch(t.Context())
	compare.CheckError(t, "a large pack", err, "larger than the limit")
	s.Stop()
	_, err = r.Fetch(t.Context())
	wantError(t, "server gone", err, git.ErrUnreachable)
}
