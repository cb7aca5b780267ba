package strategies

import (
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// decideFirst starts an app that has no record: a first deployment, or the
// adoption of what runs already.
func decideFirst(in Input) Decision {
	release := newRelease(in)
	d, settled := adoption(in, release)
	if !settled {
		d = firstDeployment(in, release)
	}
	d.Ask = askAdoptable(in)
	return d
}

// adoption decides about an app of which something runs already. What is not what
// Git says is left alone, unless somebody promotes Git's version fully.
func adoption(in Input, release rollout.Release) (Decision, bool) {
	s, head := in.State, in.Head.Render
	running := 0
	var strange, halfDone []rollout.Workload
	for _, spec := range head.Specs {
		live, exists := in.Observed.Workloads[spec.Workload]
		if !exists {
			continue
		}
		running++
		switch template := head.Templates[spec.Workload]; {
		case live.Hash != template && !in.Answers.Adoptable[spec.Workload]:
			strange = append(strange, spec.Workload)
		case halfway(live, template):
			halfDone = append(halfDone, spec.Workload)
		}
	}
	if running == 0 || len(strange)+len(halfDone) > 0 && in.Promotion.OpensAll(release.Hash) {
		return Decision{}, false
	}
	problem := ""
	switch {
	case len(strange) > 0:
		problem = fmt.Sprintf("%s %s already runs a template that differs from Git, and no release is on record; "+
			"commit what runs first (it is adopted without a restart), "+
			"or replace it at once with a promotion file: release: %s, through: full", strange[0].Ref().Kind, strange[0], release.Hash)
	case len(halfDone) > 0:
		problem = fmt.Sprintf("%s %s is in the middle of a release, and no release is on record; restore the state branch, "+
			"or finish the release at once with a promotion file: release: %s, through: full",
			halfDone[0].Ref().Kind, halfDone[0], release.Hash)
	default:
		s.Phase, s.Source, s.Stable, s.Verified = rollout.Healthy, in.Head.Commit.ID, &release, remember(nil, release.Hash)
		return Decision{State: s, Subject: fmt.Sprintf("%s adopted at %s", s.App, rollout.ShortID(release.Commit))}, true
	}
	s.Phase = rollout.Pending
	return hold(s, rollout.HeldAdoption, problem, in.Head.Commit.ID), true
}

// firstDeployment follows the head at once: nothing is protected yet.
func firstDeployment(in Input, release rollout.Release) Decision {
	s, staged := in.State, len(in.Head.Render.Specs) > 0
	if staged {
		if d, shut := closed(in, "release "+string(release.Hash)); shut {
			return d
		}
	}
	s.Source = in.Head.Commit.ID
	if !staged {
		s.Phase, s.Reason = rollout.Healthy, ""
		return Decision{State: s, Subject: fmt.Sprintf("%s applied at %s", s.App, rollout.ShortID(s.Source))}
	}
	s.Phase, s.Release, s.Reason = rollout.Progressing, &release, noStable
	return Decision{State: s, Subject: fmt.Sprintf("%s first deployment of %s", s.App, release.Hash)}
}

const noStable = "first deployment: no stable version to protect, so no steps"

// halfway reports whether pods of another release than the template's run.
func halfway(live rollout.ObservedWorkload, template rollout.Hash) bool {
	return slices.ContainsFunc(live.Revisions, func(r rollout.Revision) bool {
		return r.Hash != "" && r.Hash != template && r.Desired > 0
	})
}
