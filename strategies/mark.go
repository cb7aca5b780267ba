package strategies

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// withMark keeps the workloads' mark where neither pods nor routes move, as into a pause. A change of only an
// annotation or label costs the Deployment controller three more writes.
func withMark(in Input, d Decision, was rollout.State) Decision {
	switch {
	case d.State.Equal(&was):
	case isStill(in, was, d.State):
		d.State.Written = was.Mark()
	default:
		d.State.Written = 0
	}
	return d
}

// isStill reports whether two states between the steps of one release have the same objects.
func isStill(in Input, a, b rollout.State) bool {
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

// unmoved returns a state without the fields that no object depends on.
func unmoved(s rollout.State) rollout.State {
	s.Phase, s.Reason, s.Serial, s.Written, s.Held, s.Analyses, s.Hooks = "", "", 0, 0, nil, nil, nil
	s.Unhealthy, s.Kept, s.Ignored = "", "", ""
	s.Progress = slices.Clone(s.Progress)
	for i, p := range s.Progress {
		s.Progress[i] = rollout.Progress{Workload: p.Workload, Plan: p.Plan, Routed: p.Routed, Left: p.Left}
	}
	return s
}
