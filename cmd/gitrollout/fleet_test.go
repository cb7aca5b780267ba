package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

func fleet() status.Listing {
	named := func(a status.App, name string) status.App { a.App = name; return a }
	calm := heldByInput()
	calm.Held = nil
	l := status.Listing{Cluster: "prod-eu"}
	for i := range 40 {
		l.Apps = append(l.Apps, named(calm, fmt.Sprintf("api-%02d", i)))
	}
	l.Apps = append(l.Apps, named(timedPauseView(), "cart"), named(blueGreenPreview(), "checkout"), named(heldByInput(), "search"), named(degradedRejected(), "shop"), named(stalledCrashLoop(), "web"))
	return l
}

func TestFleetFilter(t *testing.T) {
	cases := map[string]struct {
		filter fleetFilter
		want   string
	}{
		"phase":           {fleetFilter{phases: []string{"degraded", "Stalled"}}, "shop web"},
		"held":            {fleetFilter{held: true}, "search"},
		"waiting":         {fleetFilter{waiting: true}, "checkout search shop"},
		"patterns":        {fleetFilter{names: []string{"c*", "we?"}}, "cart checkout web"},
		"text":            {fleetFilter{text: "crashloop"}, "web"},
		"a hash":          {fleetFilter{text: "h1-7b4e2", names: []string{"c*"}}, "cart checkout"},
		"all of them":     {fleetFilter{waiting: true, phases: []string{"Paused"}}, "checkout"},
		"nothing matches": {fleetFilter{text: "no such thing"}, ""},
		"by urgency":      {fleetFilter{sort: "urgency", names: []string{"api-00", "[c-w]*"}}, "shop web search cart checkout api-00"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := c.filter.check(); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, a := range c.filter.apply(fleet()).Apps {
				names = append(names, a.App)
			}
			if diff := cmp.Diff(c.want, strings.Join(names, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, bad := range []fleetFilter{{phases: []string{"fine"}}, {names: []string{"["}}, {sort: "size"}} {
		if bad.check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// The window shows what needs a look, and counts the rest.
func TestListInAWindow(t *testing.T) {
	f := fleetFilter{sort: "urgency"}
	l := f.apply(fleet())
	for _, rows := range []int{12, 30, 100} {
		text := drawList(l, look{width: 100, rows: rows, now: at()})
		if lines := strings.Count(text, "\n"); lines > rows {
			t.Errorf("%d lines in a window of %d", lines, rows)
		}
		if rows == 12 {
			golden(t, "list-window", text)
		}
	}
	l.SetNote("shown from Git alone, without pods: no answer in 15s")
	if text := drawList(l, look{width: 100, rows: 10, now: at()}); strings.Count(text, "\n") > 10 || !strings.Contains(text, "and 4") {
		t.Errorf("in 10 lines:\n%s", text)
	}
}

// fleetRepo is a repository with so many apps, all recorded as healthy but for
// every hundredth, which is paused.
func fleetRepo(t testing.TB, apps int) *gittest.Repo {
	t.Helper()
	repo := gittest.New(t)
	files := map[string]string{".gitrollout/prod/config.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n  namespace: fleet\n"}
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
		r := &rollout.Release{Commit: commit, Hash: "h1-0000000001", Author: "Ann <ann@example.com>", Subject: "first", Since: at(), Templates: map[rollout.Workload]rollout.Hash{w: "h1-0000000001"}}
		s := rollout.State{App: name(i), Path: "apps/" + name(i), Serial: 1, Phase: rollout.Healthy, Source: commit, Stable: r}
		if i%100 == 0 {
			s.Phase, s.Release = rollout.Paused, r
			s.Progress = []rollout.Progress{{Workload: w, Step: 1, Of: 2, Name: "pause", Weight: 50, Entered: at()}}
		}
		data, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&stream, "M 644 inline %s\ndata %d\n%s\n", rollout.StatePath(name(i)), len(data), data)
	}
	repo.FastImport(stream.String() + "\n")
	return repo
}

// BenchmarkFleet is list -w for 1,000 apps from Git alone: the first drawing, a
// second without news, and one after a push to one app.
func BenchmarkFleet(b *testing.B) {
	repo := fleetRepo(b, 1000)
	url := repo.HTTP(gittest.HTTPOptions{}).URL
	draw := func(w *world, out *screen) time.Duration {
		began := time.Now()
		l, err := w.listing(b.Context(), nil, time.Now())
		if err != nil {
			b.Fatal(err)
		}
		f := fleetFilter{sort: "urgency"}
		if err := out.show(drawList(f.apply(l), look{width: 120, rows: 50, color: true, now: time.Now()}), 120, 51); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	n := 0
	for b.Loop() {
		var written countingWriter
		out := &screen{out: &written}
		began := time.Now()
		w, err := openWorld(b.Context(), sourceOptions{repo: url, branch: "main", cluster: "prod"}, streams{out: io.Discard, err: io.Discard})
		if err != nil {
			b.Fatal(err)
		}
		read := time.Since(began)
		first := draw(w, out)
		written = 0
		second := draw(w, out)
		b.ReportMetric(float64(written), "bytes/redraw")
		n++
		repo.Pull()
		repo.CommitFiles("news", map[string]string{"apps/app-0001/note.txt": fmt.Sprint(n)})
		began = time.Now()
		if _, err := w.refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
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
