package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// tidyAfter is how long a merged proposal's branch is kept where a forge is
// configured. A forge moves main first and notes the merge afterwards: with the
// branch gone in between, the pull request would end as closed, not as merged.
const tidyAfter = 10 * time.Second

// stale is a proposal that was merged and whose branch is to go.
type stale struct {
	since time.Time
	why   string
}

func (r *Reconciler) isStale(branch string) bool {
	_, marked := r.stale[branch]
	return marked
}

// keepsFor reports whether an unwanted proposal's branch is kept for a while,
// because the forge may be merging it at this moment. One that was given up goes
// at once, so that no approval of it is taken for one of its successor.
func (r *Reconciler) keepsFor(kind rollout.ProposalKind, before, after rollout.State) bool {
	if r.Forge == nil || r.config.Forge == nil || after.Held != nil || after.Retreat != nil {
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

// tidy removes the branches of proposals that were merged a while ago, and tells
// the forge. Losing the race for one leaves it to the next pass.
func (r *Reconciler) tidy(ctx context.Context, now time.Time) error {
	var updates []Update
	for _, branch := range sortedKeys(r.stale) {
		old, exists := r.heads.Proposals[branch]
		switch {
		case !exists: // the forge has removed it
			delete(r.stale, branch)
		case now.Sub(r.stale[branch].since) >= tidyAfter:
			updates = append(updates, Update{Branch: branch, Old: old, Delete: true})
		}
	}
	if len(updates) == 0 {
		return nil
	}
	if _, err := r.push(ctx, updates); err != nil {
		for _, u := range updates {
			r.stale[u.Branch] = stale{since: now, why: r.stale[u.Branch].why} // not before the next look at Git
		}
		if errors.Is(err, ErrConflict) {
			return nil // the next look at Git shows what has become of it
		}
		return fmt.Errorf("remove merged proposals: %w", err)
	}
	var transitions []rollout.Transition
	for _, u := range updates {
		transitions = append(transitions, rollout.Transition{
			Cluster: r.Cluster, Subject: r.stale[u.Branch].why, Proposals: []rollout.Proposal{{Branch: u.Branch}},
		})
		delete(r.heads.Proposals, u.Branch)
		delete(r.stale, u.Branch)
	}
	if r.config.Forge != nil {
		r.Forge.Show(*r.config.Forge, transitions)
	}
	return nil
}

// nextTidy is when the first of them is due, zero if there is none.
func (r *Reconciler) nextTidy() time.Time {
	var next time.Time
	if !r.stateKnown {
		return next
	}
	for _, s := range r.stale {
		next = soonest(next, s.since.Add(tidyAfter))
	}
	return next
}
