package strategies

import (
	"cmp"
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// kind is how pods of one kind of workload are moved. A kind is one file here, one line of this table and of
// rollout.Kinds, and one file where the cluster is observed; or, where its own controller moves pods by a partition, a
// rollout.Partitioned and nothing else.
type kind interface {
	// fence is how far the pods of a workload may go now, on their way to what its
	// stage comes to rest at. It is false while none may.
	fence(m moving, want counts, v View) (fence, bool)

	// hold writes a fence into an object of the new version.
	hold(o rollout.Object, f fence)

	// share is what a kind can hold of counts that take the place of n stable pods. All says that every pod is asked for.
	share(c counts, n int, all bool) counts

	// reached is what a stage is done with that wants so many pods, given what the controller does not take back.
	reached(m moving, want counts) counts
}

// evictor is a kind whose pods somebody has to delete at times.
type evictor interface {
	// evict returns the pods of a workload of the release that are to be deleted now, whose controller has
	// seen all that was written.
	evict(in Input, w rollout.Workload, live rollout.ObservedWorkload) []Eviction
}

var kinds = map[string]kind{"Deployment": deployment{}, "StatefulSet": statefulSet{}, "DaemonSet": daemonSet{}}

// Eviction is a pod that is to be deleted, if it is still the same one.
type Eviction struct {
	Namespace string
	Pod       rollout.Pod
}

// Evictions are the pods that are to be deleted now.
func Evictions(in Input) (all []Eviction) {
	s := in.State
	if s.Release == nil {
		return nil
	}
	workloads := slices.Collect(maps.Keys(s.Release.Templates))
	if s.Phase == rollout.Aborting && in.Source != nil { // a way back has to do with all that are staged now
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

// kindFor is how the pods of a workload are moved, nil if no spec says it and its kind is not in the table.
func kindFor(w rollout.Workload, spec rollout.Spec) kind {
	if spec.Partition != nil {
		return partitioned{Partitioned: *spec.Partition}
	}
	return kinds[cmp.Or(w.Kind, rollout.WorkloadKinds[0].Kind)]
}

// kind is how the pods of the workload are moved.
func (m moving) kind() kind { return kindFor(m.Workload, m.spec) }

// inTurn is what kinds have in common whose pods are replaced in place.
type inTurn struct{}

// share is counts with one stable pod for as long as not all pods are asked for: the only one moves with the promotion.
func (inTurn) share(c counts, n int, all bool) counts {
	if all || c.canary < n {
		return c
	}
	return counts{canary: max(0, n-1), stable: min(n, 1)}
}

// reached accepts more new pods than were asked for, by a scale-up, a node that has joined or an earlier step: the
// controller takes none back.
func (inTurn) reached(m moving, want counts) counts {
	if want.canary == 0 || m.fresh.Desired <= want.canary || m.isTakenForAll() {
		return want
	}
	return counts{canary: m.fresh.Desired, stable: m.n - m.fresh.Desired}
}

// fence is s pods more and m old pods less than the n that a workload has at rest.
type fence struct {
	s, m, n int
	back    bool // old pods are those of the new version, and pods of the stable one are started
	still   bool // nothing moves
	asIs    bool // nothing is written until the controller has seen what was written last
}

// fenceOf returns the fence for the stage that a workload is at. It is false while there is nothing to hold: no canary
// pod is asked for, or none may start yet because the stable pods are too few.
func fenceOf(m moving, v View) (fence, bool) {
	want := m.resting(v)
	known := m.stable.Hash != ""
	switch {
	case want.canary == 0 || !known && m.fresh.Pods == 0:
		// Until stable's ReplicaSet carries its hash, nothing says how many old pods there are, nor what to pin Services to.
		return fence{}, false
	case want.stable > 0 && m.stable.Desired == 0 && m.fresh.Ready() == 0:
		// The workload comes back from no pods at all: under the hold all new ones would be the canary's.
		return fence{}, false
	case m.hasStrangers(want) && !m.hasMoved(m.Progress):
		// Under the hold the pods of a third ReplicaSet, of an image that was set by
		// hand, would stay for ever, and older ones go in their place.
		return fence{}, false
	default:
		return m.kind().fence(m, want, v)
	}
}

// hasStrangers reports whether a workload has pods of neither the stable nor the new version. Who edits a template by
// hand makes a ReplicaSet that says it is of one of them: with two of the new version, and neither the Deployment's,
// nobody knows whose pods they are. Of a StatefulSet only pods below the partition matter: its controller replaces the
// others, and a revision that was made by hand keeps the hash that it was made with. Of a DaemonSet no pod was replaced
// for it: at a step only gitrollout does that.
func (m moving) hasStrangers(want counts) bool {
	isBelow := func(p rollout.Pod) bool { return ordinal(p) < m.live.First+m.n-want.canary }
	return slices.ContainsFunc(m.live.Revisions, func(r rollout.Revision) bool {
		isTwin := func(o rollout.Revision) bool { return o.Hash == r.Hash && o.Pin != r.Pin }
		switch {
		case r.Desired == 0 || r.Pin == m.stable.Pin:
			return false
		case isOrdered(m.spec):
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

// resting is what the stage comes to rest at, and the pods beside it that proxies may still send requests to. Old pods
// that went to make room for those do not come back either.
func (m moving) resting(v View) counts {
	want := m.want()
	if m.n == 0 || !m.stillRouted(v) {
		return want
	}
	kept := m.fresh.Desired
	if m.isSettled(v) && m.isRoutedAsPlanned() {
		kept = min(kept, m.planned().canary)
	}
	if m.sharesPods() {
		kept = min(kept, 1) // for those that match: all others find any pod
	}
	if kept <= want.canary {
		return want
	}
	want.canary = kept
	if m.spec.Scaling == rollout.InPlace || m.isDynamic() {
		want.stable = min(want.stable, max(m.stable.Desired, m.n-m.fresh.Desired))
	}
	return want
}
