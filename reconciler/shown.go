package reconciler

import (
	"context"
	"time"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// forgeUpdates returns nil without a forge. "removed" holds each app's deleted proposals.
func (r *committer) forgeUpdates(
	ctx context.Context, v *gitView, all []transition, removed map[string][]rollout.Proposal,
) *report.Shown {
	if !r.hasForge(v) || !v.branch.Config.Forge.Equal(r.shown) {
		return nil
	}
	shown := &report.Shown{Forge: *v.branch.Config.Forge}
	for _, s := range all {
		in := s.input
		in.State = s.decision.State
		r.markStale(ctx, in, s.input.Now, s.decision.Subject)
		shown.Updates = append(shown.Updates, rollout.ForgeUpdate{
			Cluster: r.Cluster, Subject: s.decision.Subject, Before: s.input.State, After: in.State,
			Proposals: append(r.proposed(ctx, v, in), removed[s.app.Name]...),
		})
	}
	return shown
}

// resume reports all apps to the forge after a start or a change of forge. It omits a healthy app without proposals,
// unless the newest commit is its stable version: the release may have ended unreported.
func (r *committer) resume(ctx context.Context, now time.Time) {
	v := r.current()
	if v == nil || v.branch.Config == nil || !r.ShowsForge || v.branch.Config.Forge.Equal(r.shown) {
		return
	}
	if r.shown = v.branch.Config.Forge; r.shown == nil {
		return
	}
	clear(r.told)
	shown := &report.Shown{Forge: *r.shown, Resume: true, Branches: sortedKeys(r.states.proposed())}
	for _, name := range sortedKeys(v.apps) {
		a := v.apps[name]
		e, _ := r.states.of(name)
		if e.err != nil || a.removed != nil || e.state.Phase == "" {
			continue
		}
		app, _ := r.prepare(v, a, e.state, now)
		in, _ := r.gatherer(r.renders).Gather(ctx, app, now) // after an error, the pull request has less text
		r.markStale(ctx, in, lastChange(e.state), "")
		proposals := r.proposed(ctx, v, in)
		isNewest := e.state.Stable != nil && e.state.Stable.Commit == v.main()
		if e.state.Phase != rollout.Healthy || len(proposals) > 0 || isNewest {
			shown.Updates = append(shown.Updates, rollout.ForgeUpdate{
				Cluster: r.Cluster, After: e.state, Proposals: proposals,
			})
		}
	}
	r.show(v, shown)
}

func (r *committer) show(v *gitView, shown *report.Shown) {
	head, _ := r.states.at()
	r.Tell(report.Report{Config: v.branch.Config, Head: head, Forge: shown})
}

func (r *committer) proposed(ctx context.Context, v *gitView, in strategies.Input) (all []rollout.Proposal) {
	wanted := propose.WantedBy(in)
	branch := rollout.ProposalBranch(rollout.ProposePromotion, r.Cluster, in.App.Name)
	if commit := r.states.isProposed(branch); commit != "" && !r.isStale(branch) {
		p := rollout.Proposal{
			Kind: rollout.ProposePromotion, Branch: branch, Commit: commit, Gate: wanted.Gate,
			Standing: standing(in), Changes: rollout.Changes(r.stableOf(ctx, in), in.Source),
		}
		if key := wanted.Promotion; key != nil && key.Commit != "" {
			p.Enters, p.Approves = []string{in.App.Name}, in.Entry.Commit
		}
		all = append(all, p)
	}
	branch = rollout.ProposalBranch(rollout.ProposeRevert, r.Cluster, in.App.Name)
	if commit := r.states.isProposed(branch); commit != "" && wanted.Revert && !r.isStale(branch) {
		p := rollout.Proposal{Kind: rollout.ProposeRevert, Branch: branch, Commit: commit}
		_, p.Retries = strategies.Retryable(in)
		if stable := r.stableOf(ctx, in); stable != nil && in.Head.Render != nil {
			p.Changes = rollout.Changes(in.Head.Render, stable)
			if reversion, err := r.editsBetween(ctx, v, in.Head.Render, stable); err == nil {
				p.Sharers = reversion.Sharers
			}
		}
		all = append(all, p)
	}
	return all
}

func (r *committer) stableOf(ctx context.Context, in strategies.Input) *rollout.Render {
	if in.State.Stable == nil {
		return nil
	}
	stable, _ := r.renders.render(ctx, in.App, in.State.Stable.Commit)
	return stable
}

func standing(in strategies.Input) []rollout.Standing {
	if in.State.Release == nil {
		return nil
	}
	var all []rollout.Standing
	for _, pr := range in.State.Progress {
		live := in.Observed.Workloads[pr.Workload]
		s := rollout.Standing{Progress: pr, Replicas: live.Replicas}
		if revision, found := live.Find(in.State.Release.Templates[pr.Workload]); found {
			s.Ready, s.Problem = revision.Ready(), revision.Problem
		}
		all = append(all, s)
	}
	return all
}
