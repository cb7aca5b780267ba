package strategies

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// Replicas and autoscaler limits do not wait for steps: a release changes these immediately, and a rollback keeps the
// new values. In a rollback or freeze, State.Source is an older commit, so State.Replicas records the head's values.

// withReplicas records no decrease of replicas while an app waits for a shared change, because a bad change must not
// stop all apps' pods.
func withReplicas(in, given Input, d Decision) Decision {
	s, head := &d.State, in.Head
	waits := given.Entry != nil && !given.Entry.Open && given.Entry.Held == "" && given.Head.Render != nil
	if waits {
		head = given.Head
	}
	switch {
	case d.Stale || head.Render == nil:
		return d
	case s.Phase == rollout.Healthy && !s.Held.Waits() && !waits, s.Stable == nil,
		s.Rollback != nil && s.Rollback.To == head.Commit.ID:
		s.Replicas = nil
		return d
	case in.Source == nil:
		return d
	}
	s.Replicas = slices.Clone(s.Replicas)
	newest := head.Render.ByRef()
	for _, o := range in.Source.Objects {
		now, has := newest[o.Ref()]
		was, next := workloads.Size(in.State, o), workloads.Size(rollout.State{}, now)
		if !has || reflect.DeepEqual(was, next) || next.Count != nil && isScaled(in.Source, o.Ref()) {
			continue
		}
		from := workloads.Size(rollout.State{}, o)
		if waits && (shrinks(from.Count, next.Count) || shrinks(from.Least, next.Least)) {
			continue
		}
		isIt := func(r rollout.Replicas) bool { return r.Workload == next.Workload }
		s.Replicas = append(slices.DeleteFunc(s.Replicas, isIt), next)
		d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s has the replicas of %s", s.App, head.Commit.Short()))
	}
	return d
}

func shrinks(from, to *int) bool { return (from == nil) != (to == nil) || from != nil && *to < *from }

func isScaled(r *rollout.Render, w rollout.Ref) bool {
	return slices.ContainsFunc(r.Objects, func(o rollout.Object) bool {
		ref, target := o.Ref(), o.Map("spec", "scaleTargetRef")
		kind, given := target["kind"].(string)
		return ref.Autoscales() && ref.Namespace == w.Namespace && target["name"] == w.Name &&
			(kind == w.Kind || !given && w.Kind == "Deployment") // KEDA's default kind
	})
}

// withMark keeps the labels' serial number (State.Mark) if neither pods nor routes change, for example in a pause. A
// new number alone would cause three writes by the Deployment controller.
func withMark(in, given Input, d Decision) Decision {
	switch was := given.State; {
	case d.State.Equal(&was):
	case isStill(in, was, d.State):
		d.State.Written = was.Mark()
	default:
		d.State.Written = 0
	}
	return d
}

func isStill(in Input, a, b rollout.State) bool {
	if a.Watch != nil && a.Release == nil && b.Release == nil { // a watch and its analyses affect no object
		a, b = unmoved(a), unmoved(b)
		return a.Equal(&b)
	}
	if in.Source == nil || !workloads.IsHeld(a) || !workloads.IsHeld(b) {
		return false
	}
	v := workloads.View{Source: in.Source, Observed: in.Observed, Plans: in.plans}
	from, to := v.Workloads(a), v.Workloads(b)
	if len(from) != len(to) {
		return false
	}
	for i, m := range from {
		_, tries := experimentAt(a, m)
		_, willTry := experimentAt(b, to[i])
		if tries || willTry || m.Want() != to[i].Want() || !m.Stage().AsksAs(to[i].Stage()) {
			return false
		}
	}
	a, b = unmoved(a), unmoved(b)
	return a.Equal(&b)
}

func unmoved(s rollout.State) rollout.State {
	s.Phase, s.Reason, s.Serial, s.Written, s.Held, s.Analyses, s.Hooks = "", "", 0, 0, nil, nil, nil
	s.Watch, s.Soaked, s.SoaksSince = nil, nil, time.Time{}
	s.Unhealthy, s.Kept, s.Ignored = "", "", ""
	s.Progress = slices.Clone(s.Progress)
	for i, p := range s.Progress {
		s.Progress[i] = rollout.Progress{Workload: p.Workload, Plan: p.Plan, Routed: p.Routed, Left: p.Left}
	}
	return s
}
