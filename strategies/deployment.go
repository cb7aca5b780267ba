package strategies

import (
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
	o.Set(int64(holdMinReadySeconds), "spec", "minReadySeconds")
	o.Set(int64(holdProgressDeadline), "spec", "progressDeadlineSeconds")
	o.Set(map[string]any{
		"type":          "RollingUpdate",
		"rollingUpdate": map[string]any{"maxSurge": f.surge(), "maxUnavailable": f.unavailable()},
	}, "spec", "strategy")
	if f.still {
		o.Set(true, "spec", "paused")
	}
}

// own is what nobody else may set, at any time: it keeps it unpaused, so that kubectl rollout pause is undone.
func (deployment) own(o rollout.Object) {
	if o.Map("spec")["paused"] == nil {
		o.Set(false, "spec", "paused")
	}
}

// share keeps so many stable pods that those which are gone are a whole
// percentage of n. Up to 100 pods they are in any case; of 147, which are 78 new
// and 69 old at 53 %, 53 % are 77. An integer would stay when an autoscaler halves
// n, and take pods that serve.
func (deployment) share(c counts, n int, _ bool) counts {
	gone := n - c.stable
	kept := gone - wholePercent(gone, n)
	return counts{canary: c.canary - kept, stable: c.stable + kept}
}

func (deployment) reached(_ moving, want counts) counts { return want }

// surge is s as a percentage that Kubernetes rounds up to s again: 1 of 3 is
// 33 %. An integer would keep its size while an autoscaler changes n, and the
// canary's share with it; so it is one only where no percentage is exactly s,
// as 10 of 150.
func (f fence) surge() any {
	return exactly(f.s, 100*f.s/f.n, func(a rollout.Amount) int { return a.RoundUp(f.n) })
}

// unavailable is m as a percentage that Kubernetes rounds down to m again: 1 of
// 3 is 34 %; or else an integer.
func (f fence) unavailable() any {
	return exactly(f.m, (100*f.m+f.n-1)/f.n, func(a rollout.Amount) int { return a.RoundDown(f.n) })
}

func exactly(pods, percent int, resolve func(rollout.Amount) int) any {
	if a := (rollout.Amount{Value: percent, Percent: true}); resolve(a) == pods {
		return a.String()
	}
	return int64(pods)
}

// fence is on the way forward as long as pods of the new version are to be
// started and old ones to go. The Deployment controller does no more than that
// to the template that a Deployment has: it never stops pods of the newest
// ReplicaSet and never starts those of older ones. A share that became too large
// by rounding when replicas changed, by somebody's hand, or by another list of
// steps is made right the other way round: the Deployment has the stable
// template for a while, under the hold like the new one (fence.back).
//
// Pods of the stable version must not count as available then, or the controller
// would take all others for surplus. It counts them with the minReadySeconds that
// their ReplicaSet has, which it is given together with the template, and looks at
// the numbers of before in the same moment. So the template changes first while
// the Deployment is paused (fence.still), and a ReplicaSet of all n available pods
// has one fewer before that, because the controller takes such a one for the end
// of a release, paused or not. Once nothing is available, it stays so until the
// release ends, and the next time takes one step.
//
// Pods of the new version count as available once somebody has given the Deployment
// other minReadySeconds: the controller takes a stable one for each, and all of them
// for the end of the release. What their ReplicaSet is told changes with its own
// template only, so the Deployment has that and stands still until they do not count;
// where they are as many as are asked for, one goes first.
func (deployment) fence(m moving, want counts, v View) (fence, bool) {
	surge, total := m.spec.MaxSurge.RoundUp(m.n), m.stable.Desired+m.fresh.Desired
	counted, all := m.fresh.Available > 0, m.fresh.Desired >= m.n
	if counted && all {
		want.canary = min(want.canary, m.n-1)
		want.stable = max(want.stable, m.n-want.canary)
	}
	short := m.stable.Hash != "" && m.stable.Desired < want.stable
	isForward := m.fresh.Desired <= want.canary && !short || m.live.Replicas != m.n
	still := fence{s: max(0, total-m.n), m: min(1, max(0, 1+m.n-total)), n: m.n, still: true}
	if counted && !all && (isForward || m.fresh.Current) {
		return still, true
	}
	if isForward {
		if m.isDynamic() {
			gone := m.drained(v, want)
			return fence{s: max(0, want.canary-gone), m: gone, n: m.n}, true
		}
		return m.walk(v, m.stable, m.fresh, want, surge)
	}
	if m.spec.Scaling == rollout.Surge {
		surge = max(surge, m.fresh.Desired)
	}
	known := m.stable.Available == 0 && m.live.Available == m.fresh.Available && m.live.Synced
	switch {
	case !m.live.Synced:
		return fence{asIs: true}, true
	case m.fresh.Ready() == 0:
		return fence{}, false // nobody misses them: the stable template alone
	case known:
		f, ok := m.walk(v, m.fresh, m.stable, counts{canary: want.stable, stable: want.canary}, surge)
		f.back = true
		return f, ok
	case m.stable.Desired == m.n:
		return m.walk(v, m.stable, m.fresh, counts{canary: m.fresh.Desired, stable: m.n - 1}, surge)
	default:
		still.back = true
		return still, true
	}
}

// walk is the next fence on the way to a resting place of want.canary pods of a
// version that comes and want.stable pods of one that goes, which never takes
// ready pods below what the user allows.
//
// The Deployment controller removes old pods down to N-m whether the new ones
// are ready or not, so m may only grow by as many pods as are ready beyond the
// user's N-maxUnavailable, or by those that are not ready and go first:
//
//	N=10, maxSurge 3, maxUnavailable 2, to 5/5:
//	ready 10        s=3 m=2   8 old, 5 new start
//	ready  8+5      s=0 m=5   5 old, 5 new: at rest
//
// The number of old pods that are gone already is never undone: the controller
// would not bring them back, and the fence would only flap.
//
// A pod that the controller has given up but not yet deleted is ready and will
// not be: each ReplicaSet counts for no more than it asks for, and pods that a
// scale-down is about to take are no room either. Old pods that are not ready go
// first, and nobody misses them where the others are enough:
//
//	N=10, maxSurge 1, maxUnavailable 0, of 9 stable and 5 new pods, one of which is not ready, to 6/4 (back):
//	ready  9+4      s=0 m=6   4 of 5 new stay, though 3 of 14 are surplus
func (m moving) walk(v View, old, fresh rollout.Revision, want counts, surge int) (fence, bool) {
	unavailable := m.spec.MaxUnavailable.RoundDown(m.n)
	if surge == 0 && unavailable == 0 {
		unavailable = 1 // as Kubernetes resolves percentages that both come to nothing
	}
	restM := m.n - want.stable
	restS := want.canary - restM
	gone := min(max(0, m.n-old.Desired), restM)
	beyond := servingOf(old, m.spec, v.Now) + servingOf(fresh, m.spec, v.Now) - (m.n - unavailable)
	spare := beyond - max(0, old.Desired+fresh.Desired-m.n-max(surge, restS))
	if old.Desired > m.n {
		beyond, spare = 0, 0
	}
	idle := min(beyond, old.Desired-old.Ready())
	less := min(restM, gone+max(0, spare, idle))
	if part := wholePercent(less, m.n); part > gone {
		less = part
	}
	more := max(restS, min(want.canary-less, surge))
	if less <= 0 && more <= 0 {
		return fence{}, false
	}
	return fence{s: more, m: less, n: m.n}, true
}
