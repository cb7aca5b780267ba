package reconciler

import (
	"context"
	"errors"
	"strings"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
)

// revert undoes in Git what was rejected: the files that the app is built from,
// as of the stable commit. It is nil unless the head asks for the rejected
// release and the app is where it was. Shared: it concerns more than this app, or
// may do so.
func (r *Reconciler) revert(ctx context.Context, s *step) (u *Update, shared bool, err error) {
	state, head := s.decision.State, s.app.head.Render
	if head == nil || state.Stable == nil {
		return nil, false, nil
	}
	rejection, ok := state.IsRejected(head.Release())
	if !ok {
		return nil, false, nil
	}
	stable, err := r.renderAt(ctx, s.app, state.Stable.Commit)
	if err != nil || stable.App.Path != s.app.Path {
		return nil, false, err
	}
	v, err := r.editsBetween(ctx, head, stable)
	if err != nil || len(v.Edits) == 0 {
		return nil, false, err
	}
	update := updateOf(propose.Revert(r.Cluster, state, rejection, v), "", r.heads.Main)
	return &update, v.Shared(), nil
}

// pushReverts commits to the users' branch what takes a rejected release back,
// where the configuration wants that and nothing but the app's own folder is
// concerned. One commit a pass: the next one builds on what Git then has. Where
// the branch cannot be pushed to, the commit becomes a proposal.
func (r *Reconciler) pushReverts(ctx context.Context, steps []*step) {
	if r.config.AutoRevert != rollout.AutoRevertPush || r.heads.Refused != nil {
		return
	}
	for _, s := range steps {
		if s.changed && !s.recorded || !propose.WantsRevert(s.app.state) || s.app.reverted == r.heads.Main {
			continue
		}
		u, shared, err := r.revert(ctx, s)
		if err != nil {
			r.Log.Warn("no revert is pushed", "app", s.app.Name, "error", err)
			continue
		}
		if s.app.reverted = r.heads.Main; u == nil || shared {
			continue
		}
		u.Branch, u.Old = r.Source.Branch, r.heads.Main
		_, err = r.push(ctx, []Update{*u})
		switch {
		case err == nil, errors.Is(err, ErrConflict): // look at what is there now
			r.Log.Info("revert pushed", "app", s.app.Name, "branch", u.Branch, "moved", err != nil)
			r.Poll()
			return
		default:
			r.Log.Warn("the revert cannot be pushed and is proposed", "app", s.app.Name, "branch", u.Branch, "error", err)
			r.proposeInstead(ctx, s, u)
		}
	}
}

func (r *Reconciler) proposeInstead(ctx context.Context, s *step, u *Update) {
	u.Branch = rollout.ProposalBranch(rollout.ProposeRevert, r.Cluster, s.app.Name)
	u.Old = r.heads.Proposals[u.Branch]
	commits, err := r.push(ctx, []Update{*u})
	if err != nil {
		r.Log.Warn("no revert is proposed", "app", s.app.Name, "error", err)
		return
	}
	if commits[u.Branch] != "" {
		r.heads.Proposals[u.Branch] = commits[u.Branch]
		r.show(ctx, []*step{s}, nil)
	}
}

// editsBetween are the edits of the head that make an app what it was in stable,
// and the other apps that they concern.
func (r *Reconciler) editsBetween(ctx context.Context, head, stable *rollout.Render) (propose.Reversion, error) {
	tree, err := r.Repository.Snapshot(ctx, stable.Commit.ID)
	if err != nil {
		return propose.Reversion{}, err
	}
	return propose.NewReversion(r.main, tree, head, stable, r.renders())
}

// renders are what the head asks for of each app.
func (r *Reconciler) renders() []*rollout.Render {
	all := make([]*rollout.Render, 0, len(r.apps))
	for _, name := range sortedKeys(r.apps) {
		if head := r.apps[name].head.Render; head != nil {
			all = append(all, head)
		}
	}
	return all
}

// undoes reports whether a revert proposal is somebody's undo of what Git asks
// for: it is wanted, although nothing was rejected. One whose commit cannot be
// read is none.
func (r *Reconciler) undoes(ctx context.Context, branch string, s rollout.State) bool {
	commit := r.heads.Proposals[branch]
	if commit == "" {
		return false
	}
	tree, err := r.Repository.Snapshot(ctx, commit)
	return err == nil && strings.HasPrefix(tree.Commit().Subject, propose.UndoSubject(s))
}
