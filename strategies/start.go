package strategies

import (
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

func decideFirst(in Input) Decision {
	in = withRetry(in)
	release := newRelease(in)
	if p := in.Promotion; p.Says(rollout.Promote, release.Hash) && p.AdoptAnyway {
		in.State.Adopts = release.Hash
	}
	other, isOthers := inOtherHands(in)
	if isOthers && !other.Warns && in.State.Adopts != release.Hash {
		in.State.Phase = rollout.Pending
		return hold(in.State, rollout.HeldForeign, fmt.Sprintf(
			"%s; %s, or take the app over unchanged: gitrollout promote %s --adopt-anyway",
			other, other.Fix, in.App.Name), in.Head.Commit)
	}
	d, settled := adoption(in, release)
	if !settled {
		d = firstDeployment(in, release)
	}
	if ask := askAdoptable(in); ask != nil {
		d.Ask = ask
	}
	if objects := hook.Without(in.Head.Render.Objects); in.Answers.Foreign == nil && len(objects) > 0 {
		d.Ask = &Ask{Foreign: objects}
	}
	if isOthers && d.State.Held == nil {
		d.Subject += fmt.Sprintf(", though %s; %s", other, other.Fix)
	}
	return d
}

func inOtherHands(in Input) (sign rollout.Foreign, is bool) {
	if in.Answers.Foreign == nil {
		return sign, false
	}
	if sign, is = rollout.Find(*in.Answers.Foreign, func(f rollout.Foreign) bool { return !f.Warns }); is {
		return sign, true
	}
	return rollout.Find(*in.Answers.Foreign, func(rollout.Foreign) bool { return true })
}

func adoption(in Input, release rollout.Release) (Decision, bool) {
	s, head := in.State, in.Head.Render
	running := 0
	var strange, halfDone []rollout.Workload
	all := takenOver(head)
	for _, w := range all {
		live, exists := in.Observed.Workloads[w]
		if !exists {
			continue
		}
		running++
		switch template := head.Templates[w]; {
		case live.Hash != template && !in.Answers.Adoptable[w]:
			strange = append(strange, w)
		case halfway(live, template):
			halfDone = append(halfDone, w)
		}
	}
	isOther := len(strange)+len(halfDone) > 0
	if running == 0 || isOther && in.Promotion.OpensAll(release.Hash) ||
		isContent(&release) && (isOther || running < len(all)) { // new content is applied immediately
		return Decision{}, false
	}
	problem := ""
	switch {
	case len(strange) > 0:
		problem = fmt.Sprintf("%s already runs a template that differs from Git, and no release is on record; "+
			"commit the running template first (it is adopted without a restart), "+
			"or replace it immediately with a promotion file: release: %s, through: full",
			strange[0].Title(), release.Hash)
	case len(halfDone) > 0:
		problem = fmt.Sprintf("%s is in the middle of a release, and no release is on record; restore the state branch, "+
			"or finish the release immediately with a promotion file: release: %s, through: full",
			halfDone[0].Title(), release.Hash)
	default:
		s.Phase, s.Source, s.Stable, s.Verified = rollout.Healthy, in.Head.Commit.ID, &release, remember(nil, release.Hash)
		return Decision{State: s, Subject: fmt.Sprintf("%s adopted at %s", s.App, rollout.ShortID(release.Commit))}, true
	}
	s.Phase = rollout.Pending
	return hold(s, rollout.HeldAdoption, problem, in.Head.Commit), true
}

func firstDeployment(in Input, release rollout.Release) Decision {
	s := in.State
	if release.Hash == "" {
		s.Phase, s.Reason, s.Source = rollout.Healthy, "", in.Head.Commit.ID
		return Decision{State: s, Subject: fmt.Sprintf("%s applied at %s", s.App, rollout.ShortID(s.Source))}
	}
	if d, shut := waitForWindow(in, "release "+string(release.Hash)); shut {
		return d
	}
	return started(in, startFirst(in))
}

func startFirst(in Input) Decision {
	s := in.State
	release := newRelease(in)
	s.Stable, s.Release, s.Progress, s.Analyses, s.Source = nil, &release, nil, nil, in.Head.Commit.ID
	s.Rejected = notRejected(s.Rejected, release.Hash)
	s.Phase, s.Reason = rollout.Progressing, "first deployment: no stable version to protect, so no steps"
	return Decision{State: s, Subject: fmt.Sprintf("%s first deployment of %s", s.App, release.Hash)}
}

func halfway(live rollout.ObservedWorkload, template rollout.Hash) bool {
	return slices.ContainsFunc(live.Revisions, func(r rollout.Revision) bool {
		return r.Hash != "" && r.Hash != template && r.Desired > 0
	})
}

func newRelease(in Input) rollout.Release {
	head := in.Head.Render
	return rollout.Release{Commit: in.Head.Commit.ID, Hash: head.Release(), Author: in.Head.Commit.Author,
		Subject: in.Head.Commit.Subject, Since: rollout.Second(in.Now), Templates: head.Staged(),
		Images: head.Images(), Serial: in.State.Serial + 1}
}

func startRelease(in Input) Decision {
	s := in.State
	release := newRelease(in)
	release.Fast = isFast(in, release.Hash)
	s.Rejected = notRejected(s.Rejected, release.Hash)
	s.Stable = newestStable(in)
	s.Release, s.Rollback, s.Source, s.Reason = &release, nil, in.Head.Commit.ID, ""
	s.Progress, s.Analyses = firstProgress(in, release), nil
	s.Phase = phaseOf(in, s.Progress)
	subject := fmt.Sprintf("%s release %s by %s", s.App, release.Hash, release.Author)
	switch {
	case release.Fast:
		subject += ", verified before: no pauses"
	case len(s.Progress) == 1 && s.Progress[0].Step < s.Progress[0].Of:
		first := s.Progress[0]
		subject += fmt.Sprintf(", step 1/%d %s", first.Of, first.Name)
	}
	return Decision{State: s, Subject: subject}
}

// newestStable returns the stable release. If the source's commit has the stable version, the release names this
// commit, so that a rollback applies the commit.
func newestStable(in Input) *rollout.Release {
	if in.State.Stable == nil || !isOf(in.Source, in.State.Stable.Hash) {
		return in.State.Stable
	}
	stable := *in.State.Stable
	stable.Commit = in.State.Source
	return &stable
}

func notRejected(all []rollout.Rejection, h rollout.Hash) []rollout.Rejection {
	return slices.DeleteFunc(slices.Clone(all), func(r rollout.Rejection) bool { return r.Hash == h })
}

func firstProgress(in Input, release rollout.Release) []rollout.Progress {
	var all []rollout.Progress
	for _, spec := range in.Head.Render.Specs {
		stable := in.State.StableHash(spec.Workload)
		if stable == "" || stable == release.Templates[spec.Workload] {
			continue
		}
		p := in.plans.Of(spec)
		step := 0
		if release.Fast {
			step = p.Passed
		}
		first := p.Enter(step, in.Now)
		if old, has := in.Source.Spec(spec.Workload); has {
			first.Left = p.LeftServices(in.State, nil, in.plans.Of(old))
		}
		s := in.State
		s.Release = &release
		first.Suspended = isSuspended(workloads.New(s, p, first, in.Observed))
		all = append(all, first)
	}
	return all
}

func phaseOf(in Input, all []rollout.Progress) rollout.Phase {
	phase := rollout.Promoting
	for _, pr := range all {
		spec, ok := in.Head.Render.Spec(pr.Workload)
		if !ok || pr.Step >= pr.Of {
			continue
		}
		if s, ok := in.plans.Of(spec).At(pr.Step); !pr.Suspended && (!ok || !s.Wait.Traits().Pauses) {
			return rollout.Progressing
		}
		phase = rollout.Paused
	}
	return phase
}

// isFast reports whether h was verified and is in each rollbackWindow, but neither stable nor rejected.
func isFast(in Input, h rollout.Hash) bool {
	i := slices.Index(in.State.Verified, h)
	if _, rejected := in.State.IsRejected(h); i < 1 || rejected {
		return false
	}
	return !slices.ContainsFunc(in.Head.Render.Specs, func(spec rollout.Spec) bool {
		return spec.RollbackWindow != nil && i > *spec.RollbackWindow
	})
}

// remember puts a version first in the list. If the list had the version, newer versions are dropped.
func remember(list []rollout.Hash, h rollout.Hash) []rollout.Hash {
	if i := slices.Index(list, h); i >= 0 {
		return slices.Clone(list[i:])
	}
	out := append([]rollout.Hash{h}, list...)
	return out[:min(len(out), rollout.MaxHistory)]
}

// StartOver returns a state for a new cluster without workloads. The app first rolls back to stable, and then releases
// Git's version from its first step.
func StartOver(s rollout.State, now time.Time) (rollout.State, bool) {
	if s.Stable == nil {
		return rollout.State{}, false
	}
	to := s.Stable.Commit
	if s.Release == nil && s.Source != "" && s.Phase == rollout.Healthy {
		to = s.Source // a later commit that has the stable version
	}
	stable := *s.Stable
	s.Phase, s.Reason = rollout.Aborting, "this cluster is new: the stable version is deployed first"
	s.Release, s.Progress, s.Draining, s.Held, s.Hooks = &stable, nil, nil, nil, nil
	s.Rollback = &rollout.Rollback{Routed: rollout.Second(now), Drain: rollout.Second(now), To: to}
	s.Source = to
	s.Serial++
	return s, true
}
