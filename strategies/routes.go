package strategies

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// The order in which requests follow pods is the same everywhere:
//
//	advance  pods ready → known to the proxies → recorded → routed → known → old pods go
//	retreat  routed → known to the proxies → new pods go
//
// What was routed last is recorded in Progress.Routed, so that a restart neither moves a request nor starts a wait
// again. What the routers are asked for is less than that while the new version has fewer ready pods than its step asks
// for: requests follow what is ready at once, in both directions.

// overlaid lays each workload's route over the objects.
func overlaid(s rollout.State, v View, objects []rollout.Object) ([]rollout.Object, error) {
	var set *traffic.Objects
	for _, spec := range v.Source.Specs {
		p := v.plans.of(spec)
		if p.routing == nil {
			continue
		}
		if set == nil {
			set = traffic.NewObjects(objects)
		}
		if err := traffic.Overlay(set, p.routing.Routers, routeOf(s, p, v)); err != nil {
			return nil, fmt.Errorf("route requests of %s: %w", spec.Workload, err)
		}
	}
	if set == nil {
		return objects, nil
	}
	return set.List(), nil
}

// Watched are the objects of a render whose status says whether routers have taken them.
func Watched(r *rollout.Render) []rollout.Ref {
	var refs []rollout.Ref
	for _, spec := range r.Specs {
		if t := compile(spec).routing; t != nil {
			refs = append(refs, traffic.Watched(t.Routers, spec.Workload.Namespace)...)
		}
	}
	return refs
}

// Ahead are what releases of a render will apply beside the objects that are applied now, so that the API server can be
// asked about it before one begins: the staged workloads, where those still have stable's templates, the routers'
// objects in all forms that they will have, each once, without what the render has already, and those of experiments.
func Ahead(r *rollout.Render, now []rollout.Object) ([]rollout.Object, error) {
	known := plans{}
	all := experimentsAhead(r, known)
	for _, spec := range r.Specs {
		own, found := workloadOf(r, spec.Workload)
		isAsked := func(o rollout.Object) bool {
			return o.Ref() == spec.Workload.Ref() && reflect.DeepEqual(o.Map("spec")["template"], own.Map("spec")["template"])
		}
		if found && !slices.ContainsFunc(now, isAsked) {
			all = append(all, own)
		}
	}
	for _, spec := range r.Specs {
		p := known.of(spec)
		if p.routing == nil {
			continue
		}
		for _, route := range traffic.Stages(spec) {
			laid := traffic.NewObjects(r.Objects)
			if err := traffic.Overlay(laid, p.routing.Routers, route); err != nil {
				return nil, fmt.Errorf("route requests of %s: %w", spec.Workload, err)
			}
			for _, object := range laid.List() {
				is := func(o rollout.Object) bool { return o.Ref() == object.Ref() && reflect.DeepEqual(o, object) }
				if !slices.ContainsFunc(r.Objects, is) && !slices.ContainsFunc(all, is) {
					all = append(all, object)
				}
			}
		}
	}
	return all, nil
}

// routeOf is what a state asks the routers of one workload for.
//
//	                weight                       matched users
//	at rest         0                            none
//	between steps   what was routed last, at     those of that step, while the
//	                most what the step asks      new version has a ready pod
//	                for; less while pods are
//	                missing
//	Promoting       0: the stable Service is     none
//	                switched; all with pingPong
//	Aborting        0                            none
func routeOf(s rollout.State, p *plan, v View) traffic.Route {
	t, spec := p.routing, p.spec
	stable, canary := p.services(s)
	r := traffic.Route{
		Name: spec.Name, Namespace: spec.Workload.Namespace,
		Stable: stable, Canary: canary, Max: t.MaxWeight, Sticky: t.Sticky,
	}
	pr, moves := s.ProgressOf(spec.Workload)
	if !moves || s.Stable == nil || s.Release == nil {
		return r
	}
	m := movingOf(s, p, pr, v.Observed)
	r.Active = true
	main, side := pinned(m, s, v)
	r.StablePods, r.CanaryPods, r.PodLabel = main.Value, side.Value, cmp.Or(main, side).Label
	switch {
	case s.Phase == rollout.Aborting:
	case isPromoting(s):
		if p.swaps() {
			r.Weight = r.Max
		}
	default:
		ready := knownOf(m.fresh, t, v.Now)
		if m.Routed == nil || ready == 0 {
			break
		}
		r.Weight = within(min(m.Routed.Weight, m.Weight), r.Max, m.planned(), ready, knownOf(m.stable, t, v.Now))
		r.Managed = m.routesAt(m.Routed.Step)
	}
	return r
}

// swaps reports whether a release ends with both Services in each other's role.
func (p *plan) swaps() bool { return p.pingPong && len(p.stages) > 0 }

// Routing identifies what a state asks of routers and of the Services that they
// name. The wait for proxies to learn of it begins when it is recorded and when
// the cluster holds it, whichever is later: a push may take longer than proxies do.
func Routing(s rollout.State, source *rollout.Render) string {
	text := ""
	s = reopened(s)
	for _, m := range moversOf(s, source.Specs, rollout.Observed{}, nil) {
		if m.routing != nil && m.Routed != nil {
			r := m.Routed
			text += fmt.Sprintf("%s %d %d %s %t;", m.Workload, r.Step, r.Weight, r.At, m.hasSwitched(m.Step))
		}
	}
	if text == "" {
		return ""
	}
	if s.Retreat != nil {
		text += "back " + s.Retreat.Routed.String()
	}
	return text
}

// settledAt is when every proxy has learnt of what was recorded at a time.
func settledAt(recorded, applied time.Time, settle time.Duration) time.Time {
	return rollout.Later(recorded, applied).Add(settle)
}

// knownOf is how many pods of a ReplicaSet are ready, have been for long enough
// that every proxy knows of them, and are to stay.
func knownOf(r rollout.Revision, t *routing, now time.Time) int {
	return min(r.Serving(now, learnt(t)), r.Desired)
}

// learnt is how long after a pod says that it became ready every proxy knows of it. Kubernetes cuts that moment to a
// whole second: ready since 12:00:00 may be ready since 12:00:00.9.
func learnt(t *routing) time.Duration {
	if t.Settle == 0 {
		return 0
	}
	return t.Settle + time.Second
}

// within is the weight that the ready pods can bear: no pod of the new version gets more than its step plans for it,
// relative to what a stable pod gets then. Example: 50 with 5 pods beside 10; one of the 5 is lost: each side has 0.8
// and 1.0 of what the step asks for, so the weight is 40/(40+50) = 44 of 100. When an autoscaler has just asked for
// twice as many on both sides, neither is behind the other, and the weight stays.
func within(weight, full int, want counts, canary, stable int) int {
	if canary == 0 {
		return 0
	}
	if want.canary == 0 || want.stable == 0 {
		return weight
	}
	c, s := min(canary, want.canary)*want.stable, min(stable, want.stable)*want.canary
	if c >= s {
		return weight
	}
	return c * weight * full / (c*weight + s*(full-weight))
}

// planned is what the weight that was routed last is to be borne by: the pods of the step that it was routed at, or
// fewer, where a later one with the same weight asked for fewer.
func (m moving) planned() counts {
	c := m.countsAt(m.Routed.Step, m.n)
	for step := m.Routed.Step + 1; step <= m.Step && !m.needsRouting(); step++ {
		c.canary = min(c.canary, m.countsAt(step, m.n).canary)
	}
	return c
}

// isRoutedAsPlanned reports whether the weight that was routed last is the one of its step. It is not after an edit of
// the list, until the routers have been asked for the new one's: how many pods the old weight needs is not known then.
// Nor where no step is left that would ask them.
func (m moving) isRoutedAsPlanned() bool {
	s, _ := m.at(m.Routed.Step)
	return m.routedWeight(s) == m.Routed.Weight
}

// lessRouted says that the new version gets fewer requests than were routed to it, because pods of it are missing, and
// when that may be over. It is over once its pods have been there for a while: a pod that crashes again and again is
// one transition.
func lessRouted(in Input) (reason string, due time.Time) {
	for _, m := range movers(in) {
		t := m.routing
		if t == nil || m.Routed == nil || in.State.Phase == rollout.Aborting {
			continue
		}
		isMatched := len(m.routesAt(m.Routed.Step)) > 0
		known := learnt(t)
		if in.State.Reason != "" {
			known = max(known, wellFor)
		}
		ready := min(m.fresh.Serving(in.Now, known), m.fresh.Desired)
		want := m.countsAt(m.Routed.Step, m.n)
		bears := within(m.Routed.Weight, m.full(), want, ready, knownOf(m.stable, t, in.Now))
		if bears < m.Routed.Weight || isMatched && ready == 0 {
			reason = fmt.Sprintf("the new version of %s lacks pods, or lacked some within the last minute: it gets "+
				"fewer requests while it does", m.Workload)
			due = rollout.Soonest(due, servesNext(in.Now, known, m.fresh))
		}
	}
	return reason, due
}

// needsRouting reports whether the step asks the routers for something else than was asked for last.
func (m moving) needsRouting() bool {
	s, ok := m.at(m.Step)
	switch {
	case !ok || m.routing == nil:
		return false
	case m.sharesPods() && m.want().canary == 0 && m.fresh.Desired == 0:
		return false // the only pod moves with the promotion: there is none to send requests to
	case m.Routed == nil:
		return m.routedWeight(s) > 0 || len(s.routes) > 0
	default:
		return m.routedWeight(s) != m.Routed.Weight || !reflect.DeepEqual(s.routes, m.routesAt(m.Routed.Step))
	}
}

// stillRouted reports whether proxies may send requests to the new version, so
// that no pod of it may go, whatever the step asks for.
func (m moving) stillRouted(v View) bool {
	if m.Routed == nil || m.routing == nil {
		return false
	}
	return m.Routed.Weight > 0 || len(m.routesAt(m.Routed.Step)) > 0 || !m.isSettled(v)
}

// isSettled reports whether every proxy has learnt of what was routed last.
func (m moving) isSettled(v View) bool {
	return !v.Now.Before(settledAt(m.Routed.At, v.Applied, m.routing.Settle))
}

// needsOf returns what must have a ready endpoint before the new version is given
// requests. Istio's subsets have no Service of their own.
func needsOf(in Input, m moving) []Need {
	_, canary := m.services(in.State)
	if canary == "" {
		return nil
	}
	service := rollout.Ref{Kind: "Service", Namespace: m.Workload.Namespace, Name: canary}
	return []Need{{Service: service, PodHash: m.fresh.Pin.Value}}
}

func (m moving) routedText() string {
	var parts []string
	switch full := m.full(); {
	case m.routedWeight(m.stage()) == 0:
	case full == 100:
		parts = append(parts, fmt.Sprintf("%d%% of the requests", m.Weight))
	default:
		parts = append(parts, fmt.Sprintf("%d/%d of the requests", m.Weight, full))
	}
	for _, r := range m.stage().routes {
		switch {
		case r.Mirror != nil:
			parts = append(parts, "copies of route "+r.Name)
		case r.Name == rollout.MatchRoute:
			parts = append(parts, "matched requests")
		default:
			parts = append(parts, "route "+r.Name)
		}
	}
	what := strings.Join(parts, " and ") + " to the new version"
	if len(parts) == 0 {
		what = "all requests to stable"
	}
	return fmt.Sprintf("routes %s at step %d/%d %s", what, m.Step+1, m.Of, m.Name)
}

// gateRouters keeps a release where it is until every proxy has learnt of its routes, and while a router does not take
// them. A changed list may go on at a step that waits for no pods, with another weight than before.
func gateRouters(in Input, m moving) verdict {
	if !isPodsStage(m) && m.needsRouting() {
		return podsWait{}.verdict(in, m)
	}
	t := m.routing
	if m.Routed == nil || t == nil {
		return verdict{done: true}
	}
	v := traffic.Verify(t.Routers, m.Workload.Namespace, in.Observed.Routes)
	switch due := settledAt(m.Routed.At, in.Applied, t.Settle); {
	case v.Rejected:
		return verdict{text: "the router to take its objects: " + v.Text, broken: v.Text}
	case in.Now.Before(due):
		return verdict{
			paused: in.State.Phase == rollout.Paused, // a new process waits anew, which is no transition
			text:   fmt.Sprintf("proxies to learn of the new routes (%s)", t.Settle), due: due,
		}
	case !v.Taken:
		return verdict{text: "the router: " + v.Text}
	default:
		return verdict{done: true}
	}
}

// drained is how many stable pods may be gone by now: as many as were so far until the step's weight is in force
// everywhere, then as many as the step says, as far as ready pods of the new version are in their place.
func (m moving) drained(v View, want counts) int {
	rest := m.n - want.stable
	gone := min(max(0, m.n-m.stable.Desired), rest)
	routed := !m.needsRouting() && m.Routed != nil && m.isSettled(v)
	if !routed || !traffic.Verify(m.routing.Routers, m.Workload.Namespace, v.Observed.Routes).Taken {
		return gone
	}
	return max(gone, min(rest, servingOf(m.fresh, m.spec, v.Now)+m.spec.MaxUnavailable.RoundDown(m.n)))
}

// settling is how long a retreat keeps the new version's pods for the proxies to
// learn that they get no requests, zero if they got none.
func settling(in Input) time.Duration {
	var longest time.Duration
	for _, m := range movers(in) {
		// A dynamic stable needs the room, and its Service selects all pods until it has come back. So does one that is
		// replaced in place, and no request that is still matched goes to the new version: its Service selects stable's pods.
		if m.Routed != nil && m.routing != nil && !m.isDynamic() && !m.sharesPods() {
			longest = max(longest, m.routing.Settle)
		}
	}
	return longest
}

// swapped lists the workloads whose stable version is behind the pong Service
// once the release in flight is the stable one.
func swapped(in Input) []rollout.Workload {
	pong := slices.Clone(in.State.Pong)
	for _, m := range movers(in) {
		if !m.swaps() {
			continue
		}
		if i := slices.Index(pong, m.Workload); i >= 0 {
			pong = slices.Delete(pong, i, i+1)
		} else {
			pong = append(pong, m.Workload)
		}
	}
	slices.SortFunc(pong, func(a, b rollout.Workload) int { return a.Ref().Compare(b.Ref()) })
	if len(pong) == 0 {
		return nil
	}
	return pong
}
