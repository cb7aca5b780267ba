package reconciler

import (
	"context"
	"time"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Forge shows people on a forge what was recorded in Git: pull requests for
// proposals, and the status of a release on its commit. It is decoration. Both
// methods return at once, and what comes of them changes nothing here.
//
// Resume is told where everything stands after a start, or when the
// configuration of the forge has changed, with all proposals that exist.
type Forge interface {
	Show(forge rollout.Forge, transitions []rollout.Transition)
	Resume(forge rollout.Forge, transitions []rollout.Transition, branches []string)
}

// show tells the forge of the transitions that a push has recorded. The removed
// proposals are by app.
func (r *Reconciler) show(ctx context.Context, changed []*step, removed map[string][]rollout.Proposal) {
	if r.Forge == nil || r.config.Forge == nil || !r.config.Forge.Equal(r.shown) {
		return // resumeForge tells it of everything
	}
	var transitions []rollout.Transition
	for _, s := range changed {
		in := s.input
		in.State = s.decision.State
		r.markStale(ctx, in, s.input.Now, s.decision.Subject)
		transitions = append(transitions, rollout.Transition{
			Cluster: r.Cluster, Subject: s.decision.Subject, Before: s.input.State, After: in.State,
			Proposals: append(r.proposed(ctx, s.app, in), removed[s.app.Name]...),
		})
	}
	r.Forge.Show(*r.config.Forge, transitions)
}

// resumeForge tells the forge where everything stands, once after a start and
// after each change of its configuration. A healthy app has nothing to tell,
// unless its last release is the newest commit: its end may not have been told.
func (r *Reconciler) resumeForge(ctx context.Context, now time.Time) {
	if r.Forge == nil || r.config.Forge.Equal(r.shown) {
		return
	}
	if r.shown = r.config.Forge; r.shown == nil {
		return
	}
	var transitions []rollout.Transition
	for _, name := range sortedKeys(r.apps) {
		a := r.apps[name]
		if a.broken != nil || a.isOrphan || a.state.Phase == "" {
			continue
		}
		promotion, refused, unknown := r.approved(ctx, a, a.state)
		in := strategies.Input{
			Now: now, App: a.App, Head: r.headOf(a, refused, unknown), State: a.state, Promotion: promotion,
			Observed: r.observe(a, a.state), Calendar: a.calendar,
		}
		in.Source, _ = r.renderAt(ctx, a, a.state.Source) // without it the pull request says less
		r.markStale(ctx, in, lastChange(a.state), "")
		proposals := r.proposed(ctx, a, in)
		newest := a.state.Stable != nil && a.state.Stable.Commit == r.heads.Main
		if a.state.Phase != rollout.Healthy || len(proposals) > 0 || newest {
			transitions = append(transitions, rollout.Transition{Cluster: r.Cluster, After: a.state, Proposals: proposals})
		}
	}
	r.Forge.Resume(*r.config.Forge, transitions, sortedKeys(r.heads.Proposals))
}

// markStale notes which proposals of an app exist and are not wanted: those that
// were kept for a while, and after a start those that were kept before it.
func (r *Reconciler) markStale(ctx context.Context, in strategies.Input, since time.Time, why string) {
	_, shut := strategies.Gate(in)
	for kind, wanted := range map[rollout.ProposalKind]bool{rollout.ProposePromotion: shut, rollout.ProposeRevert: propose.WantsRevert(in.State)} {
		branch := rollout.ProposalBranch(kind, r.Cluster, in.App.Name)
		_, exists := r.heads.Proposals[branch]
		_, marked := r.stale[branch]
		switch {
		case wanted || !exists || (kind == rollout.ProposeRevert && r.undoes(ctx, branch, in.State)):
			delete(r.stale, branch)
		case !marked:
			r.stale[branch] = stale{since: since, why: why}
		}
	}
}

// lastChange is when a state last began something, as far as it says.
func lastChange(s rollout.State) time.Time {
	var last time.Time
	for _, release := range []*rollout.Release{s.Stable, s.Release} {
		if release != nil {
			last = later(last, release.Since)
		}
	}
	for _, p := range s.Progress {
		last = later(last, p.Entered)
	}
	return last
}

// proposed describes the proposals of an app that exist now.
func (r *Reconciler) proposed(ctx context.Context, a *app, in strategies.Input) []rollout.Proposal {
	var all []rollout.Proposal
	branch := rollout.ProposalBranch(rollout.ProposePromotion, r.Cluster, a.Name)
	if commit := r.heads.Proposals[branch]; commit != "" && !r.isStale(branch) {
		gate, _ := strategies.Gate(in)
		all = append(all, rollout.Proposal{
			Kind: rollout.ProposePromotion, Branch: branch, Commit: commit, Gate: gate,
			Standing: standing(in), Changes: rollout.Changes(r.stableOf(ctx, a, in), in.Source),
		})
	}
	branch = rollout.ProposalBranch(rollout.ProposeRevert, r.Cluster, a.Name)
	if commit := r.heads.Proposals[branch]; commit != "" && propose.WantsRevert(in.State) && !r.isStale(branch) {
		p := rollout.Proposal{Kind: rollout.ProposeRevert, Branch: branch, Commit: commit}
		if stable := r.stableOf(ctx, a, in); stable != nil && in.Head.Render != nil {
			p.Changes = rollout.Changes(in.Head.Render, stable)
			if v, err := r.editsBetween(ctx, in.Head.Render, stable); err == nil {
				p.Sharers = v.Sharers
			}
		}
		all = append(all, p)
	}
	return all
}

// stableOf is the app as it serves now, nil if that cannot be had.
func (r *Reconciler) stableOf(ctx context.Context, a *app, in strategies.Input) *rollout.Render {
	if in.State.Stable == nil {
		return nil
	}
	stable, err := r.renderAt(ctx, a, in.State.Stable.Commit)
	if err != nil {
		return nil
	}
	return stable
}

// standing is how far each workload of a release has come.
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
