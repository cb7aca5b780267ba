package reconciler

import (
	"context"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// proposals returns the branches that the transition of one app calls for: a
// promotion to merge while a gate is shut, a revert to merge while Git asks for
// what was rejected, and the removal of those that are no longer wanted. One
// that somebody removed is not made again for the same reason.
func (r *Reconciler) proposals(ctx context.Context, s *step) []Update {
	var updates []Update
	before, after := s.input, s.input
	before.State, after.State = s.app.state, s.decision.State
	before.Runs, after.Runs = nil, nil // as on record: a verdict shuts a gate when it is recorded, and is then to be asked about

	branch := rollout.ProposalBranch(rollout.ProposePromotion, r.Cluster, s.app.Name)
	was, wasShut := strategies.Gate(before)
	gate, shut := strategies.Gate(after)
	switch old, exists := r.heads.Proposals[branch]; {
	case shut && wasShut && was == gate:
	case shut:
		updates = append(updates, updateOf(propose.Promotion(r.Cluster, after.State, gate), r.heads.Proposals[branch], r.heads.Main))
	case exists && !r.keepsFor(rollout.ProposePromotion, before.State, after.State):
		updates = append(updates, Update{Branch: branch, Old: old, Delete: true})
	}

	branch = rollout.ProposalBranch(rollout.ProposeRevert, r.Cluster, s.app.Name)
	old, exists := r.heads.Proposals[branch]
	switch news := before.State.Phase != after.State.Phase || before.State.Reason != after.State.Reason; {
	case propose.WantsRevert(after.State) && news && r.config.AutoRevert != rollout.AutoRevertOff:
		u, shared, err := r.revert(ctx, s)
		switch {
		case err != nil:
			r.Log.Warn("no revert is proposed", "app", s.app.Name, "error", err)
		case u != nil && (r.config.AutoRevert == rollout.AutoRevertPropose || shared):
			u.Old = old
			updates = append(updates, *u)
		}
	case !propose.WantsRevert(after.State) && exists && !r.undoes(ctx, branch, after.State) && !r.keepsFor(rollout.ProposeRevert, before.State, after.State):
		updates = append(updates, Update{Branch: branch, Old: old, Delete: true})
	}
	return updates
}

// updateOf pushes an order: onto parent, to a branch that is at old ("" if there is none).
func updateOf(o propose.Order, old, parent string) Update {
	return Update{Branch: o.Branch, Old: old, Parent: parent, Edits: o.Edits, Message: o.Message, When: o.When}
}
