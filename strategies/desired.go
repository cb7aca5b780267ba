package strategies

import (
	"fmt"
	"maps"
	"slices"
	"time"

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

// View is what Desired needs besides the state.
type View struct {
	Applied  time.Time        // as in Input
	Now      time.Time        // for minReadySeconds
	Source   *rollout.Render  // the render at State.Source
	Stable   *rollout.Render  // the render at State.Stable.Commit; only where NeedsStable says so
	Observed rollout.Observed // for the numbers of pods and the ReplicaSets' own hashes
}

// Desired returns the objects that the cluster should hold: the render with the
// state laid over it. The input is not changed.
//
// At rest and while promoting they are the user's own objects. While a release
// is between its steps, its Deployments carry the hold and its Services the
// hash of the version that they are for.
//
// An error says that a router's objects cannot be made, which render has ruled
// out for what it returned.
func Desired(s rollout.State, v View) ([]rollout.Object, error) {
	pins := pinsOf(s, v)
	objects := make([]rollout.Object, 0, len(v.Source.Objects))
	for _, o := range v.Source.Objects {
		ref := o.Ref()
		switch {
		case ref.Group == "apps" && ref.Kind == "Deployment":
			if o = desiredDeployment(s, v, o); o == nil {
				continue
			}
		case ref.Group == "" && ref.Kind == "Service":
			if hash := pins[ref]; hash != "" {
				o = o.Copy()
				setMap(o, hash, "spec", "selector", rollout.LabelPodHash)
			}
		}
		objects = append(objects, o)
	}
	objects, err := overlaid(s, v, objects)
	return append(objects, experimentObjects(s, v)...), err
}

// NeedsStable reports whether Desired would use the render of the stable
// commit: a workload of the release has no canary pod yet, so its Deployment is
// still stable's, or it is at an experiment.
func NeedsStable(s rollout.State, v View) bool {
	if !held(s) {
		return false
	}
	for _, p := range s.Progress {
		if spec, ok := v.Source.Spec(p.Workload); ok {
			if _, ok := holdOf(spec, p, s, v); !ok {
				return true
			}
			if _, is := experimentAt(s, spec, p); is {
				return true
			}
		}
	}
	return false
}

// held reports whether the state keeps the release's Deployments in the hold:
// between its steps, and in a retreat until the canary's pods may go.
func held(s rollout.State) bool {
	switch s.Phase {
	case rollout.Progressing, rollout.Paused, rollout.Stalled:
		return s.Stable != nil
	case rollout.Aborting:
		return s.Source != s.Retreat.To
	default:
		return false
	}
}

// desiredDeployment returns the Deployment that the state asks for, nil to leave
// the one in the cluster as it is.
func desiredDeployment(s rollout.State, v View, o rollout.Object) rollout.Object {
	w := rollout.Workload{Namespace: o.Namespace(), Name: o.Name()}
	hash := v.Source.Templates[w]
	p, moving := s.ProgressOf(w)
	spec, staged := v.Source.Spec(w)
	if !moving || !staged || !held(s) {
		return stamp(o, s.Serial, hash, commitOf(s, w, hash), "")
	}
	h, ok := holdOf(spec, p, s, v)
	if !ok {
		return stableDeployment(s, v, o)
	}
	status := fmt.Sprintf("held at step %d/%d (%s) of release %s; see: gitrollout get %s", min(p.Step+1, p.Of), p.Of, p.Name, s.Release.Hash, s.App)
	o = stamp(o, s.Serial, hash, s.Release.Commit, status)
	setMap(o, int64(holdMinReadySeconds), "spec", "minReadySeconds")
	setMap(o, int64(holdProgressDeadline), "spec", "progressDeadlineSeconds")
	setMap(o, map[string]any{
		"type":          "RollingUpdate",
		"rollingUpdate": map[string]any{"maxSurge": h.surge(), "maxUnavailable": h.unavailable()},
	}, "spec", "strategy")
	return o
}

// stableDeployment returns the Deployment of the stable commit, with as many
// replicas as the newest one asks for: how many is not staged. It is nil when
// that commit has none: what is not known to be safe is not applied.
func stableDeployment(s rollout.State, v View, o rollout.Object) rollout.Object {
	w := rollout.Workload{Namespace: o.Namespace(), Name: o.Name()}
	stable, found := deploymentOf(v.Stable, w)
	if !found {
		return nil
	}
	stable = stamp(stable, s.Serial, v.Stable.Templates[w], s.Stable.Commit, "")
	if n, set := o.Map("spec")["replicas"]; set {
		setMap(stable, n, "spec", "replicas")
	} else {
		delete(stable.Map("spec"), "replicas")
	}
	return stable
}

func deploymentOf(r *rollout.Render, w rollout.Workload) (rollout.Object, bool) {
	if r == nil {
		return nil, false
	}
	for _, o := range r.Objects {
		if o.Ref() == w.Ref() {
			return o, true
		}
	}
	return nil, false
}

// commitOf is the commit that a staged template was released in, "" for what is
// not staged: naming the newest commit there would write to each Deployment at
// each push.
func commitOf(s rollout.State, w rollout.Workload, hash rollout.Hash) string {
	switch {
	case s.Release != nil && s.Release.Templates[w] == hash:
		return s.Release.Commit
	case s.StableHash(w) == hash && hash != "" && s.Stable != nil:
		return s.Stable.Commit
	default:
		return ""
	}
}

// stamp returns a copy with gitrollout's annotations. They are on the
// Deployment alone, not on its pods: a new commit restarts nothing.
func stamp(o rollout.Object, serial int, hash rollout.Hash, commit, status string) rollout.Object {
	o = o.Copy()
	if o.Map("spec")["paused"] == nil {
		setMap(o, false, "spec", "paused") // owned, so that kubectl rollout pause is undone
	}
	setMap(o, string(hash), "metadata", "annotations", rollout.AnnotationHash)
	setMap(o, fmt.Sprint(serial), "metadata", "annotations", rollout.AnnotationSerial)
	if commit != "" {
		setMap(o, commit, "metadata", "annotations", rollout.AnnotationCommit)
	}
	if status != "" {
		setMap(o, status, "metadata", "annotations", rollout.AnnotationStatus)
	}
	return o
}

func setMap(o map[string]any, value any, path ...string) {
	for _, key := range path[:len(path)-1] {
		next, ok := o[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			o[key] = next
		}
		o = next
	}
	o[path[len(path)-1]] = value
}

// holdFence is maxSurge s and maxUnavailable m, in pods of n.
type holdFence struct{ s, m, n int }

// surge is s as a percentage that Kubernetes rounds up to s again: 1 of 3 is
// 33 %. Always a percentage: an integer would keep its size while an autoscaler
// changes n, and the canary's share with it. Above 100 pods it is off by less
// than one pod in a hundred.
func (h holdFence) surge() string {
	if h.s <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%d%%", max(1, 100*h.s/h.n))
}

// unavailable is m as a percentage that Kubernetes rounds down to m again: 1 of
// 3 is 34 %.
func (h holdFence) unavailable() string { return fmt.Sprintf("%d%%", (100*h.m+h.n-1)/h.n) }

// holdOf returns the fence for the stage that a workload is at. It is false
// while there is nothing to hold: no canary pod is asked for, or none may start
// yet because the stable pods are too few.
func holdOf(spec rollout.Spec, p rollout.Progress, s rollout.State, v View) (holdFence, bool) {
	live := v.Observed.Workloads[p.Workload]
	n := replicas(spec, live)
	want := countsAt(planOf(spec), p.Step, n)
	stable, known := live.Find(s.StableHash(p.Workload))
	canary, _ := live.Find(s.Release.Templates[p.Workload])
	if n > 0 && stillRouted(spec, p, v) {
		// Old pods that went to make room for these do not come back either.
		want = counts{canary: max(want.canary, canary.Desired), stable: min(want.stable, max(stable.Desired, n-canary.Desired))}
	}
	if want.canary == 0 || (!known && canary.Pods == 0) {
		// Until stable's ReplicaSet carries its hash, nothing says how many old
		// pods there are, nor what to pin Services to.
		return holdFence{}, false
	}
	if want.stable > 0 && stable.Desired == 0 && (canary.Desired == 0 || spec.Scaling == rollout.Surge && !isDynamic(spec)) {
		// The workload comes back from no pods at all: under the hold all new
		// ones would be the canary's.
		return holdFence{}, false
	}
	if isDynamic(spec) {
		m := drained(spec, p, s, v, want, n)
		return holdFence{s: max(0, want.canary-m), m: m, n: n}, true
	}
	if spec.Scaling == rollout.Surge {
		return holdFence{s: want.canary, m: 0, n: n}, true
	}
	return walk(v.Now, spec, want, n, stable, canary)
}

// countsAt is what a step comes to rest at; after the last one, what the last
// one did. The Deployment controller moves pods forward only, so a step that
// asks for less than an earlier one keeps what there is. One that asks for no
// canary pod at all starts anew from the stable template.
func countsAt(p plan, step, n int) counts {
	if len(p.stages) == 0 {
		return counts{}
	}
	i := min(step, len(p.stages)-1)
	c := p.stages[i].counts(n)
	for i--; i >= 0 && c.canary > 0; i-- {
		before := p.stages[i].counts(n)
		if before.canary == 0 {
			break
		}
		c = counts{canary: max(c.canary, before.canary), stable: min(c.stable, before.stable)}
	}
	return c
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
func walk(now time.Time, spec rollout.Spec, want counts, n int, stable, canary rollout.Revision) (holdFence, bool) {
	surge, unavailable := spec.MaxSurge.RoundUp(n), spec.MaxUnavailable.RoundDown(n)
	if surge == 0 && unavailable == 0 {
		unavailable = 1 // as Kubernetes resolves percentages that both come to nothing
	}
	if canary.Desired > want.canary && stable.Desired < want.stable {
		want = counts{canary: canary.Desired, stable: stable.Desired}
	}
	restM := n - want.stable
	restS := want.canary - restM
	gone := min(max(0, n-stable.Desired), restM)
	spare := servingOf(stable, spec, now) + servingOf(canary, spec, now) - (n - unavailable)
	spare -= max(0, stable.Desired+canary.Desired-n-max(surge, restS))
	if stable.Desired > n {
		spare = 0
	}
	m := min(restM, gone+max(0, spare))
	s := max(restS, min(want.canary-m, surge))
	if m <= 0 && s <= 0 {
		return holdFence{}, false
	}
	return holdFence{s: s, m: m, n: n}, true
}

// servingOf is how many pods of a ReplicaSet serve and will go on to.
func servingOf(r rollout.Revision, spec rollout.Spec, now time.Time) int {
	return min(r.Serving(now, minReady(spec)), r.Desired)
}

// Inventory returns the references of objects, for the state's inventory: what
// the state already lists and what is desired now. What is listed but no longer
// desired is pruned when no release is in flight.
func Inventory(s rollout.State, desired []rollout.Object) []rollout.Ref {
	seen := map[rollout.Ref]bool{}
	for _, r := range s.Inventory {
		seen[r] = true
	}
	for _, o := range desired {
		seen[o.Ref()] = true
	}
	return sortedRefs(seen)
}

// Generated returns the references of what is made for the release in flight and
// is not in Git: what the state already lists, and what is desired now.
func Generated(s rollout.State, desired []rollout.Object) []rollout.Ref {
	if s.Release == nil {
		return nil
	}
	seen := map[rollout.Ref]bool{}
	for _, r := range s.Generated {
		seen[r] = true
	}
	for _, o := range desired {
		if o.Annotation(rollout.AnnotationGenerated) != "" {
			seen[o.Ref()] = true
		}
	}
	return sortedRefs(seen)
}

// Leftover returns what was made for the release and is not desired any more. To
// delete it moves requests, so it does not wait for the end of the release.
func Leftover(s rollout.State, desired []rollout.Object) []rollout.Ref {
	gone := map[rollout.Ref]bool{}
	for _, r := range s.Generated {
		gone[r] = true
	}
	for _, o := range desired {
		delete(gone, o.Ref())
	}
	return sortedRefs(gone)
}

// Prunable returns what the inventory lists and the objects lack. It is empty
// while a release is in flight: both versions' objects are in use then.
func Prunable(s rollout.State, desired []rollout.Object) []rollout.Ref {
	if s.Release != nil || s.Held != nil {
		return nil
	}
	keep := map[rollout.Ref]bool{}
	for _, o := range desired {
		keep[o.Ref()] = true
	}
	gone := map[rollout.Ref]bool{}
	for _, r := range s.Inventory {
		if !keep[r] {
			gone[r] = true
		}
	}
	return sortedRefs(gone)
}

func sortedRefs(set map[rollout.Ref]bool) []rollout.Ref {
	return slices.SortedFunc(maps.Keys(set), rollout.Ref.Compare) // nil for none
}
