package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// tidyAfter is how long a merged proposal's branch is kept where a forge is configured. A forge moves main first and
// notes the merge afterwards: with the branch gone in between, the pull request would end as closed, not as merged.
const tidyAfter = 10 * time.Second

// stale is a proposal that was merged and whose branch is to go.
type stale struct {
	since time.Time
	why   string
}

func (r *recorder) isStale(branch string) bool {
	_, marked := r.stale[branch]
	return marked
}

// hasForge reports whether a forge shows what happens.
func (r *recorder) hasForge(v *view) bool {
	return r.ShowsForge && v.branch.Config != nil && v.branch.Config.Forge != nil
}

// keepsFor reports whether an unwanted proposal's branch is kept for a while, because the forge may be merging it at
// this moment. One that was given up goes at once, so that no approval of it is taken for one of its successor.
func (r *recorder) keepsFor(v *view, kind rollout.ProposalKind, before, after rollout.State) bool {
	if !r.hasForge(v) || after.Held != nil || after.Retreat != nil {
		return false
	}
	if kind == rollout.ProposeRevert {
		return after.Phase == rollout.Healthy
	}
	if before.Release == nil {
		return false
	}
	now := after.Release
	if after.Phase == rollout.Healthy {
		now = after.Stable
	}
	return now != nil && now.Hash == before.Release.Hash
}

// markStale notes which proposals of an app exist and are not wanted: those that were kept for a while, and after a
// start those that were kept before it.
func (r *recorder) markStale(ctx context.Context, in strategies.Input, since time.Time, why string) {
	_, shut := strategies.Gate(in)
	wanted := map[rollout.ProposalKind]bool{
		rollout.ProposePromotion: shut, rollout.ProposeRevert: propose.WantsRevert(in.State),
	}
	for kind, isWanted := range wanted {
		branch := rollout.ProposalBranch(kind, r.Cluster, in.App.Name)
		switch {
		case isWanted || r.record.isProposed(branch) == "" ||
			kind == rollout.ProposeRevert && r.undoes(ctx, branch, in.State):
			delete(r.stale, branch)
		case !r.isStale(branch):
			r.stale[branch] = stale{since: since, why: why}
		}
	}
}

// tidy removes the branches of proposals that were merged a while ago, and tells the forge. Losing the race for one
// leaves it to the next time.
func (r *recorder) tidy(ctx context.Context, now time.Time) error {
	var updates []rollout.Update
	for _, branch := range sortedKeys(r.stale) {
		old := r.record.isProposed(branch)
		switch {
		case old == "": // the forge has removed it
			delete(r.stale, branch)
		case now.Sub(r.stale[branch].since) >= tidyAfter:
			updates = append(updates, rollout.Update{Branch: branch, Old: old, Delete: true})
		}
	}
	if len(updates) == 0 {
		return nil
	}
	defer r.record.begin()()
	if _, err := r.send(ctx, updates); err != nil {
		for _, u := range updates {
			r.stale[u.Branch] = stale{since: now, why: r.stale[u.Branch].why} // not before the next look at Git
		}
		if errors.Is(err, rollout.ErrConflict) {
			return nil // the next look at Git shows what has become of it
		}
		return fmt.Errorf("remove merged proposals: %w", err)
	}
	var transitions []rollout.Transition
	removed := map[string]string{}
	for _, u := range updates {
		transitions = append(transitions, rollout.Transition{
			Cluster: r.Cluster, Subject: r.stale[u.Branch].why, Proposals: []rollout.Proposal{{Branch: u.Branch}},
		})
		removed[u.Branch] = ""
		delete(r.stale, u.Branch)
	}
	r.record.setProposals(removed)
	if v := r.current(); r.hasForge(v) {
		r.show(v, &report.Shown{Forge: *v.branch.Config.Forge, Transitions: transitions})
	}
	return nil
}

// nextTidy is when the first of them is due, zero if there is none.
func (r *recorder) nextTidy() time.Time {
	var next time.Time
	for _, s := range r.stale {
		next = rollout.Soonest(next, s.since.Add(tidyAfter))
	}
	return next
}
