package reconciler

import (
	"maps"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Look is what a pass knew of one app when it was over: enough to explain where
// it stands, with what was measured since the last record. Nothing in it is
// written to afterwards.
type Look struct {
	Cluster   string
	Before    rollout.State     // the record before the pass
	Input     strategies.Input  // with the record after it
	Proposals map[string]string // all of them, by branch
	Err       error             // what went wrong with this app in the pass
}

// publish shows what the apps of a pass have come to.
func (r *Reconciler) publish(steps []*step) {
	gone := r.gone
	r.gone = nil
	if r.Publish == nil || len(steps)+len(gone) == 0 {
		return
	}
	proposals := maps.Clone(r.heads.Proposals)
	looks := make([]Look, 0, len(steps))
	for _, s := range steps {
		in := s.input
		in.State, in.Pending = s.app.state, nil
		in.Runs = s.app.runs
		looks = append(looks, Look{Cluster: r.Cluster, Before: s.before, Input: in, Proposals: proposals, Err: s.err})
	}
	r.Publish(looks, gone)
}
