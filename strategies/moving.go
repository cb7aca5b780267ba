package strategies

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// moving is one workload on its way through a release: its plan, how far it has come, and what the cluster shows of it.
type moving struct {
	*plan
	rollout.Progress
	label  string // of its analyses
	live   rollout.ObservedWorkload
	exists bool // in the cluster
	n      int  // pods that it should have
	leaves bool // its release goes back: no pod of the new version starts
	stable rollout.Revision
	fresh  rollout.Revision // the new version's; the zero value if it has no ReplicaSet yet
}

func movingOf(s rollout.State, p *plan, pr rollout.Progress, o rollout.Observed) moving {
	m := moving{plan: p, Progress: pr, label: labelOf(s, pr.Workload)}
	m.live, m.exists = o.Workloads[pr.Workload]
	m.n = replicas(s, p.spec, m.live)
	m.stable, _ = m.live.Find(s.StableHash(pr.Workload))
	m.fresh, _ = m.live.Find(s.Release.Templates[pr.Workload])
	m.leaves = s.Phase == rollout.Aborting
	isBase := func(r rollout.Revision) bool { return r.Base && !r.Current }
	if i := slices.IndexFunc(m.live.Revisions, isBase); i >= 0 && m.stable.Hash == "" {
		m.stable = m.live.Revisions[i] // made before gitrollout wrote a hash
		m.stable.Hash = s.StableHash(pr.Workload)
	}
	if m.leaves && m.n > m.live.Replicas && m.fresh.Desired > 0 {
		m.n = min(m.n, growth(m))
	}
	return m
}

// moversOf are the workloads of a state's release that have one of the specs, in the order of its progress.
func moversOf(s rollout.State, specs []rollout.Spec, o rollout.Observed, known plans) []moving {
	if s.Release == nil {
		return nil
	}
	all := make([]moving, 0, len(s.Progress))
	for _, pr := range s.Progress {
		if spec, is := rollout.Find(specs, func(spec rollout.Spec) bool { return spec.Workload == pr.Workload }); is {
			all = append(all, movingOf(s, known.of(spec), pr, o))
		}
	}
	return all
}

// movers are the workloads of the release in flight.
func movers(in Input) []moving {
	if in.State.Release == nil {
		return nil
	}
	return moversOf(in.State, releaseSpecs(in), in.Observed, in.plans)
}

// movers are the workloads of a state's release as its source has them.
func (v View) movers(s rollout.State) []moving {
	return moversOf(s, v.Source.Specs, v.Observed, v.plans)
}

// releaseSpecs are the specs that the release in flight follows: Git's newest,
// or those of the last commit that could be read.
func releaseSpecs(in Input) []rollout.Spec {
	switch {
	case in.Head.Render != nil && in.Head.Render.Release() == in.State.Release.Hash:
		return in.Head.Render.Specs
	case in.Source != nil:
		return in.Source.Specs
	default:
		return nil
	}
}

// problem is what keeps pods of the new version from serving, as the cluster says: something of them, or, where they
// take the place of stable pods, something of one of those, for which the next has to wait.
func (m moving) problem() string {
	if m.fresh.Problem != "" || m.stable.Problem == "" || m.spec.Scaling != rollout.InPlace {
		return m.fresh.Problem
	}
	return "stable " + m.stable.Problem
}

// stage is the one in progress, the zero value after the last one.
func (m moving) stage() stage {
	s, _ := m.at(m.Step)
	return s
}

// want is what its step comes to rest at. On the way back no pod of the new version is added, though there be a larger
// number of pods by now.
func (m moving) want() counts {
	c := m.countsAt(m.Step, m.n)
	if m.leaves && m.fresh.Desired > 0 {
		c.canary = min(c.canary, m.fresh.Desired)
	}
	return c
}

// isThrough reports whether all steps are done.
func (m moving) isThrough() bool { return m.Step >= m.Of }
