package reconciler

import (
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// transition is the decision of one pass. If the decision changes the state, the state is recorded in Git.
type transition struct {
	app         *appView
	view        *gitView
	before      rollout.State // the record at the start of the pass
	input       strategies.Input
	decision    strategies.Decision
	applied     *strategies.Decision // the rollback that the pass has applied, or nil
	changed     bool                 // the state must be recorded
	leaves      bool                 // the record must be removed, because no object is left
	renamedFrom *rename              // the record of the app's former name, which the app continues; or nil
	refused     bool                 // the cluster refuses objects, so they must be checked again later
	err         error                // the app's error
}

type recorded struct {
	transition
	after    rollout.State // the record after the transition
	commit   string        // the commit with this record; "" if there is none
	unpushed error         // why the Git server refuses the transition
}

// numbered returns the decided state with a serial above the serials in the record and in the cluster. A rollback is
// applied before it is recorded. Its serial prevents a process with an older record from undoing the rollback.
func (t *transition) numbered() rollout.State {
	state := t.decision.State
	if t.before.IsTransition(&state) {
		state.Serial = max(t.before.Serial, state.Serial, t.input.Observed.Serial()) + 1
	}
	return state
}
