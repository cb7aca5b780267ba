package reconciler

import (
	"context"
	"errors"
	"maps"
	"strings"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// revert restores the app's files from the stable commit. It returns nil if the app's folder has moved or the head is
// not the rejected release.
func (r *committer) revert(
	ctx context.Context, v *gitView, s transition,
) (c *propose.Change, doubtful bool, err error) {
	in := s.input
	in.State = s.decision.State
	state, head := in.State, in.Head.Render
	rejection, ok := strategies.Rejection(in)
	if !ok || state.Stable == nil {
		return nil, false, nil
	}
	stable, err := r.renders.render(ctx, s.app.App, state.Stable.Commit)
	if err != nil || stable.App.Path != s.app.Path {
		return nil, false, err
	}
	reversion, err := r.editsBetween(ctx, v, head, stable)
	if err != nil || len(reversion.Edits) == 0 {
		return nil, false, err
	}
	line, err := r.Past.Between(ctx, stable.Commit.ID, v.main())
	if err != nil {
		line = nil
		r.Log.Debug("the other changes that a revert undoes are unknown", "app", s.app.Name, "error", err)
	}
	if reversion, err = propose.Trace(reversion, line, rejection.Commit); err != nil {
		return nil, false, err
	}
	_, retryable := strategies.Retryable(in)
	change := propose.Revert(r.Cluster, state, rejection, retryable, reversion)
	return &change, reversion.IsDoubtful(), nil
}

func (r *committer) editsBetween(
	ctx context.Context, v *gitView, head, stable *rollout.Render,
) (propose.Reversion, error) {
	tree, err := snapshotOf(ctx, r.Repository, stable.Commit.ID)
	if err != nil {
		return propose.Reversion{}, err
	}
	return propose.NewReversion(v.branch.Tree, tree, head, stable, r.renders.all())
}

func (r *committer) wantRevert(s recorded) {
	config, in := s.view.branch.Config, s.input
	in.State = s.after
	if config == nil || config.AutoRevert != rollout.AutoRevertPush || s.view.refused != nil ||
		!propose.WantedBy(in).Revert {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reverted[s.app.Name] != s.view.main() {
		r.reverts[s.app.Name] = s
		r.notify()
	}
}

// pushReverts pushes reverts that need no review, one by one onto the newest head. If the server refuses a push, the
// revert becomes a proposal.
func (r *committer) pushReverts(ctx context.Context) {
	r.mu.Lock()
	wanted := r.reverts
	r.reverts = map[string]recorded{}
	maps.DeleteFunc(wanted, func(app string, s recorded) bool { return r.reverted[app] == s.view.main() })
	r.mu.Unlock()
	for _, app := range sortedKeys(wanted) {
		s := wanted[app]
		s.decision.State = s.after
		if r.pushRevert(ctx, s.transition) {
			return
		}
	}
}

// pushRevert reports whether the users' branch has moved.
func (r *committer) pushRevert(ctx context.Context, s transition) bool {
	app, v := s.app.Name, s.view
	change, doubtful, err := r.revert(ctx, v, s)
	if err != nil {
		r.Log.Warn("no revert is pushed", "app", app, "error", err)
		return false
	}
	r.mu.Lock()
	isNew := r.reverted[app] == ""
	r.reverted[app] = v.main()
	r.mu.Unlock()
	branch := rollout.ProposalBranch(rollout.ProposeRevert, r.Cluster, app)
	if doubtful && isNew && r.states.isProposed(branch) == "" { // doubtful since the rollback
		r.proposeInstead(ctx, s, change)
	}
	if change == nil || doubtful {
		return false
	}
	u := ordered(*change, r.Source.Branch, v.main(), v.main())
	_, err = r.send(ctx, []rollout.Update{u})
	if errors.Is(err, rollout.ErrConflict) {
		r.mu.Lock()
		delete(r.reverted, app)
		r.mu.Unlock()
	}
	if err == nil || errors.Is(err, rollout.ErrConflict) {
		r.Log.Info("revert pushed", "app", app, "branch", u.Branch, "moved", err != nil)
		r.poll()
		return true
	}
	r.Log.Warn("the revert cannot be pushed, and is proposed instead", "app", app, "branch", u.Branch, "error", err)
	r.proposeInstead(ctx, s, change)
	return false
}

func (r *committer) proposeInstead(ctx context.Context, s transition, c *propose.Change) {
	u := ordered(*c, c.Branch, r.states.isProposed(c.Branch), s.view.main())
	if err := r.pushProposals(ctx, s, []rollout.Update{u}); err != nil {
		r.Log.Warn("no revert is proposed", "app", s.app.Name, "error", err)
	}
}

func (r *committer) undoes(ctx context.Context, branch string, s rollout.State) bool {
	commit := r.states.isProposed(branch)
	if commit == "" {
		return false
	}
	tree, err := snapshotOf(ctx, r.Repository, commit)
	return err == nil && strings.HasPrefix(tree.Commit().Subject, propose.UndoSubject(s))
}
