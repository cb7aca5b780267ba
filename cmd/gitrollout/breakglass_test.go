package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestEndOfAbortNow checks which report of a pass ends "abort --now" for an app, and with which error. The rollback is either not recorded
// yet (Input.Pending), or already in the local clone's record.
func TestEndOfAbortNow(t *testing.T) {
	t.Parallel()
	route := rollout.Ref{Kind: "HTTPRoute", Namespace: "shop", Name: "web"}
	refused := func(reason cluster.Reason) error { return &cluster.Error{Ref: route, Reason: reason, Msg: "no"} }
	const inPart = "app shop: all pods have the stable version, but the cluster refuses HTTPRoute shop/web: no; to continue, " +
		"repeat the command"
	hookRuns := func(a *report.App) {
		a.Before, a.Input.State, a.Input.Pending = a.Decision.State, a.Decision.State, nil
	}
	podsLeft := func(a *report.App) { a.Decision.State.Source = "new" }
	recorded := func(a *report.App) {
		a.Before.Phase, a.Decision.State.Phase, a.Input.Pending = rollout.Aborting, rollout.Degraded, nil
	}
	for name, c := range map[string]struct {
		err    error
		change func(*report.App)
		said   string // "" while the command waits
		failed string
	}{
		"rolled back":                          {nil, nil, "all pods have the stable version", "<nil>"},
		"rolled back, as the clone records":    {nil, recorded, "all pods have the stable version", "<nil>"},
		"rolled back, and its hook runs":       {nil, hookRuns, "all pods have the stable version", "<nil>"},
		"pods are left":                        {nil, podsLeft, "", "<nil>"},
		"a refused route":                      {refused(cluster.Denied), nil, "not rolled back", inPart},
		"a refused route, as the clone says":   {refused(cluster.Forbidden), recorded, "not rolled back", inPart},
		"a refused route, and pods are left":   {refused(cluster.Denied), podsLeft, "", "<nil>"},
		"another app's route":                  {&rollout.InvalidError{Msg: route.Title() + ": no"}, nil, "not rolled back", inPart},
		"the API server is overloaded":         {refused(cluster.Unavailable), nil, "", "<nil>"},
		"a commit that is not read yet":        {errors.New("not ready"), nil, "", "<nil>"},
		"another app":                          {nil, func(a *report.App) { a.Input.App.Name = "web" }, "", "<nil>"},
		"a newer record of a reconciler":       {nil, func(a *report.App) { a.Decision.Stale = true }, "a reconciler runs again", "<nil>"},
		"the annotation aborts no release yet": {errors.New("not ready"), notAborting, "", "<nil>"},
		"the annotation aborts no release": {nil, notAborting, "not rolled back", "app shop is not rolled back: the annotation matches no " +
			"release in the clone's record, which has serial 0; the cluster has serial 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			g := breakGlass{streams: streams{out: &out, err: io.Discard}, open: []string{"shop"}}
			back := strategies.Decision{State: rollout.State{
				App: "shop", Phase: rollout.Aborting, Source: "old", Rollback: &rollout.Rollback{To: "old"},
			}}
			a := report.App{Decision: back, Err: c.err}
			a.Input = strategies.Input{App: rollout.App{Name: "shop"}, Source: &rollout.Render{}, Pending: &back}
			if c.change != nil {
				c.change(&a)
			}
			g.tell(report.Report{Apps: []report.App{a}})
			compare.CheckNamed(t, "the command waits", c.said == "", len(g.open) == 1)
			compare.CheckNamed(t, "the error", c.failed, fmt.Sprint(g.failed))
			if said, is := strings.CutPrefix(out.String(), "shop: "); is != (c.said != "") || !strings.HasPrefix(said, c.said) {
				t.Errorf("printed %q, want %q", out.String(), c.said)
			}
		})
	}
}

// TestInFlight checks which workloads of an app "abort --break-glass" annotates.
func TestInFlight(t *testing.T) {
	t.Parallel()
	of := func(name, status string, change func(*cluster.Applied)) cluster.Applied {
		a := cluster.Applied{App: "shop", Cluster: "prod", Workload: rollout.Workload{Namespace: "shop", Name: name}, Status: status,
			Live: rollout.ObservedWorkload{Hash: "h1-1", Serial: 2, Complete: true}}
		if change != nil {
			change(&a)
		}
		return a
	}
	moving := func(a *cluster.Applied) { a.Live.Complete = false }
	foreign := func(a *cluster.Applied) { a.App = "pay" }
	generated := func(a *cluster.Applied) { a.Generated, a.Live.Complete = true, false }
	for name, c := range map[string]struct {
		all  []cluster.Applied
		want string
	}{
		"at a step":                  {[]cluster.Applied{of("db", "", nil), of("web", "held", moving)}, "web"},
		"at a step without new pods": {[]cluster.Applied{of("db", "", nil), of("web", "", nil)}, "db web"},
		"in the promotion":           {[]cluster.Applied{of("db", "", nil), of("web", "", moving)}, "web"},
		"of another app":             {[]cluster.Applied{of("web", "", nil), of("pay", "held", foreign)}, "web"},
		"of an experiment without other new pods": {[]cluster.Applied{of("db", "", nil), of("web", "", nil),
			of("web-1-canary", "runs canary", generated), of("web-1-stable", "runs stable", generated)}, "db web"},
	} {
		found, err := inFlight(c.all, "shop", "prod")
		must(t, err)
		compare.CheckNamed(t, name, c.want, strings.Join(rollout.Mapped(found, func(a cluster.Applied) string { return a.Workload.Name }), " "))
	}
}

func notAborting(a *report.App) { a.Decision.State.Phase, a.Input.Pending = rollout.Paused, nil }
