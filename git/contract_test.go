package git_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

var when = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// transports has all transports to a repository. TestContract runs its cases over each of them.
var transports = map[string]func(*gittest.Repo) git.Options{
	"http": func(r *gittest.Repo) git.Options { return git.Options{URL: r.HTTP(gittest.HTTPOptions{}).URL} },
	"http-v0": func(r *gittest.Repo) git.Options {
		s := r.HTTP(gittest.HTTPOptions{})
		s.Fault(gittest.Faults{ProtocolV0: true})
		return git.Options{URL: s.URL}
	},
	"https": func(r *gittest.Repo) git.Options {
		s := r.HTTP(gittest.HTTPOptions{TLS: true, User: "bot", Password: "s3cret"})
		return git.Options{URL: s.URL, Auth: wire.Auth{Username: "bot", Password: "s3cret", TLS: wire.TLS{CAFile: caFile(r, s)}}}
	},
	"ssh":    func(r *gittest.Repo) git.Options { return sshOptions(r.SSH(gittest.SSHOptions{})) },
	"ssh-v0": func(r *gittest.Repo) git.Options { return sshOptions(r.SSH(gittest.SSHOptions{NoProtocolV2: true})) },
	"git":    func(r *gittest.Repo) git.Options { return git.Options{URL: r.Daemon().URL} },
	"path":   func(r *gittest.Repo) git.Options { return git.Options{URL: r.Bare} },
	"file":   func(r *gittest.Repo) git.Options { return git.Options{URL: "file://" + r.Bare} },
}

func caFile(r *gittest.Repo, s *gittest.Server) string {
	file := filepath.Join(filepath.Dir(r.Bare), "ca.pem")
	if err := os.WriteFile(file, s.CA, 0o600); err != nil {
		panic(err)
	}
	return file
}

func sshOptions(s *gittest.Server) git.Options {
	return git.Options{URL: s.URL, Auth: wire.Auth{SSHKeyFile: s.KeyFile, KnownHosts: s.KnownHosts}}
}

// world is a test's repository, with the options to access it over one transport.
type world struct {
	*testing.T
	server *gittest.Repo
	opts   git.Options
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks with errors.Is that err is `kind` (nil: success), and that the text of err contains all parts.
func wantError(t testing.TB, what string, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
	}
	compare.Contains(t, fmt.Sprint(err), parts...)
}

func open(t testing.TB, opts git.Options) *git.Repo {
	t.Helper()
	r, err := git.Open(t.Context(), opts)
	must(t, err)
	return r
}

func fetch(t testing.TB, r *git.Repo) rollout.Heads {
	t.Helper()
	heads, err := r.Fetch(t.Context())
	must(t, err)
	return heads
}

// wantState fetches, and checks the head of the state branch.
func wantState(t testing.TB, what string, r *git.Repo, want string) {
	t.Helper()
	if heads := fetch(t, r); heads.State != want {
		t.Errorf("%s: heads %+v, want the state at %q", what, heads, want)
	}
}

func snapshot(t testing.TB, r *git.Repo, id string) *git.Snapshot {
	t.Helper()
	s, err := r.Snapshot(t.Context(), id)
	must(t, err)
	return s
}

func push(t testing.TB, r *git.Repo, updates ...rollout.Update) []string {
	t.Helper()
	ids, err := pushAll(t.Context(), r, updates...)
	must(t, err)
	return ids
}

// open opens a new mirror of the repository in w.
func (w *world) open() *git.Repo {
	w.Helper()
	opts := w.opts
	opts.Branch, opts.Cluster = cmp.Or(opts.Branch, "main"), cmp.Or(opts.Cluster, "prod")
	opts.Timeout = 30 * time.Second
	return open(w, opts)
}

// pushAll pushes updates, and returns each update's new commit, or "" if the branch was deleted or did not change.
func pushAll(ctx context.Context, r *git.Repo, updates ...rollout.Update) ([]string, error) {
	heads, err := r.Push(ctx, updates)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(updates))
	for i, u := range updates {
		if ids[i] = heads[u.Branch]; ids[i] == u.Old {
			ids[i] = ""
		}
	}
	return ids, nil
}

// held reports whether the mirror has a commit. A read of such a commit needs no network access.
func held(r *git.Repo, commit string) bool { _, held := r.Held(commit); return held }

// newRepo returns a repository with one commit, which has the given files.
func newRepo(t testing.TB, files map[string]string) *gittest.Repo {
	t.Helper()
	repo := gittest.New(t)
	repo.CommitFiles("first", files)
	return repo
}

const stateBranch = "gitrollout/state/prod"

func stateUpdate(base, path, content string) rollout.Update {
	return update(stateBranch, base, "prod: "+path, map[string][]byte{path: []byte(content)})
}

// update returns an update that adds a commit to a branch with the head `base`.
func update(branch, base, message string, edits map[string][]byte) rollout.Update {
	return rollout.Update{Branch: branch, Old: base, Parent: base, Edits: edits, Message: message, When: when}
}

// story is a test case of TestContract. begin makes the first commits, once for all transports. play runs the test case on one transport.
type story struct {
	play  func(*world)
	begin func(*testing.T, *gittest.Repo) // nil if a repository with one commit suffices
}

func TestContract(t *testing.T) {
	stories := map[string]story{
		"an unchanged poll is one look-up":           {idlePoll, manyBranches},
		"a fetch brings only new objects":            {fetchNew, busyHistory},
		"a snapshot equals git's output":             {snapshotIsGit, everyKindOfFile},
		"the state branch is an orphan":              {orphanState, nil},
		"a stale writer changes nothing":             {staleWriter, nil},
		"racing writers all land":                    {racingWriters, nil},
		"several branches move at once or not":       {atomicPush, nil},
		"a branch starts anew and its past is kept":  {compact, nil},
		"proposals are made, forced and removed":     {proposals, nil},
		"the same inputs make the same commit":       {deterministic, nil},
		"main may be force-pushed":                   {forcePushed, secondCommit},
		"an old commit is fetched by its id":         {fetchByID, fiveCommits},
		"lost commits do not fail the others":        {bringSome, twelveCommits},
		"with a branch missing, the error names it":  {missing, nil},
		"a hook's refusal is passed on":              {hookRefusal, nil},
		"CommitToBranch decides again on a conflict": {commitToBranch, nil},
	}
	first := newRepo(t, map[string]string{"README": "hello\n", "apps/shop/app.yaml": "v1\n"})
	begun := map[string]*gittest.Repo{}
	for name, s := range stories {
		if begun[name] = first; s.begin != nil {
			begun[name] = first.Copy(t)
			s.begin(t, begun[name])
		}
	}
	names := slices.Sorted(maps.Keys(stories))
	for transport, options := range transports {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			for i, name := range names {
				if !plays(transport, i) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					server := begun[name].Copy(t)
					stories[name].play(&world{T: t, server: server, opts: options(server)})
					if !t.Failed() {
						server.Fsck()
					}
				})
			}
		})
	}
}

// plays reports whether the n-th test case runs over a transport. With -short, similar transports share the cases. Each
// case still runs over HTTP and over a stream, and with both protocol versions.
func plays(transport string, n int) bool {
	switch transport {
	case "http", "path":
		return true
	case "file":
		// A file URL gives the same wire.Remote as a path, as TestParseRemote checks. So one case suffices.
		return n == 0
	case "http-v0":
		return !testing.Short() || n%3 == 0
	case "ssh-v0":
		return !testing.Short() || n%3 != 0
	case "git":
		return !testing.Short() || n%3 == 1
	default:
		return !testing.Short() || n%3 == 2
	}
}

func manyBranches(t *testing.T, r *gittest.Repo) {
	t.Helper()
	var s importer
	s.topics(50)
	r.FastImport(s.String())
}

func idlePoll(w *world) {
	r := w.open()
	first := fetch(w, r)
	if first.Main != w.server.Head() || first.State != "" {
		w.Fatalf("first Fetch = %+v", first)
	}
	before := r.Stats()
	second := fetch(w, r)
	spent := minus(r.Stats(), before)
	compare.CheckNamed(w, "the second Fetch", first, second)
	if spent.Requests != 1 || spent.Fetches != 0 || spent.Objects != 0 {
		w.Errorf("an idle poll is not one look-up: %+v", spent)
	}
	if spent.Received > 400 && !strings.Contains(w.Name(), "-v0") {
		w.Errorf("an idle poll received %d bytes", spent.Received)
	}
}

// busyHistory adds commits that overwrite a file. A fetch needs only the file's last content.
func busyHistory(t *testing.T, r *gittest.Repo) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	files := map[string]string{}
	for i := range 200 {
		content := make([]byte, 2000) // bytes that do not compress
		_, _ = random.Read(content)
		files[fmt.Sprintf("apps/%d/%d/blob", i/20, i)] = string(content)
	}
	r.CommitFiles("many", files)
	r.Git("branch", "old-topic")
	for i := range 4 {
		r.CommitFiles("busy", map[string]string{"apps/0/0/blob": files["apps/0/1/blob"] + fmt.Sprint(i)})
	}
	r.CommitFiles("before", map[string]string{"apps/0/0/blob": files["apps/0/2/blob"]})
	r.CommitFiles("bad", map[string]string{"apps/0/0/blob": "short"})
}

func fetchNew(w *world) {
	before := w.server.InBare("rev-parse", "main~1")
	r := w.open()
	heads := fetch(w, r)
	received := func(what string, limit int64, change func()) {
		w.Helper()
		change()
		start := r.Stats().Received
		heads = fetch(w, r)
		if n := r.Stats().Received - start; n > limit {
			w.Errorf("%s: %d bytes, want at most %d", what, n, limit)
		}
		sameAsGit(w, r, heads.Main)
	}
	received("a commit", 2000, func() { w.server.CommitFiles("one line", map[string]string{"apps/3/61/blob2": "small"}) })
	// The revert restores a file content that the mirror does not have. The fetch must download nothing else.
	received("a revert beyond the clone", 4500, func() { w.server.Revert("HEAD~1") })
	received("a merge of a branch older than the clone", 2500, func() {
		w.server.Git("checkout", "-q", "old-topic")
		w.server.CommitFiles("topic", map[string]string{"apps/topic": "x"})
		w.server.Git("checkout", "-q", "main")
		w.server.Merge("old-topic")
	})
	if got := snapshot(w, r, before); got.Commit().Subject != "before" {
		w.Errorf("subject = %q", got.Commit().Subject)
	}
}

func orphanState(w *world) {
	r := w.open()
	fetch(w, r)
	first := push(w, r, stateUpdate("", "apps/shop/a.yaml", "phase: Healthy\n"))[0]
	second := push(w, r, stateUpdate(first, "apps/shop/b.yaml", "phase: Paused\n"))[0]
	before := r.Stats()
	wantState(w, "after our own push", r, second)
	if after := r.Stats(); after.Fetches != before.Fetches {
		w.Error("our own commit was fetched back")
	}
	if got := w.server.Git("rev-list", "--max-parents=0", "--count", fetched(w, stateBranch)); got != "1" {
		w.Errorf("%s roots", got)
	}
	compare.CheckNamed(w, "files", []string{"apps/shop/a.yaml", "apps/shop/b.yaml"}, w.server.Files(stateBranch))
	compare.CheckNamed(w, "log", []string{"prod: apps/shop/b.yaml", "prod: apps/shop/a.yaml"}, w.server.Log(stateBranch))
	// An update with the same content makes no commit, and sends no request.
	before = r.Stats()
	if ids := push(w, r, stateUpdate(second, "apps/shop/b.yaml", "phase: Paused\n")); ids[0] != "" {
		w.Errorf("an update without a change made %v", ids)
	}
	if r.Stats() != before {
		w.Errorf("an update without a change talked to the server")
	}
	// Another process continues from the head of the state branch.
	other := w.open()
	wantState(w, "another mirror", other, second)
	third := push(w, other, update(stateBranch, second, "clear", map[string][]byte{"apps": nil, "cluster.yaml": {}}))[0]
	wantState(w, "the other's push", r, third)
	compare.CheckNamed(w, "files", []string{"cluster.yaml"}, w.server.Files(stateBranch))
}

// fetched fetches a branch into the worktree with the real git, and returns the branch's name there.
func fetched(w *world, branch string) string {
	w.Helper()
	w.server.Git("fetch", "-q", "origin", branch)
	return "FETCH_HEAD"
}

func staleWriter(w *world) {
	a, b := w.open(), w.open()
	fetch(w, a)
	fetch(w, b)
	first := push(w, a, stateUpdate("", "x", "a"))[0]
	refs := w.server.Refs()
	for name, stale := range map[string]rollout.Update{
		"create an existing branch": stateUpdate("", "x", "b"),
		"build on a stale commit":   update("main", w.server.Head(), "m", map[string][]byte{"x": []byte("b")}),
	} {
		if stale.Branch == "main" {
			w.server.CommitFiles("moved", map[string]string{"y": "1"})
			refs = w.server.Refs()
		}
		_, err := pushAll(w.Context(), b, stale)
		wantError(w, name, err, git.ErrConflict)
		compare.CheckNamed(w, name, refs, w.server.Refs())
	}
	// The second writer fetches the first writer's commit, and pushes a commit on top.
	wantState(w, "the loser", b, first)
	push(w, b, stateUpdate(first, "x", "b"))
}

func racingWriters(w *world) {
	writers, commits := 8, 10
	if testing.Short() || !strings.Contains(w.Name(), "/http/") {
		writers, commits = 3, 3 // one transport with many writers suffices, because the server does the same work for each transport
	}
	errs := make([]error, writers)
	concurrently(writers, func(n int) {
		r := w.open()
		for i := range commits {
			for attempt := 0; ; attempt++ {
				heads, err := r.Fetch(w.Context())
				if err == nil {
					_, err = pushAll(w.Context(), r, stateUpdate(heads.State, fmt.Sprintf("%d/%d", n, i), "x"))
				}
				if err == nil {
					break
				}
				if !errors.Is(err, git.ErrConflict) || attempt > 1000 {
					errs[n] = err
					return
				}
				time.Sleep(rand.N(50 * time.Millisecond))
			}
		}
	})
	must(w, errors.Join(errs...))
	if got := len(w.server.Log(stateBranch)); got != writers*commits {
		w.Errorf("%d commits landed, want %d", got, writers*commits)
	}
	if got := len(w.server.Files(stateBranch)); got != writers*commits {
		w.Errorf("%d files landed, want %d", got, writers*commits)
	}
}

func concurrently(n int, do func(int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}
