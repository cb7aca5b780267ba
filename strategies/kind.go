package strategies

import (
	"cmp"
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// kind moves the pods of one kind of workload: one file here, one line in this table and in rollout.Kinds, and one
// file for observation. A kind whose controller has a partition is only a rollout.Partitioned.
type kind interface {
	// limits returns the next move towards the pods at the end of the stage. It is false while no pod may move.
	limits(m workload, want plan.Counts, v View) (limits, bool)

	// hold writes limits into an object of the new version.
	hold(o rollout.Object, f limits)

	// reached returns the counts at which a stage is done, given the pods that the controller does not take back.
	reached(m workload, want plan.Counts) plan.Counts
}

// evictor is a kind with pods that gitrollout has to delete at times.
type evictor interface {
	// evict returns the pods of a workload to delete now. The workload's controller has seen the newest object.
	evict(in Input, w rollout.Workload, live rollout.ObservedWorkload) []Eviction
}

// turner is a kind whose controller comes to rest before a rollback moves its pods.
type turner interface {
	// turn returns the object for a rollback, nil to leave the one in the cluster as it is.
	turn(m workload, o rollout.Object) rollout.Object
}

var kinds = map[string]kind{"Deployment": deployment{}, "StatefulSet": statefulSet{}, "DaemonSet": daemonSet{}}

// Eviction is a pod to delete, if it is still the same one.
type Eviction struct {
	Namespace string
	Pod       rollout.Pod
}

// Evictions returns the pods to delete now.
func Evictions(in Input) (all []Eviction) {
	s := in.State
	if s.Release == nil {
		return nil
	}
	workloads := slices.Collect(maps.Keys(s.Release.Templates))
	if s.Phase == rollout.Aborting && in.Source != nil { // a rollback concerns all workloads that are staged now
		for _, spec := range in.Source.Specs {
			workloads = append(workloads, spec.Workload)
		}
	}
	slices.SortFunc(workloads, rollout.Workload.Compare)
	for _, w := range slices.Compact(workloads) {
		spec, _ := specOf(in, w)
		e, evicts := kindFor(w, spec).(evictor)
		if live := in.Observed.Workloads[w]; evicts && live.Synced {
			all = append(all, e.evict(in, w, live)...)
		}
	}
	return all
}

// kindFor returns the kind of a workload, nil without a Partition in its spec or an entry in the table.
func kindFor(w rollout.Workload, spec rollout.Spec) kind {
	if spec.Partition != nil {
		return partitioned{Partitioned: *spec.Partition}
	}
	return kinds[cmp.Or(w.Kind, rollout.WorkloadKinds[0].Kind)]
}

func (m workload) kind() kind { return kindFor(m.Workload, m.Spec) }

// inTurn has the common methods of kinds whose pods are replaced in place.
type inTurn struct{}

// reached accepts more new pods than asked, as after a scale-up or on a new node: the controller takes none back.
func (inTurn) reached(m workload, want plan.Counts) plan.Counts {
	if want.Canary == 0 || m.fresh.Desired <= want.Canary || m.isTakenForAll() {
		return want
	}
	return plan.Counts{Canary: m.fresh.Desired, Stable: m.n - m.fresh.Desired}
}

// limits is a limit of s surge pods and m unavailable pods for n replicas.
type limits struct {
	surge, unavailable, replicas int
	back                         bool // the roles are swapped: pods of the new version go and stable pods start
	still                        bool // no pod moves
	asIs                         bool // nothing is written until the controller has seen the last write
}

// limitsOf returns the limits for a stage, false while no canary pod is asked for or stable pods are too few.
func limitsOf(m workload, v View) (limits, bool) {
	want := m.resting(v)
	known := m.stable.Hash != ""
	switch {
	case want.Canary == 0 || !known && m.fresh.Pods == 0:
		// Until stable's ReplicaSet has its hash, the number of old pods and the Services' selector are unknown.
		return limits{}, false
	case want.Stable > 0 && m.stable.Desired == 0 && m.fresh.Ready() == 0:
		// The workload scales up from 0: while held, all its pods would be of the canary.
		return limits{}, false
	case m.hasStrangers(want) && !m.HasMoved(m.Progress):
		// Pods of a third ReplicaSet, of an image set by hand, would stay for ever in place of stable ones.
		return limits{}, false
	default:
		return m.kind().limits(m, want, v)
	}
}

// hasStrangers reports whether a workload has pods of neither version. A template edited by hand makes a ReplicaSet
// with a known version's hash; of two with the new hash, neither the Deployment's, neither is trusted. Of a
// StatefulSet only pods below the partition matter. Of a DaemonSet only gitrollout replaces pods at a step.
func (m workload) hasStrangers(want plan.Counts) bool {
	isBelow := func(p rollout.Pod) bool { return ordinal(p) < m.live.First+m.n-want.Canary }
	return slices.ContainsFunc(m.live.Revisions, func(r rollout.Revision) bool {
		isTwin := func(o rollout.Revision) bool { return o.Hash == r.Hash && o.Pin != r.Pin }
		switch {
		case r.Desired == 0 || r.Pin == m.stable.Pin:
			return false
		case isOrdered(m.Spec):
			return r.Pin != m.fresh.Pin && slices.ContainsFunc(r.Members, isBelow)
		case m.kind() == (daemonSet{}):
			return r.Hash != m.fresh.Hash
		case r.Pin == m.fresh.Pin:
			return !r.Current && slices.ContainsFunc(m.live.Revisions, isTwin)
		default:
			return true
		}
	})
}

// resting returns the pods at the stage's end and those that proxies may still reach. Replaced old pods stay gone.
func (m workload) resting(v View) plan.Counts {
	want := m.want()
	if m.n == 0 || !m.stillRouted(v) {
		return want
	}
	kept := m.fresh.Desired
	if m.isSettled(v) && m.isRoutedAsPlanned() {
		kept = min(kept, m.planned().Canary)
	}
	if m.SharesPods() {
		kept = min(kept, 1) // for matched requests: all others reach any pod
	}
	if kept <= want.Canary {
		return want
	}
	want.Canary = kept
	if m.Spec.Scaling == rollout.InPlace || m.IsDynamic() {
		want.Stable = min(want.Stable, max(m.stable.Desired, m.n-m.fresh.Desired))
	}
	return want
}
