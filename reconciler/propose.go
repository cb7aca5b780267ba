package reconciler

import (
	"context"
	"fmt"
	"slices"
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
	case wantsRevert(after.State) && news:
		u, ok, err := r.revertProposal(ctx, branch, s)
		if err != nil {
			r.Log.Warn("no revert is proposed", "app", s.app.Name, "error", err)
		}
		if ok {
			updates = append(updates, u)
		}
	case !wantsRevert(after.State) && exists && !r.keepsFor(rollout.ProposeRevert, before.State, after.State):
		updates = append(updates, Update{Branch: branch, Old: old, Delete: true})
	}
	return updates
}

func wantsRevert(s rollout.State) bool {
	return s.Phase == rollout.Degraded || (s.Retreat != nil && s.Retreat.Reject)
}

func (r *Reconciler) promotionProposal(branch string, s *step, gate int) Update {
	name, release := s.app.Name, s.decision.State.Release
	data, _ := rollout.Promotion{Release: release.Hash, Through: fmt.Sprint(gate), Decision: rollout.Promote}.Encode()
	var at time.Time
	var b strings.Builder
	fmt.Fprintf(&b, "Promote %s past step %d in %s\n\nRelease %s of %s by %s:\n%s\n\n",
		name, gate+1, r.Cluster, release.Hash, rollout.ShortID(release.Commit), release.Author, release.Subject)
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

// revertProposal undoes in Git what was rejected: the files that the app is
// built from, as of the stable commit. It is made only while the head asks for
// the rejected release, and for an app that is where it was.
func (r *Reconciler) revertProposal(ctx context.Context, branch string, s *step) (u Update, ok bool, err error) {
	state, head := s.decision.State, s.app.head.Render
	if head == nil || state.Stable == nil {
		return u, false, nil
	}
	rejection, ok := state.IsRejected(head.Release())
	if !ok {
		return u, false, nil
	}
	stable, err := r.renderAt(ctx, s.app, state.Stable.Commit)
	if err != nil || stable.App.Path != s.app.Path {
		return u, false, err
	}
	edits, err := r.editsBetween(ctx, head, stable)
	if err != nil || len(edits) == 0 {
		return u, false, err
	}
	message := fmt.Sprintf("Revert %s in %s to %s\n\nRelease %s of %s was rejected:\n%s\n\n%s serves. Merging this commit makes Git agree.\n"+
		"To try the same version again instead: gitrollout retry %s\n",
		s.app.Name, r.Cluster, rollout.ShortID(state.Stable.Commit), rejection.Hash, rollout.ShortID(rejection.Commit), rejection.Reason, state.Stable.Hash, s.app.Name)
	if others := r.sharers(s.app, edits); len(others) > 0 {
		message += "\nIt also changes files of: " + strings.Join(others, ", ") + "\n"
	}
	return Update{Branch: branch, Old: r.heads.Proposals[branch], Parent: r.heads.Main, Edits: edits, Message: message, When: rejection.At}, true, nil
}

// editsBetween are the edits of the head that make an app what it was in stable.
func (r *Reconciler) editsBetween(ctx context.Context, head, stable *rollout.Render) (map[string][]byte, error) {
	tree, err := r.Repository.Snapshot(ctx, stable.Commit.ID)
	if err != nil {
		return nil, err
	}
	return differing(r.main, tree, slices.Concat(head.Files, stable.Files))
}

// differing returns the edits that make the paths in from what they are in to.
func differing(from, to Snapshot, paths []string) (map[string][]byte, error) {
	edits := map[string][]byte{}
	for _, path := range paths {
		a, inA, err := from.Lookup(path)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", path, err)
		}
		b, inB, err := to.Lookup(path)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", path, err)
		}
		switch {
		case inA == inB && a.ID == b.ID:
		case !inB:
			edits[path] = nil
		default:
			if edits[path], err = to.ReadBlob(b.ID); err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
		}
	}
	return edits, nil
}

// sharers are the other apps that are built from any of the edited files.
func (r *Reconciler) sharers(a *app, edits map[string][]byte) []string {
	var others []string
	for _, name := range sortedKeys(r.apps) {
		other := r.apps[name]
		if other == a || other.head.Render == nil {
			continue
		}
		for _, file := range other.head.Render.Files {
			if _, touched := edits[file]; touched {
				others = append(others, name)
				break
			}
		}
	}
	return others
}
