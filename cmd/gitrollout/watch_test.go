package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// listings is a viewer that returns the next listing at each call.
type listings [][]status.App

func (l *listings) Listing(context.Context, []string, time.Time) (status.Listing, error) {
	now := status.Listing{Cluster: "prod", Apps: (*l)[0]}
	*l = (*l)[1:]
	return now, nil
}

func (*listings) Refresh(context.Context) (bool, error) { return true, nil }

// TestWatchOfAPatternWithoutAMatch checks that list -w reports a pattern if the first listing has no matching app. If a matching app is
// removed later, nothing is reported.
func TestWatchOfAPatternWithoutAMatch(t *testing.T) {
	shop, none := []status.App{{App: "shop"}}, []status.App{}
	for name, c := range map[string]struct {
		pattern string
		looks   listings
		want    string
	}{
		"AtTheStart": {"shp*", listings{shop}, `no app of cluster prod matches "shp*"; gitrollout list shows all apps`},
		"NoApps":     {"shop", listings{none}, `no app of cluster prod matches "shop"; gitrollout list shows all apps`},
		"Matches":    {"sh*", listings{shop}, ""},
		"Removed":    {"sh*", listings{shop, none}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			filter := terminal.Filter{Names: []string{c.pattern}}
			w := &watcher{lookCommand: &lookCommand{filter: &filter}, view: &c.looks}
			got := ""
			for len(c.looks) > 0 {
				if err := w.look(t.Context()); err != nil {
					got += err.Error()
				}
			}
			compare.Check(t, c.want, got)
		})
	}
}

// TestWatchInAPipe checks the output of get -w in a pipe: first the app, and then one line for each change.
func TestWatchInAPipe(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, done := &safeBuffer{}, make(chan int)
	go func() {
		done <- run(ctx, []string{"get", w.app, "-w", "--refresh", "100ms", "--repo", w.server.URL, "--cluster", "test",
			"--kubeconfig", w.api.kubeconfig}, strings.NewReader(""), out, out)
	}()
	defer func() {
		if t.Failed() {
			t.Logf("the output is:\n%s", out)
		}
	}()
	await := func(what, pattern string) {
		t.Helper()
		await(t, fmt.Sprintf("%s (%s)", what, pattern), func() bool { return regexp.MustCompile(pattern).MatchString(out.String()) })
	}
	await("the first look", "✔ "+w.app+"  Healthy")
	s := p.awaitPaused(w.pushVersion("v2"))
	line := `(?m)^20\S+Z ` + w.app
	await("the gate", line+` Paused `+string(s.Release.Hash)+`, \S+ step 2/2 \(pause, 50%\), waits for promotion of .*, 3/3 ready$`)
	w.server.Fault(gittest.Faults{Status: 503})
	await("the trouble", `(?m)^20\S+Z the refresh fails, so this may be out of date: `)
	w.server.Fault(gittest.Faults{})
	await("its end", `(?m)^20\S+Z everything can be read again$`)
	w.decide(s.Release.Hash, "promote", "")
	p.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
	await("the end", line+` Healthy `+string(s.Release.Hash)+`, 2/2 ready$`)
	stop()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d after an interruption", code)
	}
	if n := strings.Count(out.String(), "Waits for"); n > 0 {
		t.Errorf("%d more drawings:\n%s", n, fmt.Sprint(out))
	}
}
