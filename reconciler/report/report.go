// Package report holds the values that package reconciler passes to its consumers. It links no Kubernetes client.
package report

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Report is an immutable result of the reconciler.
type Report struct {
	Config *rollout.Config      // in force; nil if none was readable yet
	Head   string               // of the state branch; valid if Config is set
	Commit *rollout.StateCommit // just made on the state branch, or nil
	Forge  *Shown               // nil without updates
	Apps   []App                // reconciled apps
	Gone   []string             // removed apps

	Problem *string // after a poll: the error of Git, and all invalid input; "" without a problem, nil without a poll
}

// App is the result of one app's pass.
type App struct {
	Cluster   string
	Before    rollout.State    // the record before the pass
	Input     strategies.Input // State is the record after the pass
	Decision  strategies.Decision
	Happened  bool              // recorded a transition or applied a rollback
	Proposals map[string]string // all commits, by branch
	Err       error
}

// Note returns the reason of a transition's Event, and whether the Event has the type Warning.
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
	// Resume is true after a start or for a new forge: Branches has all proposals, and Updates current states.
	Resume   bool
	Branches []string
}

// Stats counts the work of all passes.
type Stats struct {
	Passes  int // passes of single apps, and calls of RunOnce
	Commits int // by this process on the state branch
	Decided int // passes of single apps that came to a decision
	Lost    int // pushes after another writer's push
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

// Tracer is called when a part begins. It returns the part's context, and a function to call once, with the part's
// error, when the part ends. app is "" for parts of several apps. Several goroutines call Tracer.
type Tracer func(ctx context.Context, part Part, app string) (context.Context, func(error))
