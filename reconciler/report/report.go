// Package report holds the values that package reconciler passes to other packages: forge, notifications, metrics,
// tracing and dashboard. The import of this package links no Kubernetes client.
package report

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Report is an immutable result of the reconciler. Its consumers read no other data of the reconciler.
type Report struct {
	Config *rollout.Config      // the configuration in force; nil if none was readable yet
	Head   string               // the head of the state branch; valid if Config is set
	Commit *rollout.StateCommit // the commit that this process just made on the state branch, or nil
	Forge  *Shown               // updates for the forge; nil if there are none
	Apps   []App                // the apps that were reconciled
	Gone   []string             // apps that no longer exist

	Problem *string // after a poll: the error of Git, and all invalid input; "" without a problem, nil without a poll
}

// App is the result of one app's pass.
type App struct {
	Cluster   string
	Before    rollout.State       // the record before the pass
	Input     strategies.Input    // the decision's input, except State, which is the record after the pass
	Decision  strategies.Decision // the decision of the pass
	Happened  bool                // this pass recorded a transition or applied a rollback
	Proposals map[string]string   // the commits of all proposals, by branch
	Err       error               // the error of the app
}

// Note returns the reason of a transition's Event. If warning is true, the Event has the type Warning.
func (a App) Note() (reason string, warning bool) {
	s := a.Decision.State
	if s.Held != nil {
		return string(s.Held.Reason), !s.Held.Waits()
	}
	phase := s.Shown()
	return string(phase), a.Decision.Rollback || phase == rollout.Stalled || phase == rollout.Degraded
}

// Shown holds updates for a forge: pull requests for proposals, and the release status of commits.
type Shown struct {
	Forge   rollout.Forge
	Updates []rollout.ForgeUpdate
	// Resume is true after a start or for a new forge. Then Branches has all proposals, and Updates has current states.
	Resume   bool
	Branches []string
}

// Stats counts the work of all passes, for metrics and tests.
type Stats struct {
	Passes  int // passes of single apps, and calls of RunOnce
	Commits int // commits that this process made on the state branch
	Decided int // passes of single apps that came to a decision
	Lost    int // pushes that failed because another writer pushed first
}

// Part names one part of a pass, for metrics and traces.
type Part string

// PartRender, PartDecide and PartApply handle one app. PartDecide includes an apply of the recorded state.
const (
	PartPass   Part = "pass"
	PartFetch  Part = "fetch"
	PartRender Part = "render"
	PartDecide Part = "decide"
	PartPush   Part = "push"
	PartApply  Part = "apply"
)

// Tracer is called when a part begins. It returns the part's context, and a function to call once when the part ends,
// with the part's error. The parameter app is "" for parts of several apps. Several goroutines call Tracer.
type Tracer func(ctx context.Context, part Part, app string) (context.Context, func(error))
