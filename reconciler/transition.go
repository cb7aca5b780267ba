package reconciler

import (
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// transition is the decision of one pass. It is recorded in Git if it changes the state.
type transition struct {
	app         *appView
	view        *gitView
	before      rollout.State // the record at the start of the pass
	input       strategies.Input
	decision    strategies.Decision
	applied     *strategies.Decision // the rollback that the pass has applied; nil for other decisions
	changed     bool                 // the state is to be recorded
	leaves      bool                 // the record is to be removed: no object of the app is left
	renamedFrom *rename              // the record under a former name, which the app continues; or nil
	refused     bool                 // the cluster refuses objects, so they are checked again later
	err         error                // the failure of this app
}

// recorded is the result of a transition.
type recorded struct {
	transition
	after    rollout.State // the record after the transition
	commit   string        // the commit that recorded it; "" if none did
	unpushed error         // why the Git server does not accept the transition
}

// numbered returns the decided state with its serial. A rollback is applied first, and its record gets a serial, so
// that a process without the record cannot undo the rollback. Without a record, the serial in the cluster continues.
func (t *transition) numbered() rollout.State {
	state := t.decision.State
	if t.before.IsTransition(&state) {
		state.Serial = max(t.before.Serial, state.Serial, t.input.Observed.Serial()) + 1
	}
	return state
}
