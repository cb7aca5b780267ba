package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// verifyState returns an error for an untrusted state branch. Without this check, gitrollout's next signed commit would
// make the head look trusted.
func (l *poller) verifyState(tree Snapshot) error {
	if l.Believe == nil {
		return nil
	}
	if err := l.Believe(tree); err != nil {
		commit := tree.Commit()
		return &rollout.InvalidError{
			File: "the state branch",
			Msg: fmt.Sprintf("commit %s by %s is not trusted: %v; no release advances",
				rollout.ShortID(commit.ID), commit.Author, err),
			Fix: "reset the branch to the last signed commit, or sign its current content: " +
				"gitrollout state repair APP --signing-key FILE",
		}
	}
	return nil
}

func (l *poller) holdUnverified(ctx context.Context, was, next *gitView, refused *rollout.Refusal) error {
	if refused == nil {
		l.judged = ""
		return nil
	}
	key := refused.Commit + " " + refused.Reason
	if l.judged == key {
		for name, a := range next.apps {
			if before := was.apps[name]; before != nil {
				a.refused, a.head = before.refused, before.head
			}
		}
		return nil
	}
	why := &rollout.InvalidError{
		Msg: fmt.Sprintf("commit %s is not followed: %s", rollout.ShortID(refused.Commit), refused.Reason),
		Fix: "push a commit on top of it that is signed with a trusted key (git commit -S --allow-empty)",
	}
	tree, err := snapshotOf(ctx, l.Repository, refused.Commit)
	if err == nil {
		why.Msg = fmt.Sprintf("commit %s by %s is not followed: %s",
			rollout.ShortID(refused.Commit), tree.Commit().Author, refused.Reason)
		l.judged = key
	}
	foreign, err := l.foreign(ctx, next)
	if err != nil {
		l.judged = ""
	}
	for _, name := range sortedKeys(next.apps) {
		l.judge(ctx, next, next.apps[name], tree, foreign, why)
	}
	return err
}

// foreign returns the recorded commits that are not ancestors of the view's commit. If this process has trusted a head,
// foreign returns none. With an error, it returns all.
func (l *poller) foreign(ctx context.Context, v *gitView) (outside []string, err error) {
	if !v.refused.Blind {
		return nil, nil
	}
	var named []string
	for _, name := range sortedKeys(v.apps) {
		if e, _ := l.states.of(name); e.state.Source != "" {
			named = append(named, e.state.Source)
		}
	}
	if outside, err = l.Past.Outside(ctx, v.main(), named); err != nil {
		return named, fmt.Errorf("the commits of the apps: %w", err)
	}
	return outside, nil
}

// judge decides whether an app is held while the newest head is refused. "tree" is the refused head, or nil if
// unreadable.
func (l *poller) judge(
	ctx context.Context, v *gitView, a *appView, tree Snapshot, foreign []string, why *rollout.InvalidError,
) {
	if a.removed != nil {
		return
	}
	var at *rollout.Render
	var err error
	if v.refused.Blind { // trust only the recorded state
		if at, err = l.recorded(ctx, a, foreign); err != nil {
			a.head, a.refused = &strategies.Head{Err: why}, why
			return
		}
		a.head = &strategies.Head{Commit: at.Commit, Render: at.Packed()}
	} else {
		at, err = l.reader.RenderHead(v.branch.Tree, a.App)
	}
	if tree == nil || l.changes(tree, a, at, err) {
		a.refused = why
	}
}

func (l *poller) recorded(ctx context.Context, a *appView, foreign []string) (*rollout.Render, error) {
	e, _ := l.states.of(a.Name)
	if slices.Contains(foreign, e.state.Source) {
		return nil, errors.New("the recorded commit is not an ancestor of the followed commit")
	}
	tree, err := snapshotOf(ctx, l.Repository, e.state.Source)
	if err != nil {
		return nil, err
	}
	return l.reader.Render(tree, e.state.Named(a.App))
}

// changes reports whether a commit would change an app. "at" and "held" are the app's present render and error.
func (l *poller) changes(tree Snapshot, a *appView, at *rollout.Render, held error) bool {
	promotion, found, err := tree.Lookup(cmp.Or(a.promotion.Path, rollout.PromotionPath(l.Cluster, a.Name)))
	if err != nil || found && promotion.ID != a.promotion.ID || !found && a.promotion.ID != "" {
		return true
	}
	built, err := l.reader.Render(tree, a.App)
	if err != nil {
		return held == nil || held.Error() != err.Error()
	}
	return at == nil || at.Digest != built.Digest
}
