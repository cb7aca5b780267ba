package reconciler

import (
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// transition is a pass's decision about an app. A changed state is recorded in Git.
type transition struct {
	app         *appView
	view        *gitView
	before      rollout.State
	input       strategies.Input
	decision    strategies.Decision
	applied     *strategies.Decision // applied rollback, or nil
	changed     bool
	leaves      bool    // no object is left, so remove the record
	renamedFrom *rename // the former name whose record the app continues, or nil
	refused     bool    // the cluster refused an object; later passes ask again
	err         error
}

type recorded struct {
	transition
	after    rollout.State
	commit   string // state commit with the record, or ""
	unpushed error
}

// numbered returns the state with a serial above the serials in the record and in the cluster. A process with an older
// record then decides nothing, so it cannot undo an applied rollback.
func (t *transition) numbered() rollout.State {
	state := t.decision.State
	if t.before.IsTransition(&state) {
		state.Serial = max(t.before.Serial, state.Serial, t.input.Observed.Serial()) + 1
	}
	return state
}
