package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/terminal"
)

// fleetRepo returns a repository with this number of apps, and their records. Every hundredth app is paused, and all other apps are
// healthy.
func fleetRepo(t testing.TB, apps int) *gittest.Repo {
	t.Helper()
	repo := gittest.New(t)
	files := map[string]string{rollout.ConfigPath("prod"): configOf("fleet", "- path: apps/*")}
	name := func(i int) string { return fmt.Sprintf("app-%04d", i) }
	for i := range apps {
		for file, content := range version("v1", halfThenGate) {
			files["apps/"+name(i)+"/"+file] = strings.ReplaceAll(content, "APP", name(i))
		}
	}
	commit := repo.CommitFiles("first", files)
	var stream strings.Builder
	stream.WriteString("commit refs/heads/gitrollout/state/prod\ncommitter a <a@b> 1000000000 +0000\ndata 5\nstate\n")
	for i := range apps {
		w := rollout.Workload{Namespace: "fleet", Name: name(i)}
		r := &rollout.Release{
			Commit: commit, Hash: "h1-0000000001", Author: "Ann <ann@example.com>", Subject: "first", Since: at(),
			Templates: map[rollout.Workload]rollout.Hash{w: "h1-0000000001"},
		}
		s := rollout.State{App: name(i), Path: "apps/" + name(i), Serial: 1, Phase: rollout.Healthy, Source: commit, Stable: r}
		if i%100 == 0 {
			s.Phase, s.Release = rollout.Paused, r
			s.Progress = []rollout.Progress{{Workload: w, Step: 1, Of: 2, Name: "pause", Weight: 50, Entered: at()}}
		}
		data := encoded(t, s)
		fmt.Fprintf(&stream, "M 644 inline %s\ndata %d\n%s\n", rollout.StatePath(name(i)), len(data), data)
	}
	repo.FastImport(stream.String() + "\n")
	return repo
}

// stateCommits builds the input of git fast-import for further commits on the state branch of fleetRepo.
type stateCommits struct{ strings.Builder }

// add adds a commit, with the given Unix time, that changes the record of one app.
func (c *stateCommits) add(tb testing.TB, at int64, message string, s rollout.State) {
	tb.Helper()
	from, data := "", encoded(tb, s)
	if c.Len() == 0 {
		from = "from refs/heads/gitrollout/state/prod^0\n"
	}
	fmt.Fprintf(c, "commit refs/heads/gitrollout/state/prod\ncommitter a <a@b> %d +0000\ndata %d\n%s\n%sM 644 inline %s\ndata %d\n%s\n",
		at, len(message), message, from, rollout.StatePath(s.App), len(data), data)
}

// openFleet opens a session on the repository at url, as the commands do.
func openFleet(b *testing.B, url string) *console.Session {
	b.Helper()
	source := &sourceOptions{repo: url, branch: "main", cluster: "prod"}
	session, err := openWorld(b.Context(), source, streams{out: io.Discard, err: io.Discard})
	must(b, err)
	return session
}

// BenchmarkFleet measures `list -w` for 1,000 apps, without a cluster. It reports the times of the first read, the first screen, a redraw
// without changes, and a poll after a push to one app.
func BenchmarkFleet(b *testing.B) {
	repo := fleetRepo(b, 1000)
	url := repo.HTTP(gittest.HTTPOptions{}).URL
	draw := func(w *console.Session, out *terminal.Screen) time.Duration {
		began := time.Now()
		l, err := w.Listing(b.Context(), nil, time.Now())
		must(b, err)
		f := terminal.Filter{Sort: "urgency"}
		look := terminal.Look{Width: 120, Color: true, Now: time.Now()}
		must(b, out.Draw(look, 120, 51, func(k terminal.Look) string { return terminal.List(f.Apply(l), k) }))
		return time.Since(began)
	}
	n := 0
	for b.Loop() {
		var written countingWriter
		out := &terminal.Screen{Out: &written}
		began := time.Now()
		w := openFleet(b, url)
		read := time.Since(began)
		first := draw(w, out)
		written = 0
		second := draw(w, out)
		b.ReportMetric(float64(written), "bytes/redraw")
		n++
		repo.Pull()
		repo.CommitFiles("news", map[string]string{"apps/app-0001/note.txt": fmt.Sprint(n)})
		began = time.Now()
		must(b, errorOf(w.Refresh(b.Context())))
		draw(w, out)
		b.ReportMetric(float64(read.Milliseconds()), "ms/read")
		b.ReportMetric(float64(first.Milliseconds()), "ms/first")
		b.ReportMetric(float64(second.Microseconds())/1000, "ms/redraw")
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/push")
	}
}

type countingWriter int

func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}

// at returns a fixed time.
func at() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }
