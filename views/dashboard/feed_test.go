package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func TestFeed(t *testing.T) {
	board := NewBoard("test", "")
	f := NewFeed(board, func(string, ...any) {}, func(string, ...any) {})
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
		for deadline := time.Now().Add(10 * time.Second); !slices.Equal(board.Names(), want); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the board shows %v, want %v", board.Names(), want)
			}
		}
	}
	awaitNames("a", "b")
	l := board.Listing()
	if len(l.Apps) != 2 || l.Apps[0].Phase != rollout.Healthy || strings.Join(l.Apps[0].Warnings, "") != "the last pass: apply: refused" {
		t.Errorf("the board shows %+v", l.Apps)
	}
	broken := look("c", rollout.Healthy, nil)
	broken.Input.Head = strategies.Head{} // neither a render nor an error causes a panic; in practice, one is always set
	f.Tell(report.Report{Apps: []report.App{broken}, Gone: []string{"b"}})
	awaitNames("a", "c")
	f.Tell(report.Report{Gone: []string{"c"}})
	awaitNames("a")
}
