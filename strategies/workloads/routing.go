package workloads

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/traffic"
)

// SettledAt returns when all proxies know a route: the later of both times, plus the settle duration.
func SettledAt(recorded, applied time.Time, settle time.Duration) time.Time {
	return rollout.Later(recorded, applied).Add(settle)
}

// KnownOf returns how many of a ReplicaSet's pods are ready, known to proxies, and not about to be removed.
func KnownOf(r rollout.Revision, t *plan.Routing, now time.Time) int {
	return min(r.Serving(now, Learnt(t)), r.Desired)
}

// Learnt returns how long a pod must be ready before proxies know the pod. It adds 1s, because ready times are whole
// seconds.
func Learnt(t *plan.Routing) time.Duration {
	if t.Settle == 0 {
		return 0
	}
	return t.Settle + time.Second
}

// Planned returns the pod counts of the recorded route's step. While the current step has the same route, Planned uses
// the smallest number of new pods in these steps.
func (m Staged) Planned() plan.Counts {
	c := m.CountsAt(m.Routed.Step, m.N)
	for step := m.Routed.Step + 1; step <= m.Step && !m.NeedsRouting(); step++ {
		c.Canary = min(c.Canary, m.CountsAt(step, m.N).Canary)
	}
	return c
}

// borne returns how many new pods the routed weight needs. If Git has changed the step's weight after the routing, the
// result may exceed the step's number of new pods.
func (m Staged) borne() int {
	n := m.Planned().Canary
	if m.RoutedWeight(m.RoutedAt(m.Routed.Step)) != m.Routed.Weight {
		n = max(n, (m.N*m.Routed.Weight+m.Full()-1)/m.Full())
	}
	return n
}

// NeedsRouting reports whether the step's route differs from the recorded route.
func (m Staged) NeedsRouting() bool {
	s, ok := m.At(m.Step)
	switch {
	case !ok || m.Routing == nil:
		return false
	case m.SharesPods() && m.Want().Canary == 0 && m.Fresh.Desired == 0:
		return false // the promotion replaces the only pod, so until then no new pod exists
	case m.Routed == nil:
		return m.RoutedWeight(s) > 0 || len(s.Routes) > 0
	default:
		return m.RoutedWeight(s) != m.Routed.Weight || !s.RoutesAs(m.RoutedAt(m.Routed.Step))
	}
}

// StillRouted reports whether proxies may send requests to the new version. If true, no new pod may stop.
func (m Staged) StillRouted(v View) bool {
	return m.Routed != nil && m.Routing != nil &&
		(m.Routed.Weight > 0 || len(m.RoutedAt(m.Routed.Step).Routes) > 0 || !m.isSettled(v))
}

func (m Staged) isSettled(v View) bool {
	return !v.Now.Before(SettledAt(m.Routed.At, v.Applied, m.Routing.Settle))
}

// Drained returns how many stable pods may be missing. Until all proxies know the step's weight, no further stable pod
// may stop. Afterwards, surplus stable pods may stop, up to the number of available new pods plus maxUnavailable.
func (m Staged) Drained(v View, want plan.Counts) int {
	rest := m.N - want.Stable
	gone := min(max(0, m.N-m.Stable.Desired), rest)
	routed := !m.NeedsRouting() && m.Routed != nil && m.isSettled(v)
	if !routed || !traffic.Verify(m.Routing.Routers, m.Workload.Namespace, v.Observed.Routes).Taken {
		return gone
	}
	return max(gone, min(rest, servingOf(m.Fresh, m.Spec, v.Now)+m.Spec.MaxUnavailable.RoundDown(m.N)))
}
