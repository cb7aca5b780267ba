package reconciler

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

type preparer struct {
	states    *stateStore
	renders   *renderCache
	fetcher   *fetcher
	blame     *blame
	approvals *approvals
	cohorts   *cohorts
	stages    *stages
	peers     *peers
}

func (p preparer) prepare(v *gitView, a *appView, s rollout.State, now time.Time) (app source.App, unknown error) {
	t := source.Trust{IsKnown: true, Refused: a.refused}
	a, barred := p.approvals.permitted(v, a)
	if v.refused != nil {
		t.Newest.ID = v.refused.Commit
	}
	head, conflict, ready := p.head(v, a)
	if t.Conflict = conflict; !ready {
		t.Unknown = fmt.Errorf("commit %s %w", rollout.ShortID(v.main()), source.ErrNotReady)
	}
	newest := head.Render
	if ready && t.Conflict == nil && newest != nil {
		var err error
		if head, t.Entry, err = p.stages.head(v, a, s, head, now); head.Render != newest {
			t.Conflict, ready = p.conflict(v, a.Name, head.Render)
		}
		if t.Unknown = err; !ready {
			t.Unknown = fmt.Errorf("another app at commit %s %w", rollout.ShortID(v.main()), source.ErrNotReady)
		}
	}
	promotion, err := a.promotion, error(nil)
	promotion.File, t.Unapproved, err = p.approvals.of(v, a, head.Render, s)
	t.Unknown = errors.Join(t.Unknown, barred, err)
	if t.Entry != nil && !t.Entry.Open {
		p.cohorts.forget(a.Name, false)
	} else if ready {
		e, err := p.cohorts.entry(v, a, s, head, promotion.File, now, head.Render != newest)
		t.Entry, t.Unknown = cmp.Or(e, t.Entry), errors.Join(t.Unknown, err)
	}
	return source.Prepare(v.branch, a.App, s, head, promotion, t), t.Unknown
}

// head returns an app's head and a conflict with another app's object. If "ready" is false, the head or the conflict is
// unknown.
func (p preparer) head(v *gitView, a *appView) (head strategies.Head, conflict *rollout.InvalidError, ready bool) {
	switch {
	case a.head != nil:
		return strategies.Head{Commit: a.head.Commit, Render: a.head.Render.Unpacked(), Err: a.head.Err}, nil, true
	case a.removed != nil:
		return strategies.Head{Commit: a.removedBy, Err: a.removed}, nil, true
	case a.unread:
		return strategies.Head{}, nil, false
	}
	if head, ready = p.renders.head(v, a.App); ready {
		conflict, ready = p.conflict(v, a.Name, head.Render)
	}
	return head, conflict, ready
}
