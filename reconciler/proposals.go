package reconciler

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// proposals returns one transition's proposal branches: a promotion to merge at a shut gate, a revert to merge while
// the head is rejected, and removals. A proposal that a user removed is not made again for the same reason. A
// mergeable one stays: a forge dismisses approvals when a branch moves.
func (r *committer) proposals(ctx context.Context, v *gitView, s transition) []rollout.Update {
	before, after := s.input, s.input
	before.State, after.State = s.before, s.decision.State
	// As on record: a verdict shuts a gate when it is recorded, and the proposal follows it.
	before.Runs, after.Runs = nil, nil
	if s.app.removed != nil {
		return r.withdrawn(s.app.Name)
	}
	updates := append(r.promotion(ctx, v, before, after), r.reversion(ctx, v, s)...)
	if s.renamedFrom != nil {
		updates = append(updates, r.withdrawn(s.renamedFrom.from)...)
	}
	return updates
}

// withdrawn removes the proposals of a former name, or of one that no app in Git has.
func (r *committer) withdrawn(app string) (updates []rollout.Update) {
	for _, branch := range proposalsOf(r.Cluster, app) {
		if old := r.states.isProposed(branch); old != "" {
			updates = append(updates, rollout.Update{Branch: branch, Old: old, Delete: true})
		}
	}
	return updates
}

func (r *committer) promotion(ctx context.Context, v *gitView, before, after strategies.Input) []rollout.Update {
	branch := rollout.ProposalBranch(rollout.ProposePromotion, r.Cluster, after.App.Name)
	was, key := strategies.Key(before), strategies.Key(after)
	old := r.states.isProposed(branch)
	switch {
	case key != nil:
		u := ordered(propose.Promotion(r.Cluster, after.State, key), old, v.main())
		return r.renewed(ctx, after.App.Name, u, !reflect.DeepEqual(was, key))
	case old != "" && !r.keepsFor(v, rollout.ProposePromotion, before.State, after.State):
		return []rollout.Update{{Branch: branch, Old: old, Delete: true}}
	}
	return nil
}

func (r *committer) reversion(ctx context.Context, v *gitView, s transition) []rollout.Update {
	before, after := s.before, s.decision.State
	branch := rollout.ProposalBranch(rollout.ProposeRevert, r.Cluster, s.app.Name)
	old := r.states.isProposed(branch)
	autoRevert := v.settings(r.Cluster).AutoRevert
	isNew := before.Phase != after.Phase || before.Reason != after.Reason
	switch wanted := propose.WantsRevert(after); {
	case wanted && autoRevert != rollout.AutoRevertOff && (isNew || old != "" && !r.undoes(ctx, branch, after)):
		u, doubtful, err := r.revert(ctx, v, s)
		switch {
		case err != nil:
			r.Log.Warn("no revert is proposed", "app", s.app.Name, "error", err)
		case u != nil && (autoRevert == rollout.AutoRevertPropose || doubtful || !isNew):
			u.Branch, u.Old = branch, old
			return r.renewed(ctx, s.app.Name, *u, isNew)
		case u == nil && old != "" && s.input.Head.Render != nil: // the head is another release meanwhile
			return []rollout.Update{{Branch: branch, Old: old, Delete: true}}
		}
	case !wanted && old != "" && !r.undoes(ctx, branch, after) &&
		!r.keepsFor(v, rollout.ProposeRevert, before, after):
		return []rollout.Update{{Branch: branch, Old: old, Delete: true}}
	}
	return nil
}

// ordered returns the push of an order, from its branch's commit to a commit on the users' branch.
func ordered(o propose.Change, old, parent string) rollout.Update {
	return rollout.Update{Branch: o.Branch, Old: old, Parent: parent, Edits: o.Edits, Message: o.Message, When: o.When}
}

// renewed returns the push of a proposal, or nothing if its branch is mergeable with the same effect. A missing one
// is created only if new; an unreadable one is compared after the next fetch.
func (r *committer) renewed(ctx context.Context, app string, u rollout.Update, isNew bool) []rollout.Update {
	if u.Old == "" && isNew {
		return []rollout.Update{u}
	}
	if u.Old == "" {
		return nil
	}
	m, err := r.Past.Merge(ctx, u.Old, u.Parent)
	switch {
	case err != nil && !isNew:
		r.Log.Warn("a proposal cannot be read", "branch", u.Branch, "error", err)
		r.retry(app)
		return nil
	case err == nil && m.Does(u.Edits):
		return nil
	case err == nil && !isNew:
		why := "its branch differs from the proposal"
		if !m.Clean {
			why = "it cannot be merged any more: the files that it changes are others now, or the branch was rewritten"
		}
		r.Log.Warn("a proposal is made anew", "branch", u.Branch, "commit", u.Old, "why", why)
	}
	return []rollout.Update{u}
}

// wantProposals notes that an app's proposals may be outdated, as after a move of the users' or a proposal branch.
func (r *committer) wantProposals(s recorded) {
	existing := ""
	for _, branch := range proposalsOf(r.Cluster, s.app.Name) {
		existing += r.states.isProposed(branch)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := fmt.Sprint(s.view.main(), existing, s.after.Serial)
	if existing != "" && r.compared[s.app.Name] != at {
		r.compared[s.app.Name] = at
		r.proposes[s.app.Name] = s
		r.notify()
	}
}

// proposalsOf returns the branches of an app's proposals, whether they exist or not.
func proposalsOf(cluster, app string) []string {
	return []string{
		rollout.ProposalBranch(rollout.ProposePromotion, cluster, app),
		rollout.ProposalBranch(rollout.ProposeRevert, cluster, app),
	}
}

// renewProposals pushes unmergeable or outdated proposals again, and removes unwanted ones. Only a transition creates
// one; tidy removes merged ones.
func (r *committer) renewProposals(ctx context.Context) {
	r.mu.Lock()
	noted := r.proposes
	r.proposes = map[string]recorded{}
	r.mu.Unlock()
	v := r.current()
	for _, app := range sortedKeys(noted) {
		s := noted[app]
		e, _ := r.states.of(app)
		if !e.state.Equal(&s.after) || s.view.main() != v.main() {
			continue // the app is reconciled again
		}
		on := s.transition
		on.before, on.decision.State, on.input.State = s.after, s.after, s.after
		updates := slices.DeleteFunc(r.proposals(ctx, v, on), func(u rollout.Update) bool {
			return u.Delete && r.isStale(u.Branch)
		})
		if len(updates) == 0 {
			continue
		}
		err := r.pushProposals(ctx, on, updates)
		if err == nil {
			continue
		}
		r.retry(app)
		if errors.Is(err, rollout.ErrConflict) {
			r.poll()
			continue
		}
		r.Log.Warn("proposals cannot be made anew", "app", app, "error", err)
	}
}

func (r *committer) retry(app string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, app)
}

// pushProposals pushes proposals without a transition, reported to the forge.
func (r *committer) pushProposals(ctx context.Context, s transition, updates []rollout.Update) error {
	defer r.states.begin()()
	commits, err := r.send(ctx, updates)
	if err != nil {
		return err
	}
	r.states.setProposals(updates, commits)
	removed := map[string][]rollout.Proposal{s.app.Name: removedBy(updates)}
	r.show(s.view, r.transitions(ctx, s.view, []transition{s}, removed))
	return nil
}

// removedBy returns the proposals that some updates remove.
func removedBy(updates []rollout.Update) (removed []rollout.Proposal) {
	for _, u := range updates {
		if u.Delete {
			removed = append(removed, rollout.Proposal{Branch: u.Branch})
		}
	}
	return removed
}
