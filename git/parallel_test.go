package git_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// gate is a proxy in front of a Git server. It can delay requests, or the responses to them.
type gate struct {
	*httptest.Server
	mu       sync.Mutex
	before   func(*http.Request) // runs before the request is forwarded
	after    func(*http.Request) // runs before the response is forwarded
	requests int
}

func newGate(t *testing.T, repo *gittest.Repo) *gate {
	t.Helper()
	server := repo.HTTP(gittest.HTTPOptions{})
	g := &gate{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		g.mu.Lock()
		before, after := g.before, g.after
		g.requests++
		g.mu.Unlock()
		if before != nil {
			before(req)
		}
		answer := httptest.NewRecorder()
		server.Proxy().ServeHTTP(answer, req)
		if after != nil {
			after(req)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	g.URL += "/repo.git"
	t.Cleanup(g.Close)
	return g
}

func (g *gate) hold(before, after func(*http.Request)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before, g.after = before, after
}

// fetches reports whether a request is a lookup or a fetch. All other requests are pushes.
func fetches(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/git-upload-pack") }

// waiting returns a hook for requests. If `which` accepts a request, the hook sends to `entered`, and waits until `leave` is called.
func waiting(which func(*http.Request) bool) (hold func(*http.Request), entered chan struct{}, leave func()) {
	entered, left := make(chan struct{}, 100), make(chan struct{})
	return func(req *http.Request) {
		if which(req) {
			entered <- struct{}{}
			select {
			case <-left:
			case <-req.Context().Done():
			}
		}
	}, entered, sync.OnceFunc(func() { close(left) })
}

// openGate opens a mirror of a repository through a new gate, and fetches once.
func openGate(t *testing.T, repo *gittest.Repo) (*gate, *world, *git.Repo) {
	t.Helper()
	g := newGate(t, repo)
	w := &world{T: t, server: repo, opts: git.Options{URL: g.URL}}
	r := w.open()
	fetch(t, r)
	return g, w, r
}

// TestHangingFetchHoldsUpNothing checks that a Fetch whose lookup hangs delays no reads, no pushes, and no downloads of older commits.
func TestHangingFetchHoldsUpNothing(t *testing.T) {
	t.Parallel()
	repo := gittest.New(t)
	old := repo.CommitFiles("first", map[string]string{"a": "1\n"})
	repo.CommitFiles("second", map[string]string{"a": "2\n"})
	g, _, r := openGate(t, repo)
	hold, entered, leave := waiting(fetches)
	defer leave()
	g.hold(hold, nil)
	ended := make(chan error, 1)
	go func() { _, err := r.Fetch(t.Context()); ended <- err }()
	<-entered
	g.hold(nil, nil)

	soon, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := r.Snapshot(soon, repo.Head())
	must(t, err)
	if got, err := s.ReadFile("a"); err != nil || string(got) != "2\n" {
		t.Errorf("a = %q, %v", got, err)
	}
	_, err = pushAll(soon, r, stateUpdate("", "x", "1"))
	must(t, err)
	_, err = r.Snapshot(soon, old)
	must(t, err)
	select {
	case err := <-ended:
		t.Fatalf("the fetch did not hang: %v", err)
	default:
	}
	leave()
	must(t, <-ended)
}

// TestHangingPushHoldsUpNoFetch checks that Fetch works while a push hangs.
func TestHangingPushHoldsUpNoFetch(t *testing.T) {
	t.Parallel()
	repo := newRepo(t, map[string]string{"a": "1\n"})
	g, w, r := openGate(t, repo)

	hold, entered, leave := waiting(func(req *http.Request) bool { return !fetches(req) })
	defer leave()
	g.hold(hold, nil)
	ended := make(chan error, 1)
	go func() { _, err := pushAll(t.Context(), r, stateUpdate("", "x", "1")); ended <- err }()
	<-entered
	second := repo.CommitFiles("second", map[string]string{"a": "2\n"})
	if heads := fetch(w, r); heads.Main != second || heads.State != "" {
		t.Errorf("heads %+v", heads)
	}
	leave()
	must(t, <-ended)
	if heads := fetch(w, r); heads.State != repo.Ref(stateBranch) || heads.State == "" {
		t.Errorf("heads %+v, want the state branch at %s", heads, repo.Ref(stateBranch))
	}
}

// TestPushOvertakesFetch checks that a late response to a lookup does not undo pushes that succeeded after the lookup began.
func TestPushOvertakesFetch(t *testing.T) {
	t.Parallel()
	const ours = "gitrollout/promote/prod/shop"
	repo := gittest.New(t)
	main := repo.CommitFiles("first", map[string]string{"a": "1\n"})
	g, w, r := openGate(t, repo)
	ids := push(w, r, stateUpdate("", "x", "1"), proposal("shop", "", main))
	fetch(w, r)

	hold, entered, leave := waiting(fetches)
	defer leave()
	g.hold(nil, hold)
	type answer struct {
		rollout.Heads
		error
	}
	ended := make(chan answer, 1)
	go func() { heads, err := r.Fetch(t.Context()); ended <- answer{heads, err} }()
	<-entered
	second := push(w, r, stateUpdate(ids[0], "x", "2"), rollout.Update{Branch: ours, Old: ids[1], Delete: true})[0]
	third := push(w, r, stateUpdate(second, "x", "3"))[0]
	g.hold(nil, nil)
	leave()
	got := <-ended
	want := rollout.Heads{Main: main, State: third, Proposals: map[string]string{}}
	must(t, got.error)
	compare.CheckNamed(t, "the fetch that was overtaken", want, got.Heads)
	compare.CheckNamed(t, "the next fetch", want, fetch(w, r))
	// Pushes take precedence only over a lookup in progress. The next lookup shows other writers' changes.
	repo.InBare("update-ref", "refs/heads/"+stateBranch, second)
	wantState(t, "after a push by another client", r, second)
}

// TestDownloadAndRenewal checks that a hanging download loses no objects when pushes cause a renewal of the mirror.
func TestDownloadAndRenewal(t *testing.T) {
	t.Parallel()
	repo := gittest.New(t)
	big := strings.Repeat("0123456789abcdef", 100<<10)
	main := repo.CommitFiles("first", map[string]string{"a": "1\n", "big": big})
	g, w, r := openGate(t, repo)
	repo.CommitFiles("second", map[string]string{"a": "2\n", "big": big + "2"}) // git sends a delta whose base is the first version

	posts := 0
	hold, entered, leave := waiting(func(req *http.Request) bool {
		if fetches(req) {
			posts++
		}
		return fetches(req) && posts == 2
	})
	defer leave()
	g.hold(nil, hold)
	ended := make(chan error, 1)
	go func() { _, err := r.Fetch(t.Context()); ended <- err }()
	<-entered
	base := ""
	for i := range 3 {
		base = push(w, r, stateUpdate(base, fmt.Sprint(i), strings.Repeat(fmt.Sprint(i), 1<<20)))[0]
		base = push(w, r, update(stateBranch, base, "m", map[string][]byte{fmt.Sprint(i): nil, "left": []byte(fmt.Sprint(i))}))[0]
	}
	leave()
	must(t, <-ended)
	if !held(r, repo.Head()) {
		t.Error("the fetched commit is missing: it went into a mirror that was given up meanwhile")
	}
	for _, id := range []string{repo.Head(), base, main} {
		sameAsGit(w, r, id)
	}
}

// TestEverythingAtOnce calls the methods concurrently, for the race detector, and compares the content with the real git's.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	repo := gittest.New(t)
	var s importer
	for i := range 31 {
		s.commit("main", 0)
		s.file("a", fmt.Sprint(i))
		s.file(fmt.Sprint(i), "x")
	}
	repo.FastImport(s.String())
	commits := strings.Fields(repo.InBare("rev-list", "--reverse", "main"))
	w := &world{T: t, server: repo, opts: git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL}}
	r := w.open()
	fetch(w, r)
	errs := make([]error, 4)
	concurrently(4, func(n int) {
		base := ""
		for i := range 10 {
			var err error
			switch n {
			case 0:
				_, err = r.Fetch(t.Context())
			case 1:
				_, err = r.Bring(t.Context(), commits[i*3:i*3+3])
			case 2:
				_, err = r.Snapshot(t.Context(), commits[len(commits)-1-i])
			default:
				var ids []string
				if ids, err = pushAll(t.Context(), r, stateUpdate(base, "x", fmt.Sprint(i))); err == nil {
					base = ids[0]
				}
			}
			errs[n] = errors.Join(errs[n], err)
		}
	})
	must(t, errors.Join(errs...))
	for _, id := range append(commits, repo.Ref(stateBranch)) {
		sameAsGit(w, r, id)
	}
	repo.Fsck()
}

// TestBringMany checks that Bring gets a thousand commits with one request, for example at a restart with a thousand apps.
func TestBringMany(t *testing.T) {
	t.Parallel()
	const apps = 1000
	repo := gittest.New(t)
	var s importer
	for i := range apps {
		s.commit("main", 0)
		s.file(appFile(i), fmt.Sprintf("v%d\n", i))
	}
	repo.FastImport(s.String())
	commits := strings.Fields(repo.InBare("rev-list", "--reverse", "main"))
	w := &world{T: t, server: repo, opts: git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL}}
	r := w.open()
	fetch(w, r)
	before := r.Stats()
	if missing, err := r.Bring(t.Context(), commits); err != nil || len(missing) > 0 {
		t.Fatalf("missing %d, %v", len(missing), err)
	}
	after := r.Stats()
	if n := after.Requests - before.Requests; n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	// A renewal of the store must keep all these commits. Each push adds a megabyte, until a renewal is due.
	base := ""
	for i := range 4 {
		base = push(w, r, stateUpdate(base, "x", strings.Repeat(fmt.Sprint(i), 1<<20)))[0]
	}
	if r.Stats().Bytes > after.Bytes+3<<20 {
		t.Error("the mirror was not renewed: the test does not test that")
	}
	for i := 0; i < apps; i += 83 {
		if !held(r, commits[i]) {
			t.Errorf("commit %d was forgotten", i)
		}
		sameAsGit(w, r, commits[i])
	}
	before = r.Stats()
	if missing, err := r.Bring(t.Context(), commits); err != nil || len(missing) > 0 || r.Stats() != before {
		t.Errorf("bringing held commits costs something: %d missing, %v", len(missing), err)
	}
}

func twelveCommits(t *testing.T, r *gittest.Repo) {
	t.Helper()
	for i := range 12 {
		r.CommitFiles("next", map[string]string{"n": fmt.Sprint(i)})
	}
}

// bringSome is a test case of TestContract. The server has lost some commits, and Bring must get the others.
func bringSome(w *world) {
	var ids, lost []string
	for i, id := range strings.Fields(w.server.InBare("rev-list", "--reverse", "--max-count=12", "main")) {
		ids = append(ids, id)
		if i%3 == 0 {
			fake := strings.Repeat(fmt.Sprintf("%x", i+1), 40)[:40]
			ids, lost = append(ids, fake), append(lost, fake)
		}
	}
	r := w.open()
	fetch(w, r)
	before := r.Stats()
	missing, err := r.Bring(w.Context(), append(ids, ids[3]))
	must(w, err)
	compare.CheckNamed(w, "missing", lost, missing)
	if n := r.Stats().Requests - before.Requests; n > 4 {
		w.Errorf("%d requests for %d commits of which %d are lost", n, len(ids), len(lost))
	}
	for _, id := range ids {
		if want := !compare.Equal(strings.Count(id, id[:1]), 40); held(r, id) != want {
			w.Errorf("Has(%s) = %t", id, !want)
		} else if want {
			sameAsGit(w, r, id)
		}
	}
	before = r.Stats()
	if missing, err = r.Bring(w.Context(), ids); err != nil || !compare.Equal(missing, lost) || r.Stats() != before {
		w.Errorf("asked again: %v, %v, %+v -> %+v", missing, err, before, r.Stats())
	}
	if _, err := r.Bring(w.Context(), []string{"HEAD"}); err == nil {
		w.Error("a text that is no commit id was taken")
	}
}
