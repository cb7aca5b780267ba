package reconciler

import (
	"context"
	"fmt"
	"strings"
	"time"

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
		updates = append(updates, r.promotionProposal(branch, s, gate))
	case exists && !r.keepsFor(rollout.ProposePromotion, before.State, after.State):
		updates = append(updates, Update{Branch: branch, Old: old, Delete: true})
	}

	branch = rollout.ProposalBranch(rollout.ProposeRevert, r.Cluster, s.app.Name)
	old, exists := r.heads.Proposals[branch]
	switch news := before.State.Phase != after.State.Phase || before.State.Reason != after.State.Reason; {
	case wantsRevert(after.State) && news && r.config.AutoRevert != rollout.AutoRevertOff:
		u, shared, err := r.revert(ctx, s)
		switch {
		case err != nil:
			r.Log.Warn("no revert is proposed", "app", s.app.Name, "error", err)
		case u != nil && (r.config.AutoRevert == rollout.AutoRevertPropose || shared):
			u.Branch, u.Old = branch, old
			updates = append(updates, *u)
		}
	case !wantsRevert(after.State) && exists && !r.undoes(ctx, branch, after.State) && !r.keepsFor(rollout.ProposeRevert, before.State, after.State):
		updates = append(updates, Update{Branch: branch, Old: old, Delete: true})
	}
	return updates
}

func (r *Reconciler) promotionProposal(branch string, s *step, gate int) Update {
	name, release := s.app.Name, s.decision.State.Release
	data, _ := rollout.Promotion{Release: release.Hash, Through: fmt.Sprint(gate), Decision: rollout.Promote}.Encode()
	var at time.Time
	var b strings.Builder
	fmt.Fprintf(&b, "Promote %s past step %d in %s\n\nRelease %s of %s by %s:\n%s\n\n",
		name, gate+1, r.Cluster, release.Hash, rollout.ShortID(release.Commit), release.Author, release.Subject)
	for _, line := range rollout.Evidence(s.decision.State.Analyses) {
		fmt.Fprintf(&b, "Measured: %s.\n", line)
	}
	for _, pr := range s.decision.State.Progress {
		fmt.Fprintf(&b, "%s is at step %d/%d (%s), %d%%.\n", pr.Workload, min(pr.Step+1, pr.Of), pr.Of, pr.Name, pr.Weight)
		if pr.Entered.After(at) {
			at = pr.Entered
		}
	}
	fmt.Fprintf(&b, "\nMerge this commit to let the release go on.\nTo undo the release, before or after that: git revert %s\n", rollout.ShortID(release.Commit))
	return Update{
		Branch: branch, Old: r.heads.Proposals[branch], Parent: r.heads.Main, Message: b.String(), When: at,
		Edits: map[string][]byte{rollout.PromotionPath(r.Cluster, name): data},
	}
}
