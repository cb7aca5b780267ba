package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// tidyAfter is how long a merged proposal's branch stays. Forges move the users' branch first and record the merge
// later. A deletion in between would close the pull request as not merged.
const tidyAfter = 10 * time.Second

type stale struct {
	due     time.Time
	failing time.Time // of the removal, or zero
	why     string
}

func (r *committer) isStale(branch string) bool {
	_, marked := r.stale[branch]
	return marked
}

func (r *committer) hasForge(v *gitView) bool {
	return r.ShowsForge && v.branch.Config != nil && v.branch.Config.Forge != nil
}

// keepsFor reports whether a forge may still be merging an unwanted proposal. Other unwanted proposals are deleted at
// once, so that their approvals do not count for the next proposal.
func (r *committer) keepsFor(v *gitView, kind rollout.ProposalKind, before, after rollout.State) bool {
	if !r.hasForge(v) || after.Held != nil || after.Rollback != nil {
		return false
	}
	if kind == rollout.ProposeRevert {
		return after.Phase == rollout.Healthy
	}
	if before.Release == nil {
		return before.Held.Is(rollout.HeldStage) && after.Release != nil
	}
	now := after.Release
	if after.Phase == rollout.Healthy {
		now = after.Stable
	}
	return now != nil && now.Hash == before.Release.Hash
}

func (r *committer) markStale(ctx context.Context, in strategies.Input, since time.Time, why string) {
	w := propose.WantedBy(in)
	for kind, isWanted := range map[rollout.ProposalKind]bool{
		rollout.ProposePromotion: w.Promotion != nil || w.Unknown, rollout.ProposeRevert: w.Revert,
	} {
		branch := rollout.ProposalBranch(kind, r.Cluster, in.App.Name)
		switch {
		case isWanted || r.states.isProposed(branch) == "" ||
			kind == rollout.ProposeRevert && r.undoes(ctx, branch, in.State):
			delete(r.stale, branch)
		case !r.isStale(branch):
			r.stale[branch] = stale{due: since.Add(tidyAfter), why: why}
		}
	}
}

func (r *committer) tidy(ctx context.Context, now time.Time) error {
	var updates []rollout.Update
	for _, branch := range sortedKeys(r.stale) {
		old := r.states.isProposed(branch)
		switch {
		case old == "":
			delete(r.stale, branch)
		case !now.Before(r.stale[branch].due):
			updates = append(updates, rollout.Update{Branch: branch, Old: old, Delete: true})
		}
	}
	if len(updates) == 0 {
		return nil
	}
	defer r.states.begin()()
	if _, err := r.send(ctx, updates); err != nil {
		for _, u := range updates {
			s := r.stale[u.Branch]
			s.failing = cmp.Or(s.failing, now)
			s.due = now.Add(max(tidyAfter, r.Spread(backoff(now.Sub(s.failing))), rollout.RetryAfter(err)))
			r.stale[u.Branch] = s
		}
		if errors.Is(err, rollout.ErrConflict) {
			return nil
		}
		return fmt.Errorf("remove merged proposals: %w", err)
	}
	shown := &report.Shown{}
	for _, u := range updates {
		shown.Updates = append(shown.Updates, rollout.ForgeUpdate{
			Cluster: r.Cluster, Subject: r.stale[u.Branch].why, Proposals: []rollout.Proposal{{Branch: u.Branch}},
		})
		delete(r.stale, u.Branch)
	}
	r.states.setProposals(updates, nil)
	if v := r.current(); r.hasForge(v) {
		shown.Forge = *v.branch.Config.Forge
		r.show(v, shown)
	}
	return nil
}

func (r *committer) nextTidy() (next time.Time) {
	for _, s := range r.stale {
		next = rollout.Soonest(next, s.due)
	}
	return next
}
