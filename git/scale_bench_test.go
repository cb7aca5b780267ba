package git_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// BenchmarkLargeRepository compares this package with the git command. Both do the same tasks in turn on one server, and a table shows the
// costs. git fetches only the needed branches, into a shallow clone. It pushes from a full clone, because pushes from a shallow clone are
// slower. TestCostsDoNotGrow checks exact costs, and no test checks times. docs/performance.md explains the table.
func BenchmarkLargeRepository(b *testing.B) {
	size := scaleOf()
	start := time.Now()
	repo := largeRepo(b, size)
	fmt.Printf("\n\n%s: made in %.0f s\n", size, time.Since(start).Seconds())
	server := repo.HTTP(gittest.HTTPOptions{})
	http := &largeWorld{size: size, repo: repo, server: server, url: server.URL, cliURL: server.URL}
	// The second world writes other versions, because the repository already has the first world's changes.
	path := &largeWorld{size: size, repo: repo, url: repo.Bare, cliURL: "file://" + repo.Bare, version: 1_000_000}
	http.table(b, "http")
	path.table(b, "path")
	http.maintain()
	b.Run("http/long-life", http.longLife)
}

// table measures all tasks over one transport, and prints their table.
func (w *largeWorld) table(b *testing.B, transport string) {
	var table strings.Builder
	w.columns = tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w.columns, "%s\tgitrollout\treceived\tsent\tmemory\tgit\treceived\tsent\tmemory\tratio\n", transport)
	run := func(name string, do func(*testing.B)) {
		w.maintain()
		b.Run(transport+"/"+name, do)
	}
	run("first-fetch", w.firstFetch)
	run("idle-poll", w.idlePoll)
	run("fetch-one-commit", w.fetchOne)
	run("state-commit-1", func(b *testing.B) { w.stateCommits(b, 1, w.size.states) })
	run("state-commit-200", func(b *testing.B) { w.stateCommits(b, 200, w.size.states[len(w.size.states)-1:]) })
	_ = w.columns.Flush()
	fmt.Printf("\n\n%s\n%s\n", table.String(), w.notes.String())
}

// maintain repacks the server's repository, as servers do regularly. Otherwise, the loose objects of each push would
// slow down all later pushes.
func (w *largeWorld) maintain() { w.repo.InBare("repack", "-d", "-q") }

// minRounds is the minimum number of rounds of a task. A fast task runs more rounds, until a second has passed.
const minRounds = 12

// rounds repeats a round until b.Loop ends, and at least minRounds times.
func rounds(b *testing.B, round func(i int)) {
	n := 0
	for ; b.Loop(); n++ {
		round(n)
	}
	for ; n < minRounds; n++ {
		round(n)
	}
	b.ReportMetric(0, "ns/op")
}

// largeWorld is the large repository, with its URLs for one transport.
type largeWorld struct {
	size        scale
	repo        *gittest.Repo
	server      *gittest.Server // nil for a local path
	url, cliURL string
	version     int

	columns *tabwriter.Writer
	notes   strings.Builder // printed after the table
}

// cost has the costs of a task, either with gitrollout or with git.
type cost struct {
	walls          []time.Duration
	received, sent int64  // total of all rounds; negative if unknown
	memory         string // text for the table
}

func (c *cost) median() time.Duration {
	sorted := slices.Sorted(slices.Values(c.walls))
	return sorted[len(sorted)/2]
}

func (c *cost) String() string {
	per := func(n int64) string {
		if n < 0 {
			return "–"
		}
		return fmt.Sprint(n / int64(len(c.walls)))
	}
	return fmt.Sprintf("%s (%s–%s) ms\t%s\t%s\t%s", millis(c.median()), millis(slices.Min(c.walls)), millis(slices.Max(c.walls)),
		per(c.received), per(c.sent), c.memory)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// row adds a task's costs to the table, for gitrollout and for git. It also reports these costs as metrics.
func (w *largeWorld) row(b *testing.B, what string, ours, plain *cost) {
	ratio := float64(plain.median()) / float64(ours.median())
	_, _ = fmt.Fprintf(w.columns, "%s\t%s\t%s\t1 : %.1f\n", what, ours, plain, ratio)
	b.ReportMetric(float64(ours.median())/1e6, "ms")
	b.ReportMetric(float64(plain.median())/1e6, "git-ms")
	b.ReportMetric(ratio, "git/ours")
	b.ReportMetric(float64(ours.received)/float64(len(ours.walls)), "received-B")
	if ours.sent >= 0 {
		b.ReportMetric(float64(ours.sent)/float64(len(ours.walls)), "sent-B")
	}
}

// ours measures an operation of gitrollout's mirror.
func (c *cost) ours(r *git.Repo, step func()) {
	before, start := r.Stats(), time.Now()
	step()
	c.walls = append(c.walls, time.Since(start))
	spent := minus(r.Stats(), before)
	c.received, c.sent = c.received+spent.Received, c.sent+spent.Sent
}

func (c *cost) poll(b *testing.B, r *git.Repo) {
	c.ours(r, func() { fetch(b, r) })
}

// plain measures a script with git commands.
func (w *largeWorld) plain(c *cost, in cli, script string) {
	if w.server == nil {
		c.walls, c.received, c.sent = append(c.walls, in.run(script)), -1, -1
		return
	}
	received, sent := w.server.Bytes()
	c.walls = append(c.walls, in.run(script))
	receivedNow, sentNow := w.server.Bytes()
	c.received, c.sent = c.received+sentNow-sent, c.sent+receivedNow-received
}

// resident runs a script again, and returns the peak RSS of git. For a local path, it returns "–", because the measured processes of git
// would include the server.
func (w *largeWorld) resident(in cli, script string) string {
	if peak := in.resident(script); w.server != nil {
		return "RSS " + mib(peak)
	}
	return "–"
}

func (w *largeWorld) state() string { return stateOf(w.size.longest()) }

func (w *largeWorld) open(b *testing.B, state string) (*git.Repo, rollout.Heads) {
	b.Helper()
	r := open(b, git.Options{URL: w.url, Branch: "main", StateBranch: state, Cluster: "prod"})
	return r, fetch(b, r)
}

// mirror returns a new bare repository that fetches only main and the state branch.
func (w *largeWorld) mirror(b *testing.B) cli {
	c := cli{b, b.TempDir()}
	c.run("git init -q --bare . && git config gc.auto 0 && git remote add origin " + w.cliURL +
		" && git config remote.origin.fetch +refs/heads/main:refs/heads/main" +
		" && git config --add remote.origin.fetch +refs/heads/" + w.state() + ":refs/heads/state")
	return c
}

const firstFetch, nextFetch = "git fetch -q --no-tags --depth 1 origin", "git fetch -q --no-tags origin"

// firstFetch measures the time from the start of a process until both branches are fetched. The process is git or this test program.
func (w *largeWorld) firstFetch(b *testing.B) {
	var ours, plain cost
	var heap, resident int64
	rounds(b, func(int) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), freshURL+"="+w.url, freshState+"="+w.state())
		start := time.Now()
		out, err := cmd.Output()
		ours.walls = append(ours.walls, time.Since(start))
		var received int64
		if _, scanErr := fmt.Fscan(bytes.NewReader(out), &received, &heap, &resident); err != nil || scanErr != nil {
			b.Fatal(err, scanErr)
		}
		ours.received += received
		w.plain(&plain, w.mirror(b), firstFetch)
	})
	ours.sent = -1
	ours.memory = fmt.Sprintf("heap %s, RSS %s", mib(heap), mib(resident))
	plain.memory = w.resident(w.mirror(b), firstFetch)
	b.ReportMetric(float64(heap), "heap-B")
	w.row(b, "first fetch of a new process", &ours, &plain)
}

func (w *largeWorld) idlePoll(b *testing.B) {
	var ours, plain cost
	r, _ := w.open(b, w.state())
	clone := w.mirror(b)
	clone.run(firstFetch)
	rounds(b, func(int) {
		ours.poll(b, r)
		w.plain(&plain, clone, nextFetch)
	})
	heap, before := liveHeap(), allocated()
	for range 100 {
		fetch(b, r)
	}
	garbage := (allocated() - before) / 100
	ours.memory = fmt.Sprintf("allocates %d kB, keeps %d B", garbage>>10, max(0, liveHeap()-heap)/100)
	plain.memory = w.resident(clone, nextFetch)
	b.ReportMetric(float64(garbage), "allocated-B")
	w.row(b, "idle poll", &ours, &plain)
}

func (w *largeWorld) fetchOne(b *testing.B) {
	var ours, plain cost
	r, _ := w.open(b, w.state())
	clone := w.mirror(b)
	clone.run(firstFetch)
	rounds(b, func(i int) {
		w.version++
		usersPush(w.repo, w.version)
		both := []func(){func() { ours.poll(b, r) }, func() { w.plain(&plain, clone, nextFetch) }}
		both[i%2]() // the order alternates, because the page cache makes the second function faster
		both[1-i%2]()
	})
	w.version++
	usersPush(w.repo, w.version)
	before := allocated()
	fetch(b, r)
	ours.memory = fmt.Sprintf("allocates %d kB", (allocated()-before)>>10)
	plain.memory = w.resident(clone, nextFetch)
	w.row(b, "fetch of one commit", &ours, &plain)
}

// committer commits to two state branches of equal length, to one with gitrollout and to the other with git.
type committer struct {
	commits     int
	r           *git.Repo
	state       string
	clone       cli
	ours, plain cost
	// first is the cost of gitrollout's first push. Unlike later pushes, it reads the server's capabilities and refs.
	first cost
}

// stateCommits measures commits with the records of n apps. It alternates between branches with histories of different lengths.
func (w *largeWorld) stateCommits(b *testing.B, n int, histories []int) {
	var all []*committer
	for _, commits := range histories {
		c := &committer{commits: commits, clone: cli{b, b.TempDir()}}
		r, heads := w.open(b, stateOf(commits))
		c.r, c.state = r, heads.State
		c.clone.run("git clone -q --no-tags --single-branch -b " + byCLI(commits) + " " + w.cliURL + " . && git config gc.auto 0")
		c.commit(b, w, n, &c.first)
		all = append(all, c)
	}
	rounds(b, func(int) {
		for _, c := range all {
			c.commit(b, w, n, &c.ours)
			c.commitByCLI(b, w, n)
		}
	})
	for _, c := range all {
		before := allocated()
		c.commit(b, w, n, &cost{})
		c.ours.memory = fmt.Sprintf("allocates %d kB", (allocated()-before)>>10)
		c.plain.memory = w.resident(c.clone, c.script(b, w, n))
		w.row(b, fmt.Sprintf("state commit of %d, after %d commits", n, c.commits), &c.ours, &c.plain)
	}
	if first, last := all[0], all[len(all)-1]; first != last {
		_, _ = fmt.Fprintf(&w.notes, "first state commit of a process: %s ms, %d bytes received\n",
			millis(first.first.median()), first.first.received)
		of := func(a, b *cost) float64 { return float64(a.median()) / float64(b.median()) }
		b.ReportMetric(of(&last.ours, &first.ours), "longest/shortest")
		_, _ = fmt.Fprintf(&w.notes, "state commit after %d commits : after %d = %.2f (git %.2f)\n",
			last.commits, first.commits, of(&last.ours, &first.ours), of(&last.plain, &first.plain))
	}
}

// records returns edits that write new records of n apps.
func (w *largeWorld) records(n int) map[string][]byte {
	w.version++
	edits := map[string][]byte{}
	for i := range n {
		app := (w.version*n + i) * 7919 % w.size.apps
		edits[recordFile(app)] = []byte(record(app, 1_000_000+w.version))
	}
	return edits
}

func (c *committer) commit(b *testing.B, w *largeWorld, n int, into *cost) {
	b.Helper()
	next := update(stateOf(c.commits), c.state, "prod: next", w.records(n))
	into.ours(c.r, func() { c.state = push(b, c.r, next)[0] })
	if c.state == "" {
		b.Fatal("nothing was pushed")
	}
}

// script writes new records into the clone. It returns the git commands that commit and push them.
func (c *committer) script(b *testing.B, w *largeWorld, n int) string {
	for path, content := range w.records(n) {
		must(b, os.WriteFile(c.clone.dir+"/"+path, content, 0o644))
	}
	return "git commit -q -a -m next && git push -q origin HEAD"
}

func (c *committer) commitByCLI(b *testing.B, w *largeWorld, n int) {
	w.plain(&c.plain, c.clone, c.script(b, w, n))
}

// longLife polls and commits a thousand times, and reports the memory. After each 50 rounds, a user pushes to main.
func (w *largeWorld) longLife(b *testing.B) {
	const life = 1000
	c := &committer{commits: w.size.longest()}
	r, heads := w.open(b, stateOf(c.commits))
	c.r, c.state = r, heads.State
	var polls cost
	var early int64
	var most [2]int64 // the largest heap in each half of the run; the heap grows until the store is renewed
	for i := range life {
		if i%100 == 0 {
			w.maintain()
		}
		if i%50 == 0 {
			most[2*i/life] = max(most[2*i/life], liveHeap())
		}
		if i == 100 {
			early = liveHeap()
		}
		if i%50 == 49 {
			w.version++
			usersPush(w.repo, w.version)
		}
		polls.poll(b, r)
		c.commit(b, w, 1, &c.ours)
	}
	late, stats := liveHeap(), r.Stats()
	tenth := func(walls []time.Duration) float64 {
		first, last := &cost{walls: walls[:life/10]}, &cost{walls: walls[life-life/10:]}
		return float64(last.median()) / float64(first.median())
	}
	fmt.Printf("\n\n%d polls and state commits: heap %s after 100, %s after all, "+
		"at most %s in the first half and %s in the second (store %s, %d objects)\n",
		life, mib(early), mib(late), mib(most[0]), mib(max(most[1], late)), mib(stats.Bytes), stats.Objects)
	fmt.Printf("last tenth : first tenth = %.2f for polls, %.2f for commits\n", tenth(polls.walls), tenth(c.ours.walls))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(early), "heap-100-B")
	b.ReportMetric(float64(late), "heap-1000-B")
}
