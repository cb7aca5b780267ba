package strategies

import (
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// What the hold writes into a Deployment. A pod counts as available only after
// minReadySeconds, and with this value never does, so the Deployment controller
// stops at exactly old = N-m and new = s+m for maxSurge s and maxUnavailable m
// (k8s.io/kubernetes pkg/controller/deployment, rolling.go). The progress
// deadline must be larger than minReadySeconds; the largest int32 switches it
// off.
const (
	holdMinReadySeconds  = 2147483646
	holdProgressDeadline = 2147483647
)

// deployment moves a Deployment.
type deployment struct{}

func (deployment) hold(o rollout.Object, f fence) {
	setMap(o, int64(holdMinReadySeconds), "spec", "minReadySeconds")
	setMap(o, int64(holdProgressDeadline), "spec", "progressDeadlineSeconds")
	setMap(o, map[string]any{
		"type":          "RollingUpdate",
		"rollingUpdate": map[string]any{"maxSurge": f.surge(), "maxUnavailable": f.unavailable()},
	}, "spec", "strategy")
}

// own keeps it unpaused, so that kubectl rollout pause is undone.
func (deployment) own(o rollout.Object) {
	if o.Map("spec")["paused"] == nil {
		setMap(o, false, "spec", "paused")
	}
}

// surge is s as a percentage that Kubernetes rounds up to s again: 1 of 3 is
// 33 %. Always a percentage: an integer would keep its size while an autoscaler
// changes n, and the canary's share with it. Above 100 pods it is off by less
// than one pod in a hundred.
func (f fence) surge() string {
	if f.s <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%d%%", max(1, 100*f.s/f.n))
}

// unavailable is m as a percentage that Kubernetes rounds down to m again: 1 of
// 3 is 34 %.
func (f fence) unavailable() string { return fmt.Sprintf("%d%%", (100*f.m+f.n-1)/f.n) }

func (deployment) fence(m moving, want counts, v View) (fence, bool) {
	switch {
	case m.isDynamic():
		gone := m.drained(v, want)
		return fence{s: max(0, want.canary-gone), m: gone, n: m.n}, true
	case m.spec.Scaling == rollout.Surge:
		return fence{s: want.canary, n: m.n}, true
	default:
		return m.walk(v, want)
	}
}

// walk is the next fence on the way to a resting place of want.canary new and
// want.stable old pods that never takes ready pods below what the user allows.
//
// The Deployment controller removes old pods down to N-m whether the new ones
// are ready or not, so m may only grow by as many pods as are ready beyond the
// user's N-maxUnavailable:
//
//	N=10, maxSurge 3, maxUnavailable 2, to 5/5:
//	ready 10        s=3 m=2   8 old, 5 new start
//	ready  8+5      s=0 m=5   5 old, 5 new: at rest
//
// The number of old pods that are gone already is never undone: the controller
// would not bring them back, and the fence would only flap. So where a changed
// list of steps asks for less than there is, it stays as it is.
//
// A pod that the controller has given up but not yet deleted is ready and will
// not be: each ReplicaSet counts for no more than it asks for, and pods that a
// scale-down is about to take are no room either.
func (m moving) walk(v View, want counts) (fence, bool) {
	surge, unavailable := m.spec.MaxSurge.RoundUp(m.n), m.spec.MaxUnavailable.RoundDown(m.n)
	if surge == 0 && unavailable == 0 {
		unavailable = 1 // as Kubernetes resolves percentages that both come to nothing
	}
	old, fresh := m.stable, m.fresh
	if fresh.Desired > want.canary && old.Desired < want.stable {
		want = counts{canary: fresh.Desired, stable: old.Desired}
	}
	restM := m.n - want.stable
	restS := want.canary - restM
	gone := min(max(0, m.n-old.Desired), restM)
	spare := servingOf(old, m.spec, v.Now) + servingOf(fresh, m.spec, v.Now) - (m.n - unavailable)
	spare -= max(0, old.Desired+fresh.Desired-m.n-max(surge, restS))
	if old.Desired > m.n {
		spare = 0
	}
	less := min(restM, gone+max(0, spare))
	more := max(restS, min(want.canary-less, surge))
	if less <= 0 && more <= 0 {
		return fence{}, false
	}
	return fence{s: more, m: less, n: m.n}, true
}
