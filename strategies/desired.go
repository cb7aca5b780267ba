package strategies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// View holds the input of Desired besides the state.
type View struct {
	Applied  time.Time        // as in Input
	Now      time.Time        // for minReadySeconds
	Source   *rollout.Render  // the render at State.Source
	Stable   *rollout.Render  // the render at State.Stable.Commit; only where NeedsStable says so
	Observed rollout.Observed // for the replicas and the ReplicaSets' hashes
	plans    plan.Cache
}

// Desired returns the objects that the cluster should hold: the render with the state laid over it. Between steps
// Deployments are held and Services select their version. An error, which render rules out, is a router's.
func Desired(s rollout.State, v View) ([]rollout.Object, error) {
	v.plans, s = v.plans.OrNew(), reopened(s)
	pins := pinsOf(s, v)
	objects := make([]rollout.Object, 0, len(v.Source.Objects))
	for _, o := range v.Source.Objects {
		ref := o.Ref()
		if hook.Is(o) {
			continue // hooks belong to a release and are not applied
		}
		if w, is := v.Source.Workload(ref); is {
			if o = desiredWorkload(s, v, w, o); o == nil {
				continue
			}
		} else if pin := pins[ref]; pin.Value != "" {
			o = o.Copy()
			o.Set(pin.Value, "spec", "selector", pin.Label)
		}
		objects = append(objects, o)
	}
	objects, err := overlaid(s, v, objects)
	return append(objects, experimentObjects(s, v)...), err
}

// NeedsStable reports whether Desired uses the stable render: a workload has no canary pod yet, or an experiment.
func NeedsStable(s rollout.State, v View) bool {
	s = reopened(s)
	if !isHeld(s) {
		return false
	}
	v.plans = v.plans.OrNew()
	return slices.ContainsFunc(v.workloads(s), func(m workload) bool {
		f, starts := limitsOf(m, v)
		_, tries := experimentAt(s, m)
		return !starts || f.back || tries
	})
}

// isHeld reports whether the state holds the workloads: between steps, and in a rollback until canary pods may go.
func isHeld(s rollout.State) bool {
	switch s.Phase {
	case rollout.Progressing, rollout.Paused, rollout.Stalled:
		return s.Stable != nil && !isPromoting(s)
	case rollout.Aborting:
		return s.Source != s.Rollback.To
	default:
		return false
	}
}

// desiredWorkload returns the object that the state asks for, nil to leave the one in the cluster as it is.
func desiredWorkload(s rollout.State, v View, w rollout.Workload, o rollout.Object) rollout.Object {
	hash := v.Source.Templates[w]
	o = withCount(s, v, w, o)
	p, moves := s.ProgressOf(w)
	spec, staged := v.Source.Spec(w)
	if !moves || !staged || !isHeld(s) {
		o = stamp(v, countInTurn(s, v, spec, o), s.Mark(), hash, commitOf(s, w, hash), "")
		if k, turns := kindFor(w, spec).(turner); turns && moves && staged && s.Phase == rollout.Aborting {
			return k.turn(newWorkload(s, v.plans.Of(spec), p, v.Observed), o)
		}
		return o
	}
	m := newWorkload(s, v.plans.Of(spec), p, v.Observed)
	if n := asked(s, spec); n != nil && *n != m.n {
		o = o.Copy()
		setReplicas(o, int64(m.n))
	}
	f, ok := limitsOf(m, v)
	if !ok {
		return stableWorkload(s, v, w, o, "")
	}
	if f.asIs {
		return nil
	}
	status := fmt.Sprintf("held between the steps of release %s; see: gitrollout get %s", s.Release.Hash, s.App)
	if f.back {
		o = stableWorkload(s, v, w, o, status)
	} else {
		o = stamp(v, o, s.Mark(), hash, s.Release.Commit, status)
	}
	if o != nil {
		kindFor(w, spec).hold(o, f)
	}
	return o
}

// stableWorkload returns the stable commit's object with the newest replicas, which are not staged; nil without one.
func stableWorkload(s rollout.State, v View, w rollout.Workload, o rollout.Object, status string) rollout.Object {
	stable, found := workloadOf(v.Stable, w)
	if !found {
		return nil
	}
	stable = stamp(v, stable, s.Mark(), v.Stable.Templates[w], s.Stable.Commit, status)
	setReplicas(stable, o.Map("spec")["replicas"])
	return stable
}

// withCount returns an object with Git's present replicas.
func withCount(s rollout.State, v View, w rollout.Workload, o rollout.Object) rollout.Object {
	spec, staged := v.Source.Spec(w)
	n := asked(s, spec)
	if !staged || sameCount(n, spec.Replicas) {
		return o
	}
	o = o.Copy()
	if n == nil {
		setReplicas(o, nil)
	} else {
		setReplicas(o, int64(*n))
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

func workloadOf(r *rollout.Render, w rollout.Workload) (rollout.Object, bool) {
	if r == nil {
		return nil, false
	}
	return rollout.Find(r.Objects, func(o rollout.Object) bool { return o.Ref() == w.Ref() })
}

// commitOf returns the commit of a staged template's release, "" for unstaged ones: each push would write the newest.
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

// stamp returns a copy with gitrollout's annotations, on the workload alone: a new commit restarts no pod.
func stamp(v View, o rollout.Object, serial int, hash rollout.Hash, commit, status string) rollout.Object {
	o = o.Copy()
	w, _ := rollout.WorkloadOf(o.Ref())
	spec, staged := v.Source.Spec(w)
	k := kindFor(w, spec)
	if k, is := k.(roomy); is && staged {
		k.room(o, v.Observed.Workloads[w])
	}
	if k, owns := k.(interface{ own(o rollout.Object) }); owns {
		k.own(o)
	}
	o.Set(string(hash), "metadata", "annotations", rollout.AnnotationHash)
	o.Set(fmt.Sprint(serial), "metadata", "labels", rollout.LabelSerial)
	if commit != "" {
		o.Set(commit, "metadata", "annotations", rollout.AnnotationCommit)
	}
	if status != "" {
		o.Set(status, "metadata", "annotations", rollout.AnnotationStatus)
	}
	return o
}

// servingOf returns how many pods of a ReplicaSet serve and are to stay.
func servingOf(r rollout.Revision, spec rollout.Spec, now time.Time) int {
	return min(r.Serving(now, plan.MinReady(spec)), r.Desired)
}

// roomy is a kind whose objects limit missing and extra pods. For a staged workload room writes Git's value or
// Kubernetes' default, so that no manual change decides how many pods a promotion replaces at a time.
type roomy interface {
	room(o rollout.Object, live rollout.ObservedWorkload)
}

// onNodes sets surge and unavailable pods of a kind with a pod on each node. A kind with two at times, as with
// Kruise's Surging, has no unavailable ones.
func onNodes(o rollout.Object, at string, unavailable any) {
	if rollout.In(o, at+".maxSurge") == nil && rollout.In(o, at+".rollingUpdateType") != "Surging" {
		orElse(o, at+".maxSurge", int64(0))
		orElse(o, at+".maxUnavailable", unavailable)
	}
}

// orElse sets a field that an object lacks.
func orElse(o rollout.Object, field string, value any) {
	if rollout.In(o, field) == nil {
		o.Set(value, strings.Split(field, ".")...)
	}
}
