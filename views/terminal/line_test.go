package terminal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// TestListTellsOfWarnings checks that the last column of a list shows the number of warnings of a healthy app.
func TestListTellsOfWarnings(t *testing.T) {
	a := status.App{App: "shop", Phase: rollout.Healthy, Warnings: []string{"hook shop/migrate failed"}}
	if text := terminal.List(status.Listing{Apps: []status.App{a}}, terminal.Look{}); !strings.HasSuffix(text, "  1 warning\n") {
		t.Errorf("it says\n%s", text)
	}
}

// TestNews checks that News returns the whole listing at the first call, and then each change once.
func TestNews(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	stamp := "2026-11-22T12:00:00Z "
	app := func(name string, phase rollout.Phase, ready int) status.App {
		return status.App{App: name, Phase: phase, Workloads: []status.Workload{{Strategy: "plain", Replicas: 2, Ready: ready}}}
	}
	analysed := app("shop", rollout.Paused, 2)
	analysed.Release, analysed.Analyses = &status.Release{Hash: "h1-v2"},
		status.Analyses([]rollout.AnalysisRun{{Name: "errors", Phase: "Running"}}, nil)
	over := app("shop", rollout.Healthy, 2)
	over.Analyses = analysed.Analyses
	unseen := app("shop", rollout.Healthy, 0)
	unseen.Note, unseen.Workloads[0].Unread = "the cluster is away", true
	var n terminal.News
	for i, step := range []struct {
		l    status.Listing
		wide bool
		want string
	}{
		{status.Listing{Apps: []status.App{app("cart", rollout.Healthy, 2), app("shop", rollout.Healthy, 2)}}, false, "everything\n"},
		{status.Listing{Apps: []status.App{app("cart", rollout.Healthy, 2), app("shop", rollout.Healthy, 2)}}, false, ""},
		{
			status.Listing{Apps: []status.App{app("cart", rollout.Healthy, 1), app("shop", rollout.Degraded, 2)}}, false,
			stamp + "cart Healthy, 1/2 ready\n" + stamp + "shop Degraded, 2/2 ready\n",
		},
		{status.Listing{Apps: []status.App{app("shop", rollout.Degraded, 2)}}, false, stamp + "cart is no longer listed\n"},
		{status.Listing{Apps: []status.App{app("shop", rollout.Degraded, 2)}}, true, ""},
		{status.Listing{Apps: []status.App{analysed}}, false, stamp + "shop Paused h1-v2, 2/2 ready, analysis errors Running\n"},
		{status.Listing{Apps: []status.App{over}}, true, "2026-11-22T12:00:00Z\neverything\n"},
		{
			status.Listing{Note: unseen.Note, Apps: []status.App{unseen}}, false,
			stamp + "shop Healthy\n" + stamp + "the cluster is away\n",
		},
		{
			status.Listing{Apps: []status.App{over}}, false,
			stamp + "shop Healthy, 2/2 ready\n" + stamp + "everything can be read again\n",
		},
	} {
		got := n.Of(step.l, terminal.Look{Now: now, Wide: step.wide}, func(terminal.Look) string { return "everything" })
		compare.CheckNamed(t, fmt.Sprint(i+1), step.want, got)
	}
}
