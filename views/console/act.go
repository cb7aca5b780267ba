package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// Change returns the change that an action makes. The check, if given, can refuse the change.
func (w *Session) Change(ctx context.Context, name string, a propose.Action, check func(strategies.Input) error) (
	o propose.Change, err error,
) {
	app, err := w.App(name)
	if err != nil {
		return o, err
	}
	in, err := w.Input(ctx, app, w.Now())
	if err != nil {
		return o, fmt.Errorf("%s: %w", name, err)
	}
	if check != nil {
		if err := check(in); err != nil {
			return o, err
		}
	}
	a.Reason = terminal.Clean(a.Reason)
	o, err = propose.Target{Cluster: w.Cluster, Branch: w.Branch}.Decide(in, a)
	if err != nil {
		return o, fmt.Errorf("%s: %w", name, err)
	}
	return o, nil
}

// Sharing returns all apps that wait for the same shared changes as the named apps.
func Sharing(ctx context.Context, w *Session, names []string) (all []string, err error) {
	l, err := w.Listing(ctx, nil, w.Now())
	for _, name := range names {
		one, _ := rollout.Find(l.Apps, func(a status.App) bool { return a.App == name })
		if one.Shared == nil || one.Shared.State != "waiting" {
			return nil, cmp.Or(err, fmt.Errorf("%s does not wait for a shared change", name))
		}
		for _, a := range l.Apps {
			isOf := a.Shared != nil && a.Shared.State == one.Shared.State && a.Shared.Same(one.Shared.Place)
			if isOf && !slices.Contains(all, a.App) {
				all = append(all, a.App)
			}
		}
	}
	return all, err
}

// Push pushes a change, and returns a text for the user. A proposal replaces the earlier proposal on its branch.
func (w *Session) Push(ctx context.Context, who rollout.Identity, o propose.Change) (said string, err error) {
	switch {
	case len(o.Edits) == 0:
		return o.Effect, nil
	case o.Branch != w.Branch:
		return w.pushProposal(ctx, who, o)
	}
	// Promotion edits also fit newer commits, because they name release hashes. Image edits are computed again.
	decided := o // kept for a later attempt at the same head
	id, err := w.Repo.CommitToBranch(ctx, o.Branch, func(now *git.Snapshot) (rollout.Update, error) {
		if id := now.Commit().ID; o.Again != nil && id != w.Tip.Tree.Commit().ID {
			err := w.At(ctx, id)
			if err == nil {
				decided, err = o.Again()
			}
			if err != nil {
				return rollout.Update{}, err
			}
		}
		return rollout.Update{Edits: decided.Edits, Message: decided.Message, When: o.When, Author: who},
			w.mayBuildOn(ctx, now)
	})
	switch {
	case err != nil:
		return "", err
	case id == "":
		said = fmt.Sprintf("nothing to push: %s already has this change of %s\n%s", o.Branch,
			strings.Join(slices.Sorted(maps.Keys(o.Edits)), ", "), o.Effect)
	default:
		said = fmt.Sprintf("pushed %s to %s: %s\n%s", rollout.ShortID(id), o.Branch, o.Subject, o.Effect)
	}
	return w.warned(said), nil
}

const (
	mostUnsigned = 1000
	mostListed   = 20
)

// mayBuildOn refuses an unsigned head, because a signed commit on top would make the head trusted.
func (w *Session) mayBuildOn(ctx context.Context, head *git.Snapshot) error {
	if w.Signers == nil || head.Commit().ID == "" {
		return nil
	}
	var unsigned []string
	isSigned := false
	_, err := w.Repo.Log(ctx, head.Commit().ID, mostUnsigned, func(s *git.Snapshot) (more bool, err error) {
		if _, err := s.SignedBy(w.Signers); err == nil {
			isSigned = true
			return false, nil
		}
		c := s.Commit()
		unsigned = append(unsigned, fmt.Sprintf("  %s %s: %s", c.Short(), c.Author, c.Subject))
		return true, nil
	})
	if err != nil || len(unsigned) == 0 {
		return err
	}
	n, since := len(unsigned), "all since the last signed commit"
	if !isSigned {
		since = "no earlier signed commit was found"
	}
	if n > mostListed {
		unsigned = append(unsigned[:mostListed], fmt.Sprintf("  and %d more", n-mostListed))
	}
	return fmt.Errorf(
		"the newest commits of %s are not signed by an allowed signer: %s; "+
			"a signed commit on top would also approve %s:\n%s\n%s",
		w.Branch, since, rollout.Count(n, "commit"), strings.Join(unsigned, "\n"), w.Unsigned)
}
