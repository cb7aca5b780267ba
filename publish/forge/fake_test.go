package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// fake is a forge in memory. It has the common parts of GitHub and GitLab. Each forge's paths, headers, fields and status codes are in
// fake_github_test.go and fake_gitlab_test.go. A request that differs from the documentation fails the test.
type fake struct {
	t      *testing.T
	server *httptest.Server
	token  string

	mu       sync.Mutex
	branches map[string]string
	pulls    []*fakePull // in the order of their numbers, which begin at 1
	statuses map[string][]fakeStatus
	users    map[string]int64
	writes   int
	requests int
	refuse   func(w http.ResponseWriter, r *http.Request) bool // returns true if it has responded; otherwise the fake responds
}

type fakePull struct {
	number              int
	title, body, branch string
	commit              string
	closed, merged      bool
	fork                bool
	labels, reviewers   []string
}

func (p *fakePull) isOpen() bool { return !p.closed && !p.merged }

// state returns "merged" or "closed" or, for an open pull request, the forge's word for open.
func (p *fakePull) state(open string) string {
	switch {
	case p.merged:
		return "merged"
	case p.closed:
		return "closed"
	}
	return open
}

type fakeStatus struct{ Context, State, Description string }

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newFake(t *testing.T, serve func(f *fake, r *http.Request) (code int, body any)) *fake {
	f := &fake{t: t, token: "token-" + t.Name(), branches: map[string]string{"main": sha("main")}, statuses: map[string][]fakeStatus{},
		users: map[string]int64{"ann": 7, "bob": 8}}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.requests++
		if r.Method != http.MethodGet {
			f.writes++
		}
		if f.refuse != nil && f.refuse(w, r) {
			return
		}
		code, body := serve(f, r)
		f.answer(w, code, body)
	}))
	t.Cleanup(f.server.Close)
	return f
}

func tokenOf(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// sha returns a made-up commit id of 40 hexadecimal digits, which depends on name.
func sha(name string) string {
	return strings.Repeat(fmt.Sprintf("%x", name), 40)[:40]
}

func (f *fake) answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func message(text string) map[string]any { return map[string]any{"message": text} }

// undocumented fails the test, because the documentation does not have the request. It returns 404.
func (f *fake) undocumented(r *http.Request) (code int, body any) {
	f.t.Errorf("%s %s is not documented", r.Method, r.URL)
	return http.StatusNotFound, message("Not Found")
}

func (f *fake) decode(r *http.Request, allowed ...string) map[string]any {
	f.t.Helper()
	if r.Header.Get("Content-Type") != "application/json" {
		f.t.Errorf("%s %s: Content-Type %q", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
	body := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		f.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	for key := range body {
		if !slices.Contains(allowed, key) {
			f.t.Errorf("%s %s: %s is not a documented field", r.Method, r.URL, key)
		}
	}
	return body
}

// query fails the test if a request has undocumented parameters. It returns the range of items on the requested page.
func (f *fake) query(r *http.Request, most int, allowed ...string) (from, to int) {
	f.t.Helper()
	for key := range r.URL.Query() {
		if !slices.Contains(append(allowed, "page", "per_page"), key) {
			f.t.Errorf("%s %s: %s is not a documented parameter", r.Method, r.URL, key)
		}
	}
	number := func(name string, fallback int) int {
		if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
			return n
		}
		return fallback
	}
	size := min(number("per_page", most), 100)
	page := number("page", 1)
	return (page - 1) * size, page * size
}

func page[T any](all []T, from, to int) []T {
	return all[min(from, len(all)):min(to, len(all))]
}

// newestFirst returns the selected pull requests, newest first.
func (f *fake) newestFirst(wanted func(*fakePull) bool) []*fakePull {
	var found []*fakePull
	for _, p := range slices.Backward(f.pulls) {
		if wanted(p) {
			found = append(found, p)
		}
	}
	return found
}

// open returns a branch's open pull requests, except pull requests from forks.
func (f *fake) open(branch string) []*fakePull {
	return f.newestFirst(func(p *fakePull) bool { return p.branch == branch && !p.fork && p.isOpen() })
}

func (f *fake) pull(text string) *fakePull {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(f.pulls) {
		return nil
	}
	return f.pulls[n-1]
}

func (f *fake) add(p fakePull) *fakePull {
	p.number = len(f.pulls) + 1
	f.pulls = append(f.pulls, &p)
	return &p
}

// The following methods implement the interface bench.

func (f *fake) push(branch, content string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.branches[branch] = sha(content)
	for _, p := range f.pulls {
		if p.branch == branch && p.isOpen() {
			p.commit = sha(content)
		}
	}
	return sha(content)
}

func (f *fake) merge(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pulls[number-1].merged = true
}

func (f *fake) close(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pulls[number-1].closed = true
}

func (f *fake) propose(branch, title string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(fakePull{branch: branch, title: title, commit: f.branches[branch]}).number
}

func (f *fake) list() []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return rollout.Mapped(f.pulls, func(p *fakePull) seen {
		return seen{p.number, p.title, p.body, p.branch, p.state("open"), slices.Clone(p.labels), slices.Clone(p.reviewers)}
	})
}

func (f *fake) marks(commit string) []fakeStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.statuses[commit])
}

// refuseWith makes the next requests fail, for example because of a rate limit.
func (f *fake) refuseWith(times int, header map[string]string, code int, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := times
	f.refuse = func(w http.ResponseWriter, _ *http.Request) bool {
		if left--; left < 0 {
			return false
		}
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
		return true
	}
}

// soon returns a future time in Unix seconds, as in the forges' headers.
func soon(in time.Duration) string { return fmt.Sprint(time.Now().Add(in).Unix()) }
