package strategies_test

import (
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// followRelease checks how many pods a release and a rollback start, and records the counts at their beginning.
func (s *sim) followRelease(w rollout.Workload, d *kube.Deployment, was, is rollout.State) {
	x := s.watch(w)
	spec, staged := s.specOf(w)
	version := func(r *rollout.Release) string {
		if r == nil {
			return ""
		}
		for _, rs := range d.Sets {
			if rollout.Hash(rs.Annotations[rollout.AnnotationHash]) == r.Templates[w] {
				return kube.VersionOf(rs.Template)
			}
		}
		return ""
	}
	if staged && x.scaling != spec.Scaling {
		x.scaling, x.scalingChanged = spec.Scaling, releaseID(was) == releaseID(is)
	}
	if is.Source != was.Source || releaseID(is) != releaseID(was) {
		x.unwell = unwell{} // the release's pods have their own deadline
	}
	started := 0
	for _, n := range d.Started {
		started += n
	}
	_, moving := is.ProgressOf(w) // false for a release that overtakes a rollback
	quiet := !s.chaos.scales && !s.chaos.kills && !s.chaos.crashes
	switch {
	case releaseID(is) != "" && releaseID(is) != releaseID(was):
		x.base, x.disturbed, x.scalingChanged = started, !moving || is.Stable == nil || s.overtaken, false
	case is.Phase == rollout.Aborting && was.Phase != rollout.Aborting:
		p, wasHeld := was.ProgressOf(w)
		x.whole = !x.disturbed && staged && wasHeld && p.Step < p.Of && spec.Scaling == rollout.Surge && !plan.Compile(spec).IsDynamic() &&
			workloads.IsHeld(was) && !x.scalingChanged
		x.disturbed = true
		x.baseStable = d.Started[version(is.Stable)]
	case is.Phase == rollout.Healthy && (was.Phase == rollout.Promoting || was.Draining != nil) && quiet && !x.disturbed:
		// A release may become stable before its last pod has started.
		if n := started - x.base; n > d.Replicas || n < d.Replicas && was.Draining != nil {
			s.fail("%s: the release started %d pods, it has %d", w, n, d.Replicas)
		}
	}
	if was.Phase == rollout.Aborting && is.Phase != rollout.Aborting && quiet && x.whole && is.Stable != nil {
		// One stable pod may start, because the rollback may interrupt the repair of a share that was too large (ADR 0017).
		if n := d.Started[version(is.Stable)] - x.baseStable; n < 0 || n > 1 {
			s.fail("%s: the rollback started %d stable pods, and they were all there", w, n)
		}
	}
	if is.Phase == rollout.Healthy && is.Stable != nil && is.StableHash(w) != "" {
		serving := s.serving(w, d)
		if x.Replicas != d.Replicas {
			x.Scaled(s.kube.Now, d, spec)
			x.Excused = 0
		}
		x.Up = serving >= x.Floor
	}
}
