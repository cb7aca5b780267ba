package workloads

import (
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// With HoldMinReadySeconds, no pod becomes available. So a Deployment of N replicas with maxSurge s and maxUnavailable
// m stops at exactly N-m old and s+m new pods (k8s.io/kubernetes pkg/controller/deployment, rolling.go). The progress
// deadline must exceed minReadySeconds. The largest int32 disables the deadline.
const (
	HoldMinReadySeconds  = 2147483646
	HoldProgressDeadline = 2147483647
)

type deployment struct{}

func (deployment) Hold(o rollout.Object, f Limits) {
	o.Set(int64(HoldMinReadySeconds), "spec", "minReadySeconds")
	o.Set(int64(HoldProgressDeadline), "spec", "progressDeadlineSeconds")
	f.limit(o)
}

func (f Limits) limit(o rollout.Object) {
	o.Set(map[string]any{
		"type":          "RollingUpdate",
		"rollingUpdate": map[string]any{"maxSurge": f.surgeValue(), "maxUnavailable": f.unavailableValue()},
	}, "spec", "strategy")
	if f.still {
		o.Set(true, "spec", "paused")
	}
}

// turn pauses the Deployment in a rollback while the stable ReplicaSet reports more available pods than replicas. The
// controller's count of unavailable stable pods is then negative (NewRSUnavailablePodCount), so the controller could
// stop too many new pods. The object's surge covers pods that start before the controller sees the pause.
func (deployment) turn(m Staged, o rollout.Object) rollout.Object {
	n := m.Live.Replicas
	to := plan.Counts{Canary: n}
	if !m.IsThrough() && m.Plan == m.Digest() {
		to = m.CountsAt(m.Step, n)
	}
	isReported := m.Stable.Available <= m.Stable.Desired || m.Stable.Desired >= n
	shrinks := !m.Stable.Current && m.Stable.Desired > to.Stable // the cache may show too few pods
	switch {
	case m.Stable.Hash == "" || rollout.In(o, "spec.strategy.type") == "Recreate":
	case m.Stable.Current && !m.Live.Synced:
		return nil // the controller has yet to see the pause or its end
	case !isReported || shrinks:
		f := paused(m, n)
		surge := max(m.Spec.MaxSurge.RoundUp(n), to.Stable+to.Canary-n)
		f.Surge = max(f.Surge, min(m.Stable.Desired+to.Canary-n, surge), min(m.Stable.Desired, m.Live.Surge))
		f.limit(o)
		setReplicas(o, int64(n))
	}
	return o
}

func paused(m Staged, n int) Limits {
	total := m.Stable.Desired + m.Fresh.Desired
	return Limits{Surge: max(0, total-n), Unavailable: min(1, max(0, 1+n-total)), Replicas: n, still: true}
}

// Own undoes a manual "kubectl rollout pause", unless Git sets spec.paused.
func (deployment) Own(o rollout.Object) {
	if o.Map("spec")["paused"] == nil {
		o.Set(false, "spec", "paused")
	}
}

func (deployment) room(o rollout.Object, _ rollout.ObservedWorkload) {
	const at = "spec.strategy"
	if is := rollout.In(o, at+".type"); is == nil || is == "RollingUpdate" {
		orElse(o, at+".type", "RollingUpdate")
		orElse(o, at+".rollingUpdate.maxSurge", "25%")
		orElse(o, at+".rollingUpdate.maxUnavailable", "25%")
	}
}

func (deployment) Reached(_ Staged, want plan.Counts) plan.Counts { return want }

// surgeValue returns a percentage, because replicas may change. Kubernetes rounds it up to f.Surge: 33 % for 1 of 3
// pods. If no percentage fits, as for 10 of 150 pods, it returns an integer.
func (f Limits) surgeValue() any {
	return exactly(f.Surge, 100*f.Surge/f.Replicas, func(a rollout.Amount) int { return a.RoundUp(f.Replicas) })
}

// unavailableValue is like surgeValue, but Kubernetes rounds down: 34 % for 1 of 3 pods.
func (f Limits) unavailableValue() any {
	percent := (100*f.Unavailable + f.Replicas - 1) / f.Replicas
	return exactly(f.Unavailable, percent, func(a rollout.Amount) int { return a.RoundDown(f.Replicas) })
}

func exactly(pods, percent int, resolve func(rollout.Amount) int) any {
	if a := (rollout.Amount{Value: percent, Percent: true}); resolve(a) == pods {
		return a.String()
	}
	return int64(pods)
}

// Limits returns the next move's surge and unavailable pods. The Deployment controller never stops pods of its newest
// ReplicaSet and never starts pods of older ReplicaSets. So to remove new pods, gitrollout applies the stable template
// during the step (Limits.Back).
//
// The controller would then remove all new pods if stable pods counted as available. So gitrollout first applies the
// stable template with paused limits (Limits.still), until no stable pod counts as available. If all N new pods are
// available, gitrollout removes one first, because N new pods look like a complete release.
func (deployment) Limits(m Staged, want plan.Counts, v View) (Limits, bool) {
	surge := m.Spec.MaxSurge.RoundUp(m.N)
	counted, all := m.Fresh.Available > 0, m.Fresh.Desired >= m.N
	if counted && all {
		want.Canary = min(want.Canary, m.N-1)
		want.Stable = max(want.Stable, m.N-want.Canary)
	}
	short := m.Stable.Hash != "" && m.Stable.Desired < want.Stable
	isForward := m.Fresh.Desired <= want.Canary && !short || m.Live.Replicas != m.N
	still := paused(m, m.N)
	if counted && !all && (isForward || m.Fresh.Current) {
		return still, true
	}
	if isForward {
		if m.Stable.Current && (!m.Live.Synced || m.Routed != nil && m.Routing != nil && !m.isSettled(v)) {
			// The object stays unchanged until the controller has seen the smaller step and proxies know this step's
			// route.
			return Limits{asIs: true}, true
		}
		if m.IsDynamic() {
			gone := m.Drained(v, want)
			return Limits{Surge: max(0, want.Canary-gone), Unavailable: gone, Replicas: m.N}, true
		}
		return m.nextLimits(v, m.Stable, m.Fresh, want, surge)
	}
	if m.Spec.Scaling == rollout.Surge {
		surge = max(surge, m.Fresh.Desired)
	}
	known := m.Stable.Available == 0 && m.Live.Available == m.Fresh.Available && m.Live.Synced
	switch {
	case !m.Live.Synced:
		return Limits{asIs: true}, true
	case m.Fresh.Ready() == 0:
		return Limits{}, false // no new pod is ready: only the stable template is applied
	case known:
		f, ok := m.nextLimits(v, m.Fresh, m.Stable, plan.Counts{Canary: want.Stable, Stable: want.Canary}, surge)
		f.Back = true
		return f, ok
	case m.Stable.Desired == m.N:
		return m.nextLimits(v, m.Stable, m.Fresh, plan.Counts{Canary: m.Fresh.Desired, Stable: m.N - 1}, surge)
	default:
		still.Back = true
		return still, true
	}
}

// nextLimits returns the next limits, with surge s and maxUnavailable m, towards want.Canary fresh and want.Stable old
// pods. At least N-maxUnavailable pods stay ready. The controller removes old pods down to N-m, even if new pods are
// not ready. So m grows only by the number of ready pods above N-maxUnavailable, or by the number of unready old pods:
//
//	N=10, maxSurge 3, maxUnavailable 2, to 5/5:
//	ready 10        s=3 m=2   8 old, 5 new start
//	ready  8+5      s=0 m=5   5 old, 5 new: at rest
//
// Removed old pods stay removed, so that limits do not flap. Pods that terminate, now or soon, do not count as ready.
func (m Staged) nextLimits(v View, old, fresh rollout.Revision, want plan.Counts, surge int) (Limits, bool) {
	unavailable := m.Spec.MaxUnavailable.RoundDown(m.N)
	if surge == 0 && unavailable == 0 {
		unavailable = 1 // Kubernetes also uses 1 if surge and maxUnavailable are 0
	}
	restM := m.N - want.Stable
	restS := want.Canary - restM
	gone := min(max(0, m.N-old.Desired), restM)
	beyond := servingOf(old, m.Spec, v.Now) + servingOf(fresh, m.Spec, v.Now) - (m.N - unavailable)
	spare := beyond - max(0, old.Desired+fresh.Desired-m.N-max(surge, restS))
	idle := max(0, old.Desired-old.Ready())
	idle += min(0, beyond) // as in the controller's cleanupUnhealthyReplicas
	if old.Desired > m.N {
		idle, spare = 0, 0
	}
	less := min(restM, gone+max(0, spare, idle))
	if part := plan.WholePercent(less, m.N); part > gone {
		less = part
	}
	more := max(restS, min(want.Canary-less, surge))
	if less <= 0 && more <= 0 {
		return Limits{}, false
	}
	return Limits{Surge: more, Unavailable: less, Replicas: m.N}, true
}
