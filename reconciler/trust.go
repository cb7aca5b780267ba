package reconciler

import (
	"context"
	"errors"
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Refusal is a head of the users' branch that is not followed.
type Refusal = rollout.Refusal

// Approver tells who approved a promotion file that is in a commit of the
// users' branch. An error that wraps a *rollout.InvalidError means that nobody
// did who may; any other error says nothing.
type Approver func(ctx context.Context, commit, path string) (who string, err error)

// distrust holds the apps that a refused head would change, and lets all others
// go on. Without a refusal it holds none.
func (r *Reconciler) distrust(ctx context.Context, refused *Refusal) {
	if refused == nil {
		for _, a := range r.apps {
			a.distrust(nil)
		}
		r.judged = ""
		return
	}
	key := refused.Commit + " " + refused.Reason
	if r.judged == key {
		return
	}
	why := &rollout.InvalidError{
		Msg: fmt.Sprintf("commit %s is not followed: %s", rollout.ShortID(refused.Commit), refused.Reason),
		Fix: "push a commit on top of it that is signed with a trusted key (git commit -S --allow-empty)",
	}
	tree, err := r.Repository.Snapshot(ctx, refused.Commit)
	if err == nil {
		author := tree.Commit().Author
		why.Msg = fmt.Sprintf("commit %s by %s is not followed: %s", rollout.ShortID(refused.Commit), author, refused.Reason)
	}
	known := err == nil
	apps := make([]*app, 0, len(r.apps))
	for _, name := range sortedKeys(r.apps) {
		apps = append(apps, r.apps[name])
	}
	forEach(r.Workers, apps, func(a *app) {
		trusted := r.trusted(ctx, a, refused.Blind)
		switch {
		case known && trusted && !r.changes(tree, a):
			a.distrust(nil)
			return
		case !trusted:
			a.head = strategies.Head{Err: why}
		}
		a.distrust(why)
	})
	if known {
		r.judged = key
	}
}

// distrust sets why the head is not followed, nil if it is.
func (a *app) distrust(why *rollout.InvalidError) {
	same := (a.refused == nil) == (why == nil)
	if same && why != nil {
		same = a.refused.Error() == why.Error()
	}
	if !same {
		a.refused, a.dirty = why, true
	}
}

// trusted makes the app's head one that may be followed, and tells whether
// there is one. After a restart that is what the state says.
func (r *Reconciler) trusted(ctx context.Context, a *app, blind bool) bool {
	if !blind || a.isOrphan {
		return a.head.Render != nil || a.head.Err != nil
	}
	source, err := r.renderAt(ctx, a, a.state.Source)
	if err != nil {
		return false
	}
	a.head = strategies.Head{Commit: source.Commit, Render: source}
	return true
}

// changes tells whether following a commit would make any difference to an app.
func (r *Reconciler) changes(tree Snapshot, a *app) bool {
	if a.isOrphan {
		return false
	}
	promotion, found, err := tree.Lookup(rollout.PromotionPath(r.Cluster, a.Name))
	if err != nil || found && promotion.ID != a.promotionID || !found && a.promotionID != "" {
		return true
	}
	built, err := r.Renderer.Render(tree, r.appAt(tree, a.App), tree.Commit())
	if err != nil {
		return a.head.Err == nil || a.head.Err.Error() != err.Error()
	}
	return a.head.Render == nil || a.head.Render.Digest != built.Digest
}

// approval is what an Approver said of a promotion file.
type approval struct {
	main string // the head for which it was asked
	who  string
	no   *rollout.InvalidError
}

// approved returns the app's promotion if it counts. One that nobody who may has
// approved does not count, and if it is for what Git asks for, refused says why.
// A promotion for another release is not asked about: it has no effect.
func (r *Reconciler) approved(ctx context.Context, a *app, s rollout.State) (p *rollout.Promotion, refused *rollout.InvalidError, err error) {
	p = a.promotion
	if p == nil || r.Approve == nil {
		return p, nil, nil
	}
	forHead := a.head.Render != nil && p.Release == a.head.Render.Release()
	if !forHead && (s.Release == nil || p.Release != s.Release.Hash) {
		return nil, nil, nil
	}
	if known := a.approval; known == nil || known.who == "" && known.main != r.heads.Main {
		who, err := r.Approve(ctx, r.heads.Main, rollout.PromotionPath(r.Cluster, a.Name))
		var no *rollout.InvalidError
		if err != nil && !errors.As(err, &no) {
			return nil, nil, fmt.Errorf("who approved the promotion file: %w", err)
		}
		a.approval = &approval{main: r.heads.Main, who: who, no: no}
	}
	if a.approval.no != nil {
		if !forHead {
			return nil, nil, nil
		}
		return nil, a.approval.no, nil
	}
	by := *p
	by.Author = a.approval.who
	return &by, nil, nil
}
