package workloads

import (
	"cmp"
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// kind moves the pods of one kind of workload. A new kind needs a file here, a file for its observation, and entries in
// Kinds and rollout.WorkloadKinds. A kind with a partition needs only a rollout.Partitioned.
type kind interface {
	// Limits returns the next limits towards want, or false (see LimitsOf).
	Limits(m Staged, want plan.Counts, v View) (Limits, bool)

	Hold(o rollout.Object, f Limits)

	// Reached returns the counts at a stage's end, including surplus new pods that the controller keeps.
	Reached(m Staged, want plan.Counts) plan.Counts
}

type evictor interface {
	// evict returns the pods to delete now. Evictions calls it once the controller has seen the newest object.
	evict(in Evicting, w rollout.Workload, live rollout.ObservedWorkload) []Eviction
}

// turner is a kind whose object changes while a rollback starts.
type turner interface {
	// turn returns nil for no change.
	turn(m Staged, o rollout.Object) rollout.Object
}

// Kinds has an implementation for each kind without a rollout.Partitioned.
var Kinds = map[string]kind{"Deployment": deployment{}, "StatefulSet": statefulSet{}, "DaemonSet": daemonSet{}}

// Eviction is a pod to delete. A newer pod with the same name stays.
type Eviction struct {
	Namespace string
	Pod       rollout.Pod
}

// Evicting is the input of Evictions. A release must be in flight.
type Evicting struct {
	View
	State   rollout.State
	Release *rollout.Render // the render of the release; nil if unreadable
}

// Evictions returns the pods to delete now.
func Evictions(in Evicting) (all []Eviction) {
	s := in.State
	workloads := slices.Collect(maps.Keys(s.Release.Templates))
	if s.Phase == rollout.Aborting && in.Source != nil { // a rollback may also change workloads outside the release
		staged := func(s rollout.Spec) rollout.Workload { return s.Workload }
		workloads = append(workloads, rollout.Mapped(in.Source.Specs, staged)...)
	}
	slices.SortFunc(workloads, rollout.Workload.Compare)
	for _, w := range slices.Compact(workloads) {
		spec, _ := in.Source.Spec(w)
		e, evicts := kindFor(w, spec).(evictor)
		if live := in.Observed.Workloads[w]; evicts && live.Synced {
			all = append(all, e.evict(in, w, live)...)
		}
	}
	return all
}

func kindFor(w rollout.Workload, spec rollout.Spec) kind {
	if spec.Partition != nil {
		return partitioned{Partitioned: *spec.Partition}
	}
	return Kinds[cmp.Or(w.Kind, rollout.WorkloadKinds[0].Kind)]
}

// Kind returns the workload's kind.
func (m Staged) Kind() kind { return kindFor(m.Workload, m.Spec) }

type inTurn struct{}

func (inTurn) Reached(m Staged, want plan.Counts) plan.Counts {
	if want.Canary == 0 || m.Fresh.Desired <= want.Canary || m.IsTakenForAll() {
		return want
	}
	return plan.Counts{Canary: m.Fresh.Desired, Stable: m.N - m.Fresh.Desired}
}

// Limits holds the surge and unavailable pods for a number of replicas.
type Limits struct {
	Surge, Unavailable, Replicas int
	Back                         bool // the step removes new pods and starts stable pods
	still                        bool // no pod starts or stops
	asIs                         bool // the object stays unchanged until the controller has seen the last write
}

// LimitsOf returns a stage's limits, or false to apply the stable template without limits.
func LimitsOf(m Staged, v View) (Limits, bool) {
	want := m.resting(v)
	known := m.Stable.Hash != ""
	switch {
	case want.Canary == 0 || !known && m.Fresh.Pods == 0:
		// Without the stable ReplicaSet's hash annotation, the number of old pods and the Services' selector are
		// unknown.
		return Limits{}, false
	case m.leaves && known && m.Live.Hash == m.Stable.Hash:
		return Limits{asIs: true}, true // new pods already stop, and the new template could start new pods
	case want.Stable > 0 && m.Stable.Desired == 0 && m.Fresh.Ready() == 0:
		// Without stable pods, the limits would start only new pods.
		return Limits{}, false
	case m.HasStrangers(want) && !m.HasMoved(m.Progress):
		// Pods of a third ReplicaSet, from an image set by hand, would stay forever.
		return Limits{}, false
	}
	return m.Kind().Limits(m, want, v)
}

// HasStrangers reports whether a workload has pods of neither version. A manual edit may create a second ReplicaSet
// with the new version's hash. If the older ReplicaSet has the higher revision number and the newer ReplicaSet has no
// pods, the older pods are no strangers. For ordered kinds, only pods below the partition can be strangers.
func (m Staged) HasStrangers(want plan.Counts) bool {
	isBelow := func(p rollout.Pod) bool { return ordinal(p) < m.Live.First+m.N-want.Canary }
	return slices.ContainsFunc(m.Live.Revisions, func(r rollout.Revision) bool {
		isTwin := func(o rollout.Revision) bool {
			isOver := r.Created.Before(o.Created) && r.Number > o.Number && o.Desired+o.Pods == 0
			return o.Hash == r.Hash && o.Pin != r.Pin && !isOver
		}
		switch {
		case r.Desired == 0 || r.Pin == m.Stable.Pin:
			return false
		case isOrdered(m.Spec) && !m.Live.Unordered:
			return r.Pin != m.Fresh.Pin && slices.ContainsFunc(r.Members, isBelow)
		case m.Kind() == (daemonSet{}): // at a step, only gitrollout replaces a DaemonSet's pods
			return r.Hash != m.Fresh.Hash
		case r.Pin == m.Fresh.Pin:
			return !r.Current && slices.ContainsFunc(m.Live.Revisions, isTwin)
		default:
			return true
		}
	})
}

// resting returns the counts at the stage's end, plus new pods that may still get requests.
func (m Staged) resting(v View) plan.Counts {
	want := m.Want()
	if m.N == 0 || !m.StillRouted(v) {
		return want
	}
	kept := m.Fresh.Desired
	if m.isSettled(v) {
		kept = min(kept, m.borne())
	}
	if m.SharesPods() {
		kept = min(kept, 1) // only matched requests need a new pod
	}
	if kept <= want.Canary {
		return want
	}
	want.Canary = kept
	if m.Spec.Scaling == rollout.InPlace || m.IsDynamic() {
		want.Stable = min(want.Stable, max(m.Stable.Desired, m.N-m.Fresh.Desired))
	}
	return want
}
