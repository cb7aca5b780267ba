// Package report holds the reconciler's results for its consumers. It links no Kubernetes client.
package report

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Report is an immutable result.
type Report struct {
	Config *rollout.Config      // nil if none was readable yet
	Head   string               // of the state branch; valid if Config is set
	Commit *rollout.StateCommit // just made on the state branch, or nil
	Forge  *Shown               // nil without updates
	Apps   []App
	Gone   []string

	Problem *string // after a poll: Git's error and all invalid input; "" without a problem, nil without a poll
	Staged  bool    // fleet.yaml exists
}

// App is the result of a pass.
type App struct {
	Cluster   string
	Before    rollout.State    // record before the pass
	Input     strategies.Input // State is the record after the pass
	Decision  strategies.Decision
	Happened  bool              // recorded, or applied as a rollback
	Proposals map[string]string // commits by branch
	Err       error
}

// Note returns a transition's Event reason and whether the type is Warning.
func (a App) Note() (reason string, warning bool) {
	s := a.Decision.State
	if s.Held != nil {
		return string(s.Held.Reason), !s.Held.Waits()
	}
	phase := s.Shown()
	return string(phase), a.Decision.Rollback || phase == rollout.Stalled || phase == rollout.Degraded
}

// Shown holds updates for a forge: proposals' pull requests and commits' release status.
type Shown struct {
	Forge   rollout.Forge
	Updates []rollout.ForgeUpdate
	// Resume is true after a start or for a new forge. Then Branches lists all proposals, and Updates has the current
	// states.
	Resume   bool
	Branches []string
}

// Stats counts the work of all passes.
type Stats struct {
	Passes  int // of single apps, and calls of RunOnce
	Commits int // on the state branch
	Decided int
	Lost    int // pushes that failed because another writer was first
}

// Part names a part of a pass, for metrics and traces.
type Part string

// PartRender, PartDecide and PartApply handle one app. PartDecide contains the PartApply of the recorded state.
const (
	PartPass   Part = "pass"
	PartFetch  Part = "fetch"
	PartRender Part = "render"
	PartDecide Part = "decide"
	PartPush   Part = "push"
	PartApply  Part = "apply"
)

// Tracer returns a part's context, and a function to call once with the part's error. If a part handles several apps,
// app is "". Several goroutines call Tracer.
type Tracer func(ctx context.Context, part Part, app string) (context.Context, func(error))
