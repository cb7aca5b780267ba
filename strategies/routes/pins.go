package routes

import (
	"cmp"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

type selector int

const (
	allPods selector = iota // all pods, as in the user's selector
	stablePin
	freshPin
	newestPin // the new version or, without its ReplicaSet, the stable version
)

type trafficPhase int

const (
	atSteps   trafficPhase = iota
	shared                 // at a step where unmatched requests go to all pods
	switched               // after a Service switch moved all users
	promoting              // after the last step, if no step moved all users
	leaving                // in a rollback that keeps new pods
	left                   // in a rollback that removes new pods
)

type readiness int

const (
	none readiness = iota
	some
	enough
)

var pinRows = map[plan.Pins][]pinRow{
	plan.CanaryPins: canaryRows, plan.BlueGreenPins: blueGreenRows,
	plan.RoutedPins: routedRows, plan.SharedPins: sharedRows,
}

// pinRow sets which pods the users' Service (main) and the new version's Service (side) select. The first matching row
// applies.
type pinRow struct {
	at            []trafficPhase
	fresh, stable []readiness // nil: any readiness
	main, side    selector
}

func firstFit(rows []pinRow, at trafficPhase, fresh, stable readiness) int {
	of := func(list []readiness, s readiness) bool { return list == nil || slices.Contains(list, s) }
	return slices.IndexFunc(rows, func(r pinRow) bool {
		return slices.Contains(r.at, at) && of(r.fresh, fresh) && of(r.stable, stable)
	})
}

// The users' Service selects a single version only while this version has enough ready pods. Otherwise it selects all
// pods, so that requests reach a ready pod.
var canaryRows = []pinRow{
	{at: []trafficPhase{atSteps}, stable: []readiness{enough}, main: stablePin, side: newestPin},
	{at: []trafficPhase{atSteps}, main: allPods, side: freshPin},
	{at: []trafficPhase{switched}, fresh: []readiness{some, enough}, main: freshPin, side: freshPin},
	{at: []trafficPhase{switched, promoting}, main: allPods, side: freshPin},
	{at: []trafficPhase{leaving, left}, stable: []readiness{enough}, main: stablePin, side: stablePin},
	{at: []trafficPhase{leaving, left}, main: allPods, side: stablePin},
}

// The preview Service selects the new version until the new pods stop.
var blueGreenRows = slices.Concat([]pinRow{
	{at: []trafficPhase{atSteps}, main: stablePin, side: newestPin},
	{at: []trafficPhase{leaving}, stable: []readiness{enough}, main: stablePin, side: freshPin},
	{at: []trafficPhase{leaving}, main: allPods, side: freshPin},
}, canaryRows)

// Routers may use both Services at any time, and some drop a route to a Service without endpoints. So the new version's
// Service selects stable pods until the new version gets requests.
var routedRows = slices.Concat([]pinRow{
	{at: []trafficPhase{atSteps}, fresh: []readiness{none, some}, stable: []readiness{none}, main: allPods, side: allPods},
	{at: []trafficPhase{atSteps}, fresh: []readiness{none, some}, main: stablePin, side: stablePin},
	{at: []trafficPhase{switched, promoting}, fresh: []readiness{none}, main: allPods, side: allPods},
	{at: []trafficPhase{leaving, left}, stable: []readiness{none}, main: allPods, side: allPods},
}, canaryRows)

var sharedRows = slices.Concat([]pinRow{
	{
		at: []trafficPhase{shared}, fresh: []readiness{none, some}, stable: []readiness{none, some},
		main: allPods, side: allPods,
	},
	{at: []trafficPhase{shared}, fresh: []readiness{none, some}, main: allPods, side: stablePin},
	{at: []trafficPhase{shared}, main: allPods, side: freshPin},
}, routedRows)

// Pins returns the label that each Service selects, for the workloads of a release. A zero label means all pods, as for
// a version without a ReplicaSet.
func Pins(s rollout.State, v workloads.View) map[rollout.Ref]rollout.Pin {
	pins := map[rollout.Ref]rollout.Pin{}
	if s.Stable == nil {
		return pins
	}
	for _, m := range v.Workloads(s) {
		main, side := Pinned(m, s, v)
		mainName, sideName := m.Services(s)
		service := func(name string) rollout.Ref {
			return rollout.Ref{Kind: "Service", Namespace: m.Workload.Namespace, Name: name}
		}
		pins[service(sideName)] = side
		for _, name := range m.Left {
			if mainName != "" && reaches(v.Source, service(name), m.Workload) {
				pins[service(name)] = main
			} // otherwise weights are shares of pods, so the Service selects all pods
		}
		pins[service(mainName)] = main
	}
	return pins
}

func reaches(r *rollout.Render, service rollout.Ref, w rollout.Workload) bool {
	object, _ := rollout.Find(r.Objects, func(o rollout.Object) bool { return o.Ref() == service })
	deployment, found := workloads.WorkloadOf(r, w)
	labels, selector := deployment.Map("spec", "template", "metadata", "labels"), object.Map("spec", "selector")
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return found && len(selector) > 0
}

type pinning struct {
	workloads.Staged
	state rollout.State
	view  workloads.View
}

// Pinned returns the labels that a workload's two Services select.
func Pinned(of workloads.Staged, s rollout.State, v workloads.View) (main, side rollout.Pin) {
	m := pinning{of, s, v}
	// A manual image change creates a second ReplicaSet of the new version. If the first ReplicaSet has no ready pods,
	// Services select pods of the second.
	isOwn := func(r rollout.Revision) bool { return r.Hash == m.Fresh.Hash && r.Ready() > 0 }
	if i := slices.IndexFunc(m.Live.Revisions, isOwn); i >= 0 && m.Fresh.Hash != "" && m.Fresh.Ready() == 0 {
		m.Fresh = m.Live.Revisions[i]
	}
	at := m.phase()
	if (at == atSteps || at == shared) && m.HasStrangers(m.Want()) && m.Fresh.Ready() == 0 {
		return main, m.Stable.Pin // users reach pods of a third version until stable pods are ready
	}
	rows := pinRows[m.Pins]
	i := firstFit(rows, at, m.freshReadiness(at), m.stableReadiness(at))
	if i < 0 { // TestPinRows checks that this cannot happen
		return main, side
	}
	stable, fresh := m.Stable.Pin, m.Fresh.Pin
	hashes := map[selector]rollout.Pin{stablePin: stable, freshPin: fresh, newestPin: cmp.Or(fresh, stable)}
	return hashes[rows[i].main], hashes[rows[i].side]
}

func (m pinning) phase() trafficPhase {
	switch s := m.state; {
	case s.Phase == rollout.Aborting && workloads.IsHeld(s):
		return leaving
	case s.Phase == rollout.Aborting:
		return left
	case m.HasSwitched(m.Step), s.Draining != nil && !m.Swaps(): // users may have removed the switch from the steps
		return switched
	case workloads.IsPromoting(s):
		return promoting
	case m.isShared():
		return shared
	}
	return atSteps
}

func (m pinning) isShared() bool { return m.SharesPods() && m.Stage().Weight > 0 }

// freshReadiness requires only one ready pod at a step that sends requests to new pods.
func (m pinning) freshReadiness(at trafficPhase) readiness {
	going := m.Live.Hash == m.Stable.Hash && !m.Live.Synced // the controller has yet to see the stable template
	idle := m.Fresh.Desired == 0 || m.IsTakenForAll() || going || m.Want().Canary == 0 && !m.StillRouted(m.view)
	switch {
	case m.Fresh.Ready() == 0, at == promoting && m.Live.Hash == m.Stable.Hash: // the object has the stable template
		return none
	case (at == atSteps || at == shared) && idle:
		return some
	}
	return enough
}

// stableReadiness ignores pods that are about to be removed. At a step, one ready pod is enough. In a rollback,
// neededStable returns the number.
func (m pinning) stableReadiness(at trafficPhase) readiness {
	ready, want := min(m.Stable.Ready(), m.Stable.Desired), m.Want()
	stays := want.Stable
	if m.IsDynamic() { // stable pods stay until no proxy sends them requests
		stays = max(stays, m.N-m.Drained(m.view, want))
	}
	// The controller has not seen the last write, and may still stop stable pods for an earlier, larger step.
	mayGo := !m.Live.Synced && (m.Stable.Desired < want.Stable && m.Fresh.Desired > want.Canary ||
		m.Live.Replicas+m.Live.Surge <= m.Fresh.Desired)
	back := at == leaving || at == left
	switch {
	case back && (ready == 0 || m.draining()):
		return none
	case back && ready < m.neededStable():
		return some
	case back:
		return enough
	case m.Stable.Ready() == 0:
		return none
	case ready == 0 || stays == 0 || mayGo:
		return some
	}
	return enough
}

// draining reports whether the controller may still remove the last stable pods. This is possible after a stage without
// stable pods, until the controller has seen the stable template.
func (m pinning) draining() bool {
	if m.isUntouched() {
		return false
	}
	promoted := !slices.ContainsFunc(m.state.Progress, func(o rollout.Progress) bool { return o.Step < o.Of })
	return (promoted || m.Want().Stable == 0) && (m.Live.Hash != m.state.StableHash(m.Workload) || !m.Live.Synced)
}

// isUntouched reports whether the new version had weight 0 at its step, and the stable commit has another plan.
func (m pinning) isUntouched() bool {
	return m.Plan != m.Digest() && m.Step < m.Of && m.Weight == 0 && (m.Live.Synced || m.Live.Hash == m.Stable.Hash)
}

// neededStable returns how many stable pods must be ready before a rollback sends all requests to stable pods. Without
// a shared Service or dynamicStableScale, it returns N if the new version had all requests, else 1.
func (m pinning) neededStable() int {
	switch {
	case m.isUntouched():
		return 1
	case m.isShared(): // the Service selects both versions until at most one stable pod is missing
		return max(1, m.N-1)
	case m.IsDynamic(): // stable has only the pods for its share of traffic
		return max(1, m.N-m.Spec.MaxUnavailable.RoundDown(m.N))
	case m.Step >= len(m.Stages) || m.HasSwitched(m.Step) || m.Want().Stable == 0:
		return max(1, m.N)
	}
	return 1
}
