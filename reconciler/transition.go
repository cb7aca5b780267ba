package reconciler

import (
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// transition is the decision of one pass. A changed state is recorded in Git.
type transition struct {
	app         *appView
	view        *gitView
	before      rollout.State // at the start of the pass
	input       strategies.Input
	decision    strategies.Decision
	applied     *strategies.Decision // the applied rollback, or nil
	changed     bool
	leaves      bool    // no object is left: remove the record
	renamedFrom *rename // the continued record of the former name, or nil
	refused     bool    // the cluster refuses objects; checked again later
	err         error
}

type recorded struct {
	transition
	after    rollout.State
	commit   string // with this record, or ""
	unpushed error  // the Git server's refusal
}

// numbered returns the decided state with a serial above the record's and the cluster's. A rollback is applied before
// it is recorded. Its serial prevents a process with an older record from undoing it.
func (t *transition) numbered() rollout.State {
	state := t.decision.State
	if t.before.IsTransition(&state) {
		state.Serial = max(t.before.Serial, state.Serial, t.input.Observed.Serial()) + 1
	}
	return state
}
