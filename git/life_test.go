package git_test

import (
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestStoreIsRenewed checks that the store drops old objects after fetches and pushes, so that a process can run for months.
func TestStoreIsRenewed(t *testing.T) {
	repo := gittest.New(t)
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("apps/%d/app.yaml", i)] = randomText(2000 + i)
	}
	repo.CommitFiles("first", files)
	w := &world{T: t, server: repo, opts: git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL}}
	r := w.open()
	heads := fetch(w, r)
	oldest := snapshot(w, r, heads.Main)
	live := r.Stats().Bytes
	state, was, renewed := "", int64(0), false
	for i := range 20 {
		content := randomText(300_000 + i)
		state = push(w, r, stateUpdate(state, "apps/x.yaml", content))[0]
		if i%4 == 0 {
			repo.CommitFiles("next", map[string]string{"apps/1/app.yaml": content})
			heads = fetch(w, r)
		}
		got := r.Stats().Bytes
		if got > live*5/4+3<<20 {
			t.Fatalf("after %d commits of 300 kB the store holds %d bytes; it began with %d", i+1, got, live)
		}
		renewed, was = renewed || got < was, got
	}
	if !renewed {
		t.Error("the store was never renewed")
	}
	// The oldest snapshot and the newest commits must still be complete.
	if got := readAll(t, oldest); len(got) != len(files) || got["apps/1/app.yaml"] != files["apps/1/app.yaml"] {
		t.Errorf("the oldest snapshot has %d files", len(got))
	}
	sameAsGit(w, r, heads.Main)
	sameAsGit(w, r, state)
	if fetched := fetch(w, r); fetched.Main != heads.Main || fetched.State != state {
		t.Errorf("heads %+v", fetched)
	}
}

// TestStoreIsRenewedByFetches checks that the store also drops old commits of the users' branch if the process never pushes.
func TestStoreIsRenewedByFetches(t *testing.T) {
	const size, commits = 1 << 20, 8
	repo := newRepo(t, map[string]string{"big": randomText(size)})
	w := &world{T: t, server: repo, opts: git.Options{URL: repo.Bare}}
	r := w.open()
	fetch(w, r)
	for i := range commits {
		repo.CommitFiles("next", map[string]string{"big": randomText(size + i + 1)})
		fetch(w, r)
	}
	if got := r.Stats().Bytes; got > 4*size {
		t.Errorf("%d bytes are kept of %d commits with one file of %d", got, commits, size)
	}
}

// TestCostsDoNotGrow checks that the costs of a poll, a clone and a state commit do not depend on the numbers of refs and commits.
func TestCostsDoNotGrow(t *testing.T) {
	cost := func(refs, commits int) (poll, clone, commit git.Stats) {
		repo := newRepo(t, map[string]string{"f": "1"})
		var s importer
		s.topics(refs)
		for i := range commits {
			s.commit(stateBranch, 0)
			s.file(fmt.Sprintf("apps/%d/x.yaml", i%5), fmt.Sprint(i))
		}
		repo.FastImport(s.String())
		w := &world{T: t, server: repo, opts: git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL}}
		r := w.open()
		heads := fetch(w, r)
		clone = r.Stats()
		fetch(w, r)
		poll = minus(r.Stats(), clone)
		before := r.Stats()
		push(w, r, stateUpdate(heads.State, "apps/1/x.yaml", "new"))
		return poll, clone, minus(r.Stats(), before)
	}
	poll1, clone1, push1 := cost(5, 10)
	poll2, clone2, push2 := cost(500, 500)
	if poll1.Received != poll2.Received || poll1.Sent != poll2.Sent || poll2.Requests != 1 {
		t.Errorf("poll: %+v at 5 refs, %+v at 500", poll1, poll2)
	}
	if clone2.Received > clone1.Received+100 || clone2.Objects != clone1.Objects {
		t.Errorf("clone: %+v at 10 commits, %+v at 500", clone1, clone2)
	}
	// Only the first push reads the server's capabilities, which contain all refs.
	if push2.Sent > push1.Sent+10 || push2.Requests != 2 {
		t.Errorf("push: %+v at 10 commits, %+v at 500", push1, push2)
	}
	t.Logf("poll %+v\nclone %+v\npush %+v", poll2, clone2, push2)
}

// TestCompactCostsNothingLater checks that Compact takes one small push. After Compact, polls and commits must cost the
// same as before, in this process and in a new one.
func TestCompactCostsNothingLater(t *testing.T) {
	repo := newRepo(t, map[string]string{"f": "1"})
	var s importer
	s.topics(200)
	for i := range 1000 {
		s.commit(stateBranch, 0)
		s.file(recordFile(i%300), record(i%300, i))
	}
	repo.FastImport(s.String())
	w := &world{T: t, server: repo, opts: git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL}}
	fresh := func() git.Stats {
		r := w.open()
		fetch(w, r)
		return r.Stats()
	}
	r := w.open()
	state := push(w, r, stateUpdate(fetch(w, r).State, recordFile(0), record(0, 2000)))[0]
	commit := func(version int) git.Stats {
		before := r.Stats()
		state = push(w, r, stateUpdate(state, recordFile(1), record(1, version)))[0]
		return minus(r.Stats(), before)
	}
	was, cloned, tree := commit(2001), fresh(), repo.InBare("rev-parse", "refs/heads/"+stateBranch+"^{tree}")

	before := r.Stats()
	root, err := r.Compact(t.Context(), stateBranch, "gitrollout/archive/prod/2026", state, "anew", when)
	must(t, err)
	state = root
	if spent := minus(r.Stats(), before); spent.Sent > 1000 || spent.Received > 1000 || spent.Requests != 1 {
		t.Errorf("compaction cost %+v", spent)
	}
	if now := repo.InBare("rev-parse", "refs/heads/"+stateBranch+"^{tree}"); now != tree {
		t.Errorf("the files are %s, want %s", now, tree)
	}
	if now := fresh(); now.Objects != cloned.Objects || apart(now.Received, cloned.Received) > 200 {
		t.Errorf("a new process: %+v before, %+v after", cloned, now)
	}
	// Sizes may differ only because different hashes compress differently. Neither a push nor a poll may list the 200 refs.
	now := commit(2002)
	if apart(now.Sent, was.Sent) > 20 || apart(now.Received, was.Received) > 20 || now.Requests != 1 || now.Received > 300 {
		t.Errorf("a state commit: %+v before, %+v after", was, now)
	}
	before = r.Stats()
	wantState(t, "a poll", r, state)
	if spent := minus(r.Stats(), before); spent.Requests != 1 || spent.Received > 400 || spent.Objects != 0 {
		t.Errorf("a poll cost %+v", spent)
	}
}

func apart(a, b int64) int64 { return max(a-b, b-a) }

func minus(a, b git.Stats) git.Stats {
	return git.Stats{Objects: a.Objects - b.Objects, Stats: wire.Stats{
		Requests: a.Requests - b.Requests, Lookups: a.Lookups - b.Lookups, Fetches: a.Fetches - b.Fetches,
		Pushes: a.Pushes - b.Pushes, Sent: a.Sent - b.Sent, Received: a.Received - b.Received}}
}

func benchRepo(b *testing.B, apps int) (*gittest.Repo, *git.Repo, rollout.Heads) {
	b.Helper()
	repo := gittest.New(b)
	files := map[string]string{}
	for i := range apps {
		for j := range 8 {
			files[fmt.Sprintf("apps/%02d/%d/%d.yaml", i/100, i, j)] = fmt.Sprintf("app: %d\nfile: %d\n", i, j)
		}
	}
	repo.CommitFiles("first", files)
	r := mirrorOf(b, repo)
	return repo, r, fetch(b, r)
}

func report(b *testing.B, r *git.Repo, before git.Stats) {
	spent, n := minus(r.Stats(), before), float64(b.N)
	b.ReportMetric(float64(spent.Requests)/n, "requests/op")
	b.ReportMetric(float64(spent.Sent)/n, "sent-B/op")
	b.ReportMetric(float64(spent.Received)/n, "received-B/op")
}

func BenchmarkClone(b *testing.B) {
	_, r, heads := benchRepo(b, 5000)
	remote := git.Options{URL: r.Remote().String(), Branch: "main"}
	for b.Loop() {
		if got := fetch(b, open(b, remote)); got.Main != heads.Main {
			b.Fatal(got)
		}
	}
	b.ReportMetric(float64(r.Stats().Bytes)/5000, "store-B/app")
}

func BenchmarkIdlePoll(b *testing.B) {
	_, r, _ := benchRepo(b, 10)
	before := r.Stats()
	for b.Loop() {
		fetch(b, r)
	}
	report(b, r, before)
}

func BenchmarkStateCommit(b *testing.B) {
	_, r, _ := benchRepo(b, 10)
	state := ""
	before := r.Stats()
	for i := 0; b.Loop(); i++ {
		state = push(b, r, stateUpdate(state, fmt.Sprintf("apps/%d/%d.yaml", i%10, i%1000), fmt.Sprintf("phase: %d\n", i)))[0]
	}
	report(b, r, before)
}

func BenchmarkFetchOneOf5000Apps(b *testing.B) {
	repo, r, _ := benchRepo(b, 5000)
	before := r.Stats()
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		repo.CommitFiles("next", map[string]string{fmt.Sprintf("apps/%02d/%d/0.yaml", n%50, n%50*100): fmt.Sprint(n)})
		b.StartTimer()
		fetch(b, r)
	}
	report(b, r, before)
}

func BenchmarkLookup(b *testing.B) {
	_, r, heads := benchRepo(b, 5000)
	s := snapshot(b, r, heads.Main)
	for b.Loop() {
		if _, ok, err := s.Lookup("apps/25/2550/3.yaml"); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
