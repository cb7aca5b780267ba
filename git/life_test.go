package git_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// A process that runs for months must not keep what it has fetched and pushed since it started.
func TestStoreIsRenewed(t *testing.T) {
	repo := gittest.New(t)
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("apps/%d/app.yaml", i)] = randomText(2000 + i)
	}
	repo.CommitFiles("first", files)
	w := &world{T: t, server: repo, opts: git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL}}
	r := w.open()
	heads := w.fetch(r)
	oldest := w.snapshot(r, heads.Main)
	live := r.Stats().Bytes
	state := ""
	for i := range 60 {
		content := randomText(100_000 + i)
		state = w.push(r, stateUpdate(state, "apps/x.yaml", content))[0]
		if i%10 == 0 {
			repo.CommitFiles("next", map[string]string{"apps/1/app.yaml": content})
			heads = w.fetch(r)
		}
		if got := r.Stats().Bytes; got > live*5/4+3<<20 {
			t.Fatalf("after %d commits of 100 kB the store holds %d bytes; it began with %d", i+1, got, live)
		}
	}
	if r.Stats().Renewals == 0 {
		t.Error("the store was never renewed")
	}
	// Old snapshots stay whole, and the current ones are.
	if got := readAll(t, oldest); len(got) != len(files) || got["apps/1/app.yaml"] != files["apps/1/app.yaml"] {
		t.Errorf("the oldest snapshot has %d files", len(got))
	}
	sameAsGit(w, r, heads.Main)
	sameAsGit(w, r, state)
	if fetched := w.fetch(r); fetched.Changed {
		t.Errorf("heads %+v", fetched)
	}
}

// What a poll, a clone and a state commit cost does not grow with the repository's refs and history.
func TestCostsDoNotGrow(t *testing.T) {
	cost := func(refs, commits int) (poll, clone, push git.Stats) {
		repo := gittest.New(t)
		repo.CommitFiles("first", map[string]string{"f": "1"})
		var stream strings.Builder
		for i := range refs {
			fmt.Fprintf(&stream, "reset refs/heads/topic/%d\nfrom refs/heads/main\n\n", i)
		}
		for i := range commits {
			fmt.Fprintf(&stream, "commit refs/heads/%s\ncommitter D <d@e> %d +0000\ndata 1\nx\n", stateBranch, 1_700_000_000+i)
			fmt.Fprintf(&stream, "M 100644 inline apps/%d/x.yaml\ndata %d\n%d\n", i%5, len(fmt.Sprint(i)), i)
		}
		repo.FastImport(stream.String())
		w := &world{T: t, server: repo, opts: git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL}}
		r := w.open()
		heads := w.fetch(r)
		clone = r.Stats()
		w.fetch(r)
		poll = minus(r.Stats(), clone)
		before := r.Stats()
		w.push(r, stateUpdate(heads.State, "apps/1/x.yaml", "new"))
		return poll, clone, minus(r.Stats(), before)
	}
	poll1, clone1, push1 := cost(5, 10)
	poll2, clone2, push2 := cost(3000, 3000)
	if poll1.Received != poll2.Received || poll1.Sent != poll2.Sent || poll2.Requests != 1 {
		t.Errorf("poll: %+v at 5 refs, %+v at 3000", poll1, poll2)
	}
	if clone2.Received > clone1.Received+100 || clone2.Objects != clone1.Objects {
		t.Errorf("clone: %+v at 10 commits, %+v at 3000", clone1, clone2)
	}
	// The first push asks for the server's greeting, which lists all refs; the following ones do not.
	if push2.Sent > push1.Sent+10 || push2.Requests != 2 {
		t.Errorf("push: %+v at 10 commits, %+v at 3000", push1, push2)
	}
	t.Logf("poll %+v\nclone %+v\npush %+v", poll2, clone2, push2)
}

func minus(a, b git.Stats) git.Stats {
	return git.Stats{Requests: a.Requests - b.Requests, Lookups: a.Lookups - b.Lookups, Fetches: a.Fetches - b.Fetches,
		Pushes: a.Pushes - b.Pushes, Sent: a.Sent - b.Sent, Received: a.Received - b.Received, Objects: a.Objects - b.Objects}
}

func benchRepo(b *testing.B, apps int) (*gittest.Repo, *git.Repo, git.Heads) {
	b.Helper()
	repo := gittest.New(b)
	files := map[string]string{}
	for i := range apps {
		for j := range 8 {
			files[fmt.Sprintf("apps/%02d/%d/%d.yaml", i/100, i, j)] = fmt.Sprintf("app: %d\nfile: %d\n", i, j)
		}
	}
	repo.CommitFiles("first", files)
	r, err := git.Open(b.Context(), git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL, Branch: "main", Cluster: "prod"})
	if err != nil {
		b.Fatal(err)
	}
	heads, err := r.Fetch(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return repo, r, heads
}

func report(b *testing.B, r *git.Repo, before git.Stats) {
	after, n := r.Stats(), float64(b.N)
	b.ReportMetric(float64(after.Requests-before.Requests)/n, "requests/op")
	b.ReportMetric(float64(after.Sent-before.Sent)/n, "sent-B/op")
	b.ReportMetric(float64(after.Received-before.Received)/n, "received-B/op")
}

func BenchmarkClone(b *testing.B) {
	_, r, heads := benchRepo(b, 5000)
	remote := r.Remote().String()
	for b.Loop() {
		r, err := git.Open(b.Context(), git.Options{URL: remote, Branch: "main"})
		if err != nil {
			b.Fatal(err)
		}
		if got, err := r.Fetch(b.Context()); err != nil || got.Main != heads.Main {
			b.Fatal(got, err)
		}
	}
	b.ReportMetric(float64(r.Stats().Bytes)/5000, "store-B/app")
}

func BenchmarkIdlePoll(b *testing.B) {
	_, r, _ := benchRepo(b, 10)
	before := r.Stats()
	for b.Loop() {
		if _, err := r.Fetch(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	report(b, r, before)
}

func BenchmarkStateCommit(b *testing.B) {
	_, r, _ := benchRepo(b, 10)
	state := ""
	before := r.Stats()
	for i := 0; b.Loop(); i++ {
		ids, err := r.Push(b.Context(), stateUpdate(state, fmt.Sprintf("apps/%d/%d.yaml", i%10, i%1000), fmt.Sprintf("phase: %d\n", i)))
		if err != nil {
			b.Fatal(err)
		}
		state = ids[0]
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
		if _, err := r.Fetch(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	report(b, r, before)
}

func BenchmarkLookup(b *testing.B) {
	_, r, heads := benchRepo(b, 5000)
	s, err := r.Snapshot(b.Context(), heads.Main)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, ok, err := s.Lookup("apps/25/2550/3.yaml"); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
