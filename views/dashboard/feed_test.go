package dashboard_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/dashboard"
)

// await waits until a condition holds, for at most a minute.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute: " + what)
		}
	}
}

// TestFeedShowsProblems checks that all pages show the problem of the last poll. Until there is an app or a problem, they show the first
// note of the board.
func TestFeedShowsProblems(t *testing.T) {
	url, board := boardOf(t, appOf("shop", rollout.Healthy, 0))
	must(t, board.Show(time.Now(), "no pass yet", nil, nil))
	f := dashboard.NewFeed(board, func(string, ...any) {}, func(string, ...any) {})
	poll := func(problem string) { f.Tell(report.Report{Problem: &problem, Staged: problem != ""}) }
	poll("")
	compare.CheckNamed(t, "updates for a poll without a problem", 0, f.News())
	go f.Run(t.Context(), time.Now)
	for _, problem := range []string{"fetch: no route;\napps/No_Name: is not a name", ""} {
		poll(problem)
		await(t, "the note "+problem, func() bool { return board.Listing().Note == problem })
		_, page := get(t, url+"/plain")
		compare.CheckNamed(t, "the plain page has the note", problem != "", strings.Contains(page, "is not a name"))
		detail, _, _ := board.App("shop")
		compare.CheckNamed(t, "the note on the app's page", problem, detail.Board)
		compare.CheckNamed(t, "stages", problem != "", board.Staged.Load())
	}
}

func TestFeed(t *testing.T) {
	board := dashboard.NewBoard("test", "")
	f := dashboard.NewFeed(board, func(string, ...any) {}, func(string, ...any) {})
	look := func(name string, phase rollout.Phase, err error) report.App {
		return report.App{Cluster: "test", Err: err, Input: strategies.Input{
			App: rollout.App{Name: name}, State: rollout.State{App: name, Phase: phase},
			Head: strategies.Head{Err: rollout.Invalidf("f", "", "wrong")},
		}}
	}
	// Tell must not block, even before Run is called, when nothing reads the reports.
	for i := range 1000 {
		f.Tell(report.Report{Apps: []report.App{look("a", rollout.Progressing, nil), look(fmt.Sprint("x", i), rollout.Healthy, nil)}})
		f.Tell(report.Report{Gone: []string{fmt.Sprint("x", i)}})
	}
	f.Tell(report.Report{Apps: []report.App{look("a", rollout.Healthy, fmt.Errorf("apply: refused")), look("b", rollout.Healthy, nil)}})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go f.Run(ctx, time.Now)
	awaitNames := func(want ...string) {
		t.Helper()
		await(t, fmt.Sprint("the board shows ", want), func() bool { return slices.Equal(board.Names(), want) })
	}
	awaitNames("a", "b")
	l := board.Listing()
	if len(l.Apps) != 2 || l.Apps[0].Phase != rollout.Healthy || strings.Join(l.Apps[0].Warnings, "") != "the last pass: apply: refused" {
		t.Errorf("the board shows %+v", l.Apps)
	}
	broken := look("c", rollout.Healthy, nil)
	broken.Input.Head = strategies.Head{} // a Head with neither a render nor an error must cause no panic; real Heads have one of them
	f.Tell(report.Report{Apps: []report.App{broken}, Gone: []string{"b"}})
	awaitNames("a", "c")
	f.Tell(report.Report{Gone: []string{"c"}})
	awaitNames("a")
}
