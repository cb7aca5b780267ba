package strategies

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// workload is one workload of a release: its plan, its progress and its observed pods.
type workload struct {
	*plan.Compiled
	rollout.Progress
	label  string // the prefix of its analyses' names
	live   rollout.ObservedWorkload
	exists bool // the workload exists in the cluster
	n      int  // its desired replicas
	leaves bool // the release is rolled back: no pod of the new version starts
	stable rollout.Revision
	fresh  rollout.Revision // the new version; the zero value if it has no ReplicaSet yet
}

func newWorkload(s rollout.State, p *plan.Compiled, pr rollout.Progress, o rollout.Observed) workload {
	m := workload{Compiled: p, Progress: pr, label: labelOf(s, pr.Workload)}
	m.live, m.exists = o.Workloads[pr.Workload]
	m.n = replicas(s, p.Spec, m.live)
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

// newWorkloads returns the workloads of a state's release with a spec in the list, in the order of its progress.
func newWorkloads(s rollout.State, specs []rollout.Spec, o rollout.Observed, known plan.Cache) []workload {
	if s.Release == nil {
		return nil
	}
	all := make([]workload, 0, len(s.Progress))
	for _, pr := range s.Progress {
		if spec, is := rollout.Find(specs, func(spec rollout.Spec) bool { return spec.Workload == pr.Workload }); is {
			all = append(all, newWorkload(s, known.Of(spec), pr, o))
		}
	}
	return all
}

func workloads(in Input) []workload {
	if in.State.Release == nil {
		return nil
	}
	return newWorkloads(in.State, releaseSpecs(in), in.Observed, in.plans)
}

// workloads returns the workloads of a state's release by the specs of its source.
func (v View) workloads(s rollout.State) []workload {
	return newWorkloads(s, v.Source.Specs, v.Observed, v.plans)
}

// releaseSpecs returns the specs that the release in flight follows: the head's, or else the source's.
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

// problem returns why new pods are not ready, or stable pods where they are replaced in place.
func (m workload) problem() string {
	if m.fresh.Problem != "" || m.stable.Problem == "" || m.Spec.Scaling != rollout.InPlace {
		return m.fresh.Problem
	}
	return "stable " + m.stable.Problem
}

// stage returns the stage in progress, the zero value after the last one.
func (m workload) stage() plan.Stage {
	s, _ := m.At(m.Step)
	return s
}

// want returns the pods at the step's end. A rollback adds no pod of the new version, even with more replicas.
func (m workload) want() plan.Counts {
	c := m.CountsAt(m.Step, m.n)
	if m.leaves && m.fresh.Desired > 0 {
		c.Canary = min(c.Canary, m.fresh.Desired)
	}
	return c
}

// isThrough reports whether all steps are done.
func (m workload) isThrough() bool { return m.Step >= m.Of }
