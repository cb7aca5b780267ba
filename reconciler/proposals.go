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

// proposals returns the updates of an app's own proposal branches. "all" has the apps that await approval, by joint
// branch.
func (r *committer) proposals(ctx context.Context, v *gitView, s transition, all map[string][]string) []rollout.Update {
	before, after := s.input, s.input
	before.State, after.State = s.before, s.decision.State
	// Only a recorded verdict shuts a gate, so unrecorded measurements do not count.
	before.Runs, after.Runs = nil, nil
	if s.app.removed != nil {
		return r.withdrawn(rollout.ProposalBranches(r.Cluster, s.app.Name)...)
	}
	updates := r.reversion(ctx, v, s)
	if b := rollout.JointBranch(r.Cluster, propose.Awaits(&after.State, nil)); !r.states.isJoint(b, all[b]) {
		updates = append(updates, r.promotion(ctx, v, before, after)...)
	}
	if s.renamedFrom != nil {
		updates = append(updates, r.withdrawn(rollout.ProposalBranches(r.Cluster, s.renamedFrom.from)...)...)
	}
	return updates
}

func (r *committer) withdrawn(branches ...string) (updates []rollout.Update) {
	for _, branch := range branches {
		if old := r.states.isProposed(branch); old != "" {
			updates = append(updates, rollout.Update{Branch: branch, Old: old, Delete: true})
		}
	}
	return updates
}

func (r *committer) promotion(ctx context.Context, v *gitView, before, after strategies.Input) []rollout.Update {
	was, w := propose.WantedBy(before).Promotion, propose.WantedBy(after)
	key := w.Promotion
	p := propose.Plan{IsNew: !reflect.DeepEqual(was, key)}
	switch {
	case key == nil:
	case key.Through == rollout.ThroughEntry:
		p.Wanted = new(propose.Entry(r.Cluster, after))
	default:
		p.Wanted = new(propose.Promotion(r.Cluster, after.State, key))
	}
	p.IsKept = w.Unknown || r.keepsFor(v, rollout.ProposePromotion, before.State, after.State)
	branch := rollout.ProposalBranch(rollout.ProposePromotion, r.Cluster, after.App.Name)
	return r.planned(ctx, v, after.App.Name, branch, p)
}

func (r *committer) reversion(ctx context.Context, v *gitView, s transition) []rollout.Update {
	before, after := s.before, s.input
	after.State = s.decision.State
	branch := rollout.ProposalBranch(rollout.ProposeRevert, r.Cluster, s.app.Name)
	old := r.states.isProposed(branch)
	autoRevert := v.settings(r.Cluster).AutoRevert
	p := propose.Plan{IsNew: before.Phase != after.State.Phase || before.Reason != after.State.Reason}
	p.IsKept = r.undoes(ctx, branch, after.State) || r.keepsFor(v, rollout.ProposeRevert, before, after.State)
	if propose.WantedBy(after).Revert {
		isUndo := !p.IsNew && p.IsKept
		if autoRevert == rollout.AutoRevertOff || !p.IsNew && (old == "" || isUndo) {
			return nil
		}
		revert, doubtful, err := r.revert(ctx, v, s)
		if err != nil {
			r.Log.Warn("no revert is proposed", "app", s.app.Name, "error", err)
			return nil
		}
		if revert != nil && autoRevert == rollout.AutoRevertPush && !doubtful && p.IsNew {
			return nil // pushed, not proposed
		}
		p.Wanted, p.IsKept = revert, after.Head.Render == nil // an unknown head may be the rejected release
	}
	return r.planned(ctx, v, s.app.Name, branch, p)
}

func ordered(c propose.Change, branch, old, parent string) rollout.Update {
	return rollout.Update{Branch: branch, Old: old, Parent: parent, Edits: c.Edits, Message: c.Message, When: c.When}
}

// planned returns the update of a proposal's branch, if one is needed. An unreadable branch is checked again later.
func (r *committer) planned(ctx context.Context, v *gitView, app, branch string, p propose.Plan) []rollout.Update {
	p.Existing = r.states.isProposed(branch)
	if p.Existing != "" && p.Wanted != nil {
		m, err := r.Past.Merge(ctx, p.Existing, v.main())
		if err == nil {
			p.Merge = &m
		} else if !p.IsNew {
			r.Log.Warn("a proposal cannot be read", "branch", branch, "error", err)
			r.retry(app)
		}
	}
	switch step, why := p.Calculate(); step {
	case propose.Push:
		if !p.IsNew {
			r.Log.Warn("a proposal is replaced", "branch", branch, "commit", p.Existing, "why", why)
		}
		return []rollout.Update{ordered(*p.Wanted, branch, p.Existing, v.main())}
	case propose.Delete:
		return []rollout.Update{{Branch: branch, Old: p.Existing, Delete: true}}
	}
	return nil
}

func (r *committer) wantProposals(s recorded) {
	e, commit := s.input.Entry, propose.Awaits(&s.after, nil)
	existing := commit + r.states.isProposed(rollout.JointBranch(r.Cluster, commit))
	for _, branch := range rollout.ProposalBranches(r.Cluster, s.app.Name) {
		existing += r.states.isProposed(branch)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries[s.app.Name] = e
	at := fmt.Sprint(s.view.main(), existing, s.after.Serial, e != nil && e.Versions != nil)
	if existing != "" && r.compared[s.app.Name] != at {
		r.compared[s.app.Name] = at
		r.proposes[s.app.Name] = s
		r.notify()
	}
}

// renewProposals updates and deletes proposals. Only transitions create proposals.
func (r *committer) renewProposals(ctx context.Context) {
	r.mu.Lock()
	noted := r.proposes
	r.proposes = map[string]recorded{}
	r.mu.Unlock()
	v := r.current()
	awaiting := r.states.awaiting(v, nil)
	for _, app := range sortedKeys(noted) {
		s := noted[app]
		e, _ := r.states.of(app)
		if !e.state.Equal(&s.after) || s.view.main() != v.main() {
			continue
		}
		on := s.transition
		on.before, on.decision.State, on.input.State = s.after, s.after, s.after
		updates := slices.DeleteFunc(r.proposals(ctx, v, on, awaiting), func(u rollout.Update) bool {
			return u.Delete && r.isStale(u.Branch)
		})
		if len(updates) > 0 {
			r.noteFailed(app, r.pushProposals(ctx, on, updates))
		}
	}
}

func (r *committer) noteFailed(app string, err error) {
	if err == nil {
		return
	}
	r.retry(app)
	if errors.Is(err, rollout.ErrConflict) {
		r.poll()
		return
	}
	r.Log.Warn("proposals cannot be pushed", "app", app, "error", err)
}

func (r *committer) retry(app string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, app)
}

func (r *committer) pushProposals(ctx context.Context, s transition, updates []rollout.Update) error {
	defer r.states.begin()()
	commits, err := r.send(ctx, updates)
	if err != nil {
		return err
	}
	r.states.setProposals(updates, commits)
	removed := map[string][]rollout.Proposal{s.app.Name: removedBy(updates)}
	r.show(s.view, r.forgeUpdates(ctx, s.view, []transition{s}, removed))
	return nil
}

func removedBy(updates []rollout.Update) (removed []rollout.Proposal) {
	for _, u := range updates {
		if u.Delete {
			removed = append(removed, rollout.Proposal{Branch: u.Branch})
		}
	}
	return removed
}
