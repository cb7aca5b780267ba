// Package report holds the values that package reconciler passes to consumers: forge, notifications, metrics, tracing,
// dashboard and gitrollout once. Consumers that import it link no Kubernetes client.
package report

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Report is the reconciler's result at one moment. It is immutable, and the only value that consumers read.
type Report struct {
	Config *rollout.Config      // the configuration in force; nil until one could be read
	Head   string               // the head of the state branch; valid if Config is set
	Commit *rollout.StateCommit // the commit that this process has just made on the state branch; nil if none
	Forge  *Shown               // updates for the forge; nil if there are none
	Apps   []App                // the apps that were reconciled
	Gone   []string             // apps that no longer exist
}

// App is the result of reconciling one app: state, reasons, and measurements since the last record.
type App struct {
	Cluster   string
	Before    rollout.State       // the record before the pass
	Input     strategies.Input    // the input, with the record after the pass
	Decision  strategies.Decision //
	Happened  bool                // a transition was recorded, or a rollback was applied, in this pass
	Proposals map[string]string   // the commits of all proposals, by branch
	Err       error               // the error of the app
}

// Note returns the reason of a transition's Event, and whether the Event's type is Warning.
func (a App) Note() (reason string, warning bool) {
	s := a.Decision.State
	if s.Held != nil {
		return string(s.Held.Reason), !s.Held.Waits()
	}
	phase := s.Shown()
	return string(phase), a.Decision.Rollback || phase == rollout.Stalled || phase == rollout.Degraded
}

// Shown holds updates for a forge: pull requests for proposals, and commits' release status. No decision needs it.
type Shown struct {
	Forge   rollout.Forge
	Updates []rollout.ForgeUpdate
	// Resume is set after a start or a forge change. Updates then has current states, and Branches all proposals.
	Resume   bool
	Branches []string
}

// Stats counts the work of all passes, for metrics and tests.
type Stats struct {
	Passes  int // passes of one app, and of Git
	Commits int // commits on the state branch
	Decided int // apps reconciled
	Lost    int // pushes refused because another writer was first
}

// Part names one part of a pass, for metrics and traces.
type Part string

// The parts. Render, Decide and Apply handle one app. Decide includes the apply of the record before the decision.
const (
	PartPass   Part = "pass"
	PartFetch  Part = "fetch"
	PartRender Part = "render"
	PartDecide Part = "decide"
	PartPush   Part = "push"
	PartApply  Part = "apply"
)

// Tracer is called when a part begins, with its app, "" for none. It returns the part's context and a function to
// call once at the end, with the error. Several goroutines call it.
type Tracer func(ctx context.Context, part Part, app string) (context.Context, func(error))
