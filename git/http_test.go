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
	server := gittest.New(t)
	server.CommitFiles("first", map[string]string{"README": "hello\n"})
	s := server.HTTP(gittest.HTTPOptions{})
	return &world{T: t, server: server, opts: git.Options{URL: s.URL}}, s
}

// TestHTTPRequests checks the promised costs of each request.
func TestHTTPRequests(t *testing.T) {
	w, s := httpWorld(t)
	r := w.open()
	step := func(what string, want ...string) {
		t.Helper()
		all := s.Requests()
		for i := range all {
			all[i] = strings.Replace(all[i], "/repo.git/", "/", 1)
		}
		if diff := compare.Diff(want, all); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	log := []string{"GET /info/refs?service=git-upload-pack", "POST /git-upload-pack", "POST /git-upload-pack"}
	w.fetch(r)
	step("clone", log...)
	for range 3 {
		w.fetch(r)
		log = append(log, "POST /git-upload-pack")
	}
	step("three idle polls", log...)
	first := w.push(r, stateUpdate("", "x", "1"))[0]
	log = append(log, "GET /info/refs?service=git-receive-pack", "POST /git-receive-pack")
	step("the first push", log...)
	w.push(r, stateUpdate(first, "x", "2"))
	log = append(log, "POST /git-receive-pack")
	step("the second push", log...)
	w.fetch(r)
	log = append(log, "POST /git-upload-pack")
	step("a poll after our own push", log...)
	w.server.CommitFiles("next", map[string]string{"n": "1"})
	w.fetch(r)
	log = append(log, "POST /git-upload-pack", "POST /git-upload-pack")
	step("a new commit", log...)

	stats := r.Stats()
	if int(stats.Requests) != len(s.Requests()) {
		t.Errorf("Stats counts %d requests, the server %d", stats.Requests, len(s.Requests()))
	}
	in, out := s.Bytes()
	if stats.Sent != in || stats.Received != out {
		t.Errorf("Stats counts %d bytes sent and %d received, the server %d and %d", stats.Sent, stats.Received, in, out)
	}
}

// greetings counts requests for a server's capabilities before a push.
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
		faults func(w *world) gittest.Faults
		want   error // of the push
		landed bool
	}{
		"the server is overloaded": {
			faults: func(*world) gittest.Faults { return gittest.Faults{RejectPushes: 1} }, want: git.ErrUnreachable,
		},
		"the connection breaks before the server acts": {
			faults: func(*world) gittest.Faults { return gittest.Faults{DropBefore: 1} }, want: git.ErrUnreachable,
		},
		"the connection breaks after the server acted": {
			faults: func(*world) gittest.Faults { return gittest.Faults{DropAfter: 1} }, landed: true,
		},
		"the ref moves while the push is on its way": {
			faults: func(w *world) gittest.Faults {
				return gittest.Faults{BeforePush: func(int) {
					w.server.InBare("update-ref", "refs/heads/"+stateBranch, "refs/heads/main")
				}}
			}, want: git.ErrConflict,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, s := httpWorld(t)
			r := w.open()
			w.fetch(r)
			s.Fault(c.faults(w))
			ids, err := pushAll(t.Context(), r, stateUpdate("", "x", "1"))
			if !errors.Is(err, c.want) {
				t.Fatalf("Push: %v, want %v", err, c.want)
			}
			s.Fault(gittest.Faults{})
			heads := w.fetch(r)
			switch {
			case c.landed && heads.State != ids[0]:
				t.Errorf("the commit %v did not land: %+v", ids, heads)
			case errors.Is(c.want, git.ErrUnreachable):
				if heads.State != "" {
					t.Errorf("something landed: %+v", heads)
				}
				before := greetings(s)
				w.push(r, stateUpdate("", "x", "1"))
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
		"login page":   {answer(200, "text/html", "<html>Sign in</html>"), git.ErrNotFound, "no Git server"},
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
		"redirect in a loop": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"?service=git-upload-pack", http.StatusMovedPermanently)
		}, nil, "redirects"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(c.handler)
			defer srv.Close()
			r, err := git.Open(t.Context(), git.Options{URL: srv.URL + "/x.git", Branch: "main", Auth: wire.Auth{Username: "u", Password: secret}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Fetch(t.Context())
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Fetch: %v, want %v with %q", err, c.want, c.text)
			}
			if name == "rate limit" && rollout.RetryAfter(err) != 30*time.Second {
				t.Errorf("the next attempt waits %s, want as long as the server says", rollout.RetryAfter(err))
			}
			if err != nil && strings.Contains(err.Error(), "<html>") {
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
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"f": "1"})
	basic := repo.HTTP(gittest.HTTPOptions{User: "bot", Password: secret})
	inURL := strings.Replace(basic.URL, "://", "://bot:"+secret+"@", 1)
	wrongInURL := strings.Replace(basic.URL, "://", "://"+secret+":x@", 1)
	refresh := 0
	cases := map[string]struct {
		opts git.Options
		want error
	}{
		"in the URL":    {git.Options{URL: inURL}, nil},
		"in Auth":       {git.Options{URL: basic.URL, Auth: wire.Auth{Username: "bot", Password: secret}}, nil},
		"Auth wins":     {git.Options{URL: wrongInURL, Auth: wire.Auth{Username: "bot", Password: secret}}, nil},
		"none":          {git.Options{URL: basic.URL}, git.ErrAuth},
		"wrong":         {git.Options{URL: basic.URL, Auth: wire.Auth{Username: "bot", Password: secret + "x"}}, git.ErrAuth},
		"wrong in URL":  {git.Options{URL: wrongInURL}, git.ErrAuth},
		"refreshed":     {git.Options{URL: basic.URL, Auth: wire.Auth{Refresh: func(context.Context) (string, string, error) { refresh++; return "bot", secret, nil }}}, nil},
		"not refreshed": {git.Options{URL: basic.URL, Auth: wire.Auth{Refresh: func(context.Context) (string, string, error) { return "", "", errors.New("vault is sealed") }}}, git.ErrAuth},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.opts.Branch = "main"
			r, err := git.Open(t.Context(), c.opts)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(r.Remote().String(), secret) {
				t.Errorf("Remote tells the secret: %s", r.Remote())
			}
			_, err = r.Fetch(t.Context())
			if !errors.Is(err, c.want) {
				t.Errorf("Fetch: %v, want %v", err, c.want)
			}
			_, pushErr := pushAll(t.Context(), r, rollout.Update{Branch: "b", Edits: map[string][]byte{name: {}}, Message: "m", When: when})
			if c.want != nil && !errors.Is(pushErr, c.want) {
				t.Errorf("Push: %v, want %v", pushErr, c.want)
			}
			noSecret(t, err)
			noSecret(t, pushErr)
		})
	}
	if refresh == 0 {
		t.Error("Refresh was not asked")
	}
}

// TestHTTPRedirect checks that credentials stay with their server.
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
	w.fetch(r)
	w.push(r, stateUpdate("", "x", "1"))
	w.fetch(r)
	if !posted {
		t.Error("the final server was not asked for anything")
	}
	if authorized {
		t.Error("the credentials followed a redirect to another origin")
	}
}

// TestIncompletePack sends a commit without its file: it does not become a head.
func TestIncompletePack(t *testing.T) {
	w, s := httpWorld(t)
	const line = "packfile\n"
	alone := exec.Command("git", "pack-objects", "-q", "--stdout") // the commit without its files
	alone.Dir, alone.Env, alone.Stdin = w.server.Bare, gittest.Env(), strings.NewReader(w.server.Head()+"\n")
	pack, err := alone.Output()
	if err != nil {
		t.Fatal(err)
	}
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
	r, err := git.Open(t.Context(), git.Options{URL: srv.URL + "/repo.git", Branch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if heads, err := r.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "incomplete pack") {
		t.Errorf("Fetch: %+v, %v", heads, err)
	}
	if held(r, w.server.Head()) {
		t.Error("a commit without its files is held")
	}
}

// TestPushOneByOne pushes to a server that cannot update two branches at once. Each is pushed alone, up to the first
// refusal.
func TestPushOneByOne(t *testing.T) {
	w, _ := httpWorld(t)
	w.server.InBare("config", "receive.advertiseAtomic", "false")
	r := w.open()
	heads := w.fetch(r)
	ids := w.push(r, stateUpdate("", "x", "1"), proposal("shop", "", heads.Main))
	if got := r.Stats().Pushes; got != 2 {
		t.Errorf("%d pushes for two branches", got)
	}
	w.push(r, stateUpdate(ids[0], "x", "2")) // a single update is a single push
	if got := r.Stats().Pushes; got != 3 {
		t.Errorf("%d pushes after one more", got)
	}
	state, next := w.server.Ref(stateBranch), w.server.CommitFiles("next", map[string]string{"n": "1"})
	_, err := pushAll(t.Context(), r, proposal("shop", heads.Main, next), stateUpdate(state, "x", "3"))
	if !errors.Is(err, git.ErrConflict) {
		t.Errorf("a proposal that is elsewhere: %v, want ErrConflict", err)
	}
	if got := w.server.Ref(stateBranch); got != state {
		t.Errorf("the commit after the refusal was pushed: %s, was %s", got, state)
	}
}

// randomText returns text that does not compress.
func randomText(n int) string {
	text := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(text)
	return string(text)
}

func TestHTTPTimeAndSize(t *testing.T) {
	w, s := httpWorld(t)
	s.Fault(gittest.Faults{Delay: 10 * time.Second})
	r, err := git.Open(t.Context(), git.Options{URL: s.URL, Branch: "main", Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = r.Fetch(t.Context()); !errors.Is(err, git.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("slow server: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err = r.Fetch(ctx); err == nil {
		t.Error("a cancelled Fetch succeeded")
	}
	s.Fault(gittest.Faults{})
	w.server.CommitFiles("big", map[string]string{"big": randomText(5000)})
	small, err := git.Open(t.Context(), git.Options{URL: s.URL, Branch: "main", MaxBytes: 300})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := small.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than the limit") {
		t.Errorf("a pack larger than the limit: %v", err)
	}
	s.Stop()
	if _, err := r.Fetch(t.Context()); !errors.Is(err, git.ErrUnreachable) {
		t.Errorf("server gone: %v, want ErrUnreachable", err)
	}
}
