package forge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

func (w *Worker) proposal(t rollout.ForgeUpdate, p rollout.Proposal) func(context.Context, host) error {
	return func(ctx context.Context, h host) error {
		was, found, err := h.find(ctx, p.Branch)
		if err != nil {
			return err
		}
		if p.Commit == "" {
			if !found || was.merged {
				return nil
			}
			return update(ctx, h, was, describeGone(was, t.Subject), true)
		}
		if found && !was.isOpen && was.commit == p.Commit && (was.merged || !w.closedHere(was)) {
			return nil
		}
		if found && was.isOpen {
			if err := update(ctx, h, was, describe(t, p), false); err != nil {
				return err
			}
			if len(was.labels) > 0 {
				return nil
			}
			return w.label(ctx, h, was)
		}
		made, err := h.create(ctx, p.Branch, describe(t, p))
		if err != nil {
			return err
		}
		w.Log(nil, fmt.Sprintf("pull request %d opened: %s", made.number, made.title))
		w.lookAgain(t, p)
		if reviewers := w.settings().Reviewers; len(reviewers) > 0 {
			if err := w.tolerate(h.ask(ctx, made, reviewers)); err != nil {
				return err
			}
		}
		return w.label(ctx, h, made)
	}
}

// lookAgain repeats a proposal's order after w.Settle if the branch was removed recently. Gitea may handle this removal
// late, and close the new pull request.
func (w *Worker) lookAgain(t rollout.ForgeUpdate, p rollout.Proposal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.justRemoved(p.Branch) {
		return
	}
	key := "look again " + p.Branch
	w.put(key, func(ctx context.Context, h host) error {
		w.mu.Lock()
		newest := w.newest[p.Branch]
		w.mu.Unlock()
		if newest != p.Commit {
			return nil
		}
		return w.proposal(t, p)(ctx, h)
	})
	if j := w.jobs[key]; j != nil {
		j.after = w.Now().Add(w.Settle)
	}
}

func (w *Worker) closedHere(p pull) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.justRemoved(p.branch) || strings.HasPrefix(p.body, goneText)
}

func (w *Worker) justRemoved(branch string) bool {
	at, removed := w.removed[branch]
	return removed && w.Now().Before(at.Add(4*w.Settle))
}

func (w *Worker) settings() rollout.Forge {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *w.config
}

func (w *Worker) label(ctx context.Context, h host, p pull) error {
	labels := w.settings().Labels
	if len(labels) == 0 {
		return nil
	}
	return w.tolerate(h.label(ctx, p, labels))
}

// tolerate logs a permanent refusal and returns nil, because a pull request without reviewers or labels is still
// useful.
func (w *Worker) tolerate(err error) error {
	if failed := new(call.Error); !errors.As(err, &failed) || failed.Status/100 != 4 || failed.After > 0 {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report(err)
	return nil
}

func update(ctx context.Context, h host, p pull, t text, closed bool) error {
	if same(p.title, t.title) && same(p.body, t.body) && (!closed || !p.isOpen) {
		return nil
	}
	return h.edit(ctx, p, t, closed && p.isOpen)
}

func same(a, b string) bool {
	return strings.TrimSpace(strings.ReplaceAll(a, "\r\n", "\n")) == strings.TrimSpace(b)
}

func (w *Worker) sweep(ctx context.Context, h host) error {
	open, err := h.open(ctx)
	if err != nil {
		return err
	}
	for _, p := range open {
		ours := strings.HasPrefix(p.branch, rollout.ProposalBranch(rollout.ProposePromotion, w.Cluster, "")) ||
			strings.HasPrefix(p.branch, rollout.ProposalBranch(rollout.ProposeRevert, w.Cluster, ""))
		w.mu.Lock()
		exists := w.exists[p.branch]
		w.mu.Unlock()
		if !ours || exists {
			continue
		}
		if err := update(ctx, h, p, describeGone(p, ""), true); err != nil {
			return err
		}
	}
	return nil
}
