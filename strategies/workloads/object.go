package workloads

import (
	"fmt"
	"reflect"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Desired returns a workload's object as the state requires, or nil to change nothing.
func Desired(s rollout.State, v View, w rollout.Workload, o rollout.Object) rollout.Object {
	hash := v.Source.Templates[w]
	o = WithSize(s, o)
	p, moves := s.ProgressOf(w)
	spec, staged := v.Source.Spec(w)
	if !moves || !staged || !IsHeld(s) {
		if s.Phase == rollout.Aborting && IsHeld(s) && v.Observed.Workloads[w].Hash != hash {
			return nil // a rollback starts no new pods
		}
		o = Stamp(v, countInTurn(s, v, spec, o), s.Mark(), hash, commitOf(s, w, hash), "")
		if k, turns := kindFor(w, spec).(turner); turns && moves && staged && s.Phase == rollout.Aborting {
			return k.turn(New(s, v.Plans.Of(spec), p, v.Observed), o)
		}
		return o
	}
	m := New(s, v.Plans.Of(spec), p, v.Observed)
	if n := Asked(s, spec); n != nil && *n != m.N {
		o = o.Copy()
		setReplicas(o, int64(m.N))
	}
	f, ok := LimitsOf(m, v)
	if !ok {
		return stableWorkload(s, v, w, o, "")
	}
	if f.asIs {
		return nil
	}
	status := fmt.Sprintf("held between the steps of release %s; see: gitrollout get %s", s.Release.Hash, s.App)
	if f.Back {
		o = stableWorkload(s, v, w, o, status)
	} else {
		o = Stamp(v, o, s.Mark(), hash, s.Release.Commit, status)
	}
	if o != nil {
		kindFor(w, spec).Hold(o, f)
	}
	return o
}

// stableWorkload returns the stable object with o's replicas, because rollbacks keep replicas.
func stableWorkload(s rollout.State, v View, w rollout.Workload, o rollout.Object, status string) rollout.Object {
	stable, found := WorkloadOf(v.Stable, w)
	if !found {
		return nil
	}
	stable = Stamp(v, stable, s.Mark(), v.Stable.Templates[w], s.Stable.Commit, status)
	setReplicas(stable, o.Map("spec")["replicas"])
	return stable
}

func sizes(ref rollout.Ref) (count, least string) {
	switch {
	case ref.Group == "keda.sh" && ref.Autoscales():
		return "maxReplicaCount", "minReplicaCount"
	case ref.Autoscales():
		return "maxReplicas", "minReplicas"
	}
	return "replicas", "minReplicas"
}

// Size returns Git's newest replicas or autoscaler limits: from State.Replicas, or else from the object.
func Size(s rollout.State, o rollout.Object) rollout.Replicas {
	w, _ := rollout.WorkloadOf(o.Ref())
	if r, is := rollout.Find(s.Replicas, func(r rollout.Replicas) bool { return r.Workload == w }); is {
		return r
	}
	count, least := sizes(o.Ref())
	number := func(field string) *int {
		n, is := o.Map("spec")[field].(int64)
		if !is {
			return nil
		}
		return new(int(n))
	}
	return rollout.Replicas{Workload: w, Count: number(count), Least: number(least)}
}

// WithSize returns an object with the values from Size.
func WithSize(s rollout.State, o rollout.Object) rollout.Object {
	size := Size(s, o)
	if reflect.DeepEqual(size, Size(rollout.State{}, o)) {
		return o
	}
	o = o.Copy()
	count, least := sizes(o.Ref())
	for field, n := range map[string]*int{count: size.Count, least: size.Least} {
		if delete(o.Map("spec"), field); n != nil {
			o.Set(int64(*n), "spec", field)
		}
	}
	return o
}

func setReplicas(o rollout.Object, n any) {
	if n == nil {
		delete(o.Map("spec"), "replicas")
	} else {
		o.Set(n, "spec", "replicas")
	}
}

// WorkloadOf returns a workload's object in a render.
func WorkloadOf(r *rollout.Render, w rollout.Workload) (rollout.Object, bool) {
	if r == nil {
		return nil, false
	}
	return rollout.Find(r.Objects, func(o rollout.Object) bool { return o.Ref() == w.Ref() })
}

// Stamp returns a copy with gitrollout's annotations and label. The pod template gets none, so commits restart no pod.
func Stamp(v View, o rollout.Object, serial int, hash rollout.Hash, commit, status string) rollout.Object {
	o = o.Copy()
	w, _ := rollout.WorkloadOf(o.Ref())
	spec, staged := v.Source.Spec(w)
	k := kindFor(w, spec)
	if k, is := k.(roomy); is && staged {
		k.room(o, v.Observed.Workloads[w])
	}
	if k, owns := k.(interface{ Own(o rollout.Object) }); owns {
		k.Own(o)
	}
	o.Set(string(hash), "metadata", "annotations", rollout.AnnotationHash)
	delete(o.Map("metadata", "annotations"), rollout.AnnotationBreakGlass) // users request aborts only in the cluster
	o.Set(fmt.Sprint(serial), "metadata", "labels", rollout.LabelSerial)
	if commit != "" {
		o.Set(commit, "metadata", "annotations", rollout.AnnotationCommit)
	}
	if status != "" {
		o.Set(status, "metadata", "annotations", rollout.AnnotationStatus)
	}
	return o
}

// roomy is a kind with maxSurge and maxUnavailable. If the workload has a Rollout document, room sets omitted fields to
// defaults. Without defaults, manual values could decide how many pods a promotion replaces at once.
type roomy interface {
	room(o rollout.Object, live rollout.ObservedWorkload)
}

// onNodes sets default limits for at most one pod per node, unless Git sets maxSurge or Kruise's type Surging. In these
// cases, a node may have two pods, and maxUnavailable must be 0.
func onNodes(o rollout.Object, at string, unavailable any) {
	if rollout.In(o, at+".maxSurge") == nil && rollout.In(o, at+".rollingUpdateType") != "Surging" {
		orElse(o, at+".maxSurge", int64(0))
		orElse(o, at+".maxUnavailable", unavailable)
	}
}

func orElse(o rollout.Object, field string, value any) {
	if rollout.In(o, field) == nil {
		o.Set(value, strings.Split(field, ".")...)
	}
}

// Asked returns a workload's replicas in Git; nil with an autoscaler.
func Asked(s rollout.State, spec rollout.Spec) *int {
	if r, is := rollout.Find(s.Replicas, func(r rollout.Replicas) bool { return r.Workload == spec.Workload }); is {
		return r.Count
	}
	return spec.Replicas
}

// growth returns the largest number of replicas that starts no new pod. Scaling a Deployment gives each ReplicaSet its
// rounded share. With n old and c new pods, no new pod starts while n+c grows by a factor below 1+1/(2c). So n grows in
// several passes:
//
//	n=4, c=2:  5, 6, 7, 9, 11, 14 …
func growth(m Staged) int {
	n, c := m.Live.Replicas, m.Fresh.Desired
	if !m.Live.Synced || m.Stable.Desired < n || c >= n {
		return n
	}
	return n + (n+c-1)/(2*c)
}

// countInTurn keeps the old number of replicas while both versions together have too many pods for the new number. If
// one write changes template and replicas, the controller removes surplus pods of all versions in proportion
// (k8s.io/kubernetes pkg/controller/deployment, sync.go). If the template changes first, only the new version's pods
// are surplus.
func countInTurn(s rollout.State, v View, spec rollout.Spec, o rollout.Object) rollout.Object {
	n, live := Asked(s, spec), v.Observed.Workloads[spec.Workload]
	fresh, _ := live.Find(v.Source.Templates[spec.Workload])
	serves := s.Draining != nil && fresh.Ready() >= live.Replicas // all old pods stop soon
	if n == nil || *n == live.Replicas || s.Stable == nil || IsPromoting(s) && !serves {
		return o
	}
	pods, versions := 0, 0
	for _, r := range live.Revisions {
		pods += r.Desired
		versions += min(r.Desired, 1)
	}
	grows := s.Phase == rollout.Aborting && *n > live.Replicas // more replicas would also start new pods
	if versions < 2 || !grows && pods <= *n+spec.MaxSurge.RoundUp(*n) {
		return o
	}
	o = o.Copy()
	setReplicas(o, int64(live.Replicas))
	return o
}
