package workloads

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// Staged is a release's workload, with plan, progress and observed pods.
type Staged struct {
	*plan.Compiled
	rollout.Progress
	Label  string
	Live   rollout.ObservedWorkload
	Exists bool
	N      int  // desired replicas
	leaves bool // in a rollback, so no new pod starts
	Stable rollout.Revision
	Fresh  rollout.Revision // zero without a ReplicaSet of the new version
}

// New returns a workload of the state's release.
func New(s rollout.State, p *plan.Compiled, pr rollout.Progress, o rollout.Observed) Staged {
	m := Staged{Compiled: p, Progress: pr, Label: labelOf(s, pr.Workload)}
	m.Live, m.Exists = o.Workloads[pr.Workload]
	m.N = Replicas(s, p.Spec, m.Live)
	m.Stable, _ = m.Live.Find(s.StableHash(pr.Workload))
	m.Fresh, _ = m.Live.Find(s.Release.Templates[pr.Workload])
	m.leaves = s.Phase == rollout.Aborting
	isBase := func(r rollout.Revision) bool { return r.Base && !r.Current }
	if i := slices.IndexFunc(m.Live.Revisions, isBase); i >= 0 && m.Stable.Hash == "" {
		m.Stable = m.Live.Revisions[i] // created before gitrollout wrote a hash annotation
		m.Stable.Hash = s.StableHash(pr.Workload)
	}
	if m.leaves && m.N > m.Live.Replicas && m.Fresh.Desired > 0 {
		m.N = min(m.N, growth(m))
	}
	return m
}

// All returns the release's workloads that have a spec in specs, in the order of s.Progress.
func All(s rollout.State, specs []rollout.Spec, o rollout.Observed, known plan.Cache) []Staged {
	if s.Release == nil {
		return nil
	}
	all := make([]Staged, 0, len(s.Progress))
	for _, pr := range s.Progress {
		if spec, is := rollout.Find(specs, func(spec rollout.Spec) bool { return spec.Workload == pr.Workload }); is {
			all = append(all, New(s, known.Of(spec), pr, o))
		}
	}
	return all
}

// Workloads returns the release's workloads that have a spec in v.Source.
func (v View) Workloads(s rollout.State) []Staged {
	return All(s, v.Source.Specs, v.Observed, v.Plans)
}

// Problem returns why new pods are not ready. If new pods have no problem and Spec.Scaling is InPlace, it returns why
// stable pods are not ready.
func (m Staged) Problem() string {
	if m.Fresh.Problem != "" || m.Stable.Problem == "" || m.Spec.Scaling != rollout.InPlace {
		return m.Fresh.Problem
	}
	text := "stable " + m.Stable.Problem
	if p, is := Blocker(m); is {
		text += ": pod " + p.Name + " has to be ready first; repair it, or promote the release fully"
	}
	return text
}

// WaitsInTurn reports whether an unready stable pod may keep the controller from creating new pods.
func WaitsInTurn(m Staged) bool { return m.Kind() != (deployment{}) }

// Blocker returns the first unready stable pod, if all new pods are ready. Controllers other than the Deployment
// controller may replace no pod until this pod is ready.
func Blocker(m Staged) (rollout.Pod, bool) {
	blocks := WaitsInTurn(m) && m.Fresh.Problem == "" && m.Fresh.Ready() == m.Fresh.Pods
	return rollout.Find(m.Stable.Members, func(p rollout.Pod) bool { return blocks && !p.Ready && !p.Terminating })
}

// Stage returns the present stage; zero after the last.
func (m Staged) Stage() plan.Stage { return m.RoutedAt(m.Step) }

// Want returns the counts at the step's end. A rollback starts no new pod, even after a scale-up or at a step that was
// never applied.
func (m Staged) Want() plan.Counts {
	c := m.CountsAt(m.Step, m.N)
	if m.leaves && m.Exists {
		c.Canary = min(c.Canary, m.Fresh.Desired)
	}
	return c
}

// IsThrough reports whether the workload has passed all its steps.
func (m Staged) IsThrough() bool { return m.Step >= m.Of }

// labelOf returns the prefix of run names: "web", or "web@east" if two namespaces have a "web".
func labelOf(s rollout.State, w rollout.Workload) string {
	namesake := func(p rollout.Progress) bool { return p.Workload.Name == w.Name && p.Workload != w }
	if slices.ContainsFunc(s.Progress, namesake) {
		return w.Name + "@" + w.Namespace
	}
	return w.Name
}

// View holds Desired's input, except the state.
type View struct {
	Applied  time.Time // as in strategies.Input
	Now      time.Time // for minReadySeconds
	Source   *rollout.Render
	Stable   *rollout.Render  // the render at State.Stable.Commit; set only if NeedsStable
	Observed rollout.Observed // provides replicas and the ReplicaSets' hashes
	Plans    plan.Cache       `json:"-"`
}

func servingOf(r rollout.Revision, spec rollout.Spec, now time.Time) int {
	return min(r.Serving(now, plan.MinReady(spec)), r.Desired)
}

// Replicas returns a workload's replicas from Git or, if Git has none, from its autoscaler.
func Replicas(s rollout.State, spec rollout.Spec, live rollout.ObservedWorkload) int {
	if n := Asked(s, spec); n != nil {
		return *n
	}
	return live.Replicas
}

// ServesNext returns when the next ready pod completes minReady, or zero.
func ServesNext(now time.Time, minReady time.Duration, versions ...rollout.Revision) (due time.Time) {
	for _, v := range versions {
		for _, since := range v.ReadySince {
			if at := since.Add(minReady); at.After(now) {
				due = rollout.Soonest(due, at)
			}
		}
	}
	return due
}

// IsHeld reports whether gitrollout limits new pods: at steps, or in a rollback that keeps new pods.
func IsHeld(s rollout.State) bool {
	switch s.Phase {
	case rollout.Progressing, rollout.Paused, rollout.Stalled:
		return s.Stable != nil && !IsPromoting(s)
	case rollout.Aborting:
		return s.Source != s.Rollback.To
	}
	return false
}

// commitOf returns the commit of the version (release or stable) that has the hash, or "". Objects are marked with this
// commit. With the newest commit as mark, each push would change objects.
func commitOf(s rollout.State, w rollout.Workload, hash rollout.Hash) string {
	switch {
	case s.Release != nil && s.Release.Templates[w] == hash:
		return s.Release.Commit
	case s.StableHash(w) == hash && hash != "" && s.Stable != nil:
		return s.Stable.Commit
	}
	return ""
}

// Reopened puts the stable release in flight again if old pods remain (State.Draining).
func Reopened(s rollout.State) rollout.State {
	if s.Draining == nil || s.Stable == nil || s.Release != nil {
		return s
	}
	s.Release, s.Stable, s.Progress, s.Phase = s.Stable, &s.Draining.Release, s.Draining.Progress, rollout.Paused
	if !slices.ContainsFunc(s.Progress, func(p rollout.Progress) bool { return p.Step < p.Of }) {
		s.Phase = rollout.Promoting
	}
	return s
}

// IsPromoting reports whether all steps are passed, so that Kubernetes replaces the remaining pods.
func IsPromoting(s rollout.State) bool {
	isStill := func(p rollout.Progress) bool { return p.Step < p.Of }
	isReleasing := s.Stable != nil && s.Release != nil
	return s.Phase == rollout.Promoting ||
		s.Phase == rollout.Stalled && isReleasing && !slices.ContainsFunc(s.Progress, isStill)
}
