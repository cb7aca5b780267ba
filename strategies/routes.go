package strategies

import (
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
// What was routed last is recorded in Progress.Routed, so that a restart neither
// moves a request nor starts a wait again. What the routers are asked for is
// less than that while the new version has fewer ready pods than its step asks
// for: requests follow what is ready at once, in both directions.

// isRouted reports whether requests, and not only pods, are split.
func isRouted(spec rollout.Spec) bool { return spec.Canary != nil && spec.Canary.Traffic != nil }

// isDynamic reports whether stable shrinks as its share of the traffic does.
func isDynamic(spec rollout.Spec) bool {
	return isRouted(spec) && spec.Canary.DynamicStableScale
}

// overlaid lays each workload's route over the objects.
func overlaid(s rollout.State, v View, objects []rollout.Object) ([]rollout.Object, error) {
	var set *traffic.Objects
	for _, spec := range v.Source.Specs {
		if !isRouted(spec) {
			continue
		}
		if set == nil {
			set = traffic.NewObjects(objects)
		}
		if err := traffic.Overlay(set, spec.Canary.Traffic.Routers, routeOf(s, spec, v)); err != nil {
			return nil, fmt.Errorf("route requests of %s: %w", spec.Workload, err)
		}
	}
	if set == nil {
		return objects, nil
	}
	return set.List(), nil
}

// Watched are the objects of a render whose status says whether routers have
// taken them.
func Watched(r *rollout.Render) []rollout.Ref {
	var refs []rollout.Ref
	for _, spec := range r.Specs {
		if isRouted(spec) {
			refs = append(refs, traffic.Watched(spec.Canary.Traffic.Routers, spec.Workload.Namespace)...)
		}
	}
	return refs
}

// Ahead are the routers' objects in all forms that releases of a render will
// give them, each once, without what the render has already, and those of its
// experiments: the API server can be asked about them before a release begins.
func Ahead(r *rollout.Render) ([]rollout.Object, error) {
	all := experimentsAhead(r)
	for _, spec := range r.Specs {
		if !isRouted(spec) {
			continue
		}
		for _, route := range traffic.Stages(spec) {
			laid := traffic.NewObjects(r.Objects)
			if err := traffic.Overlay(laid, spec.Canary.Traffic.Routers, route); err != nil {
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
//	between steps   what was routed last, less   those of that step, while the
//	                while pods are missing       new version has a ready pod
//	Promoting       0: the stable Service is     none
//	                switched; all with pingPong
//	Aborting        0                            none
func routeOf(s rollout.State, spec rollout.Spec, v View) traffic.Route {
	t := spec.Canary.Traffic
	stable, canary := serviceNames(s, spec)
	r := traffic.Route{Name: spec.Name, Namespace: spec.Workload.Namespace, Stable: stable, Canary: canary, Max: t.MaxWeight, Sticky: t.Sticky}
	p, moving := s.ProgressOf(spec.Workload)
	if !moving || s.Stable == nil || s.Release == nil {
		return r
	}
	live := v.Observed.Workloads[spec.Workload]
	old, _ := live.Find(s.StableHash(spec.Workload))
	fresh, _ := live.Find(s.Release.Templates[spec.Workload])
	r.Active = true
	r.StablePods, r.CanaryPods = pinHashes(s, spec, p, v, old, fresh)
	switch s.Phase {
	case rollout.Aborting:
	case rollout.Promoting:
		if spec.Canary.PingPong != nil && len(spec.Canary.Steps) > 0 {
			r.Weight = r.Max
		}
	default:
		pl := planOf(spec)
		ready := knownOf(fresh, t, v.Now)
		if p.Routed == nil || ready == 0 {
			break
		}
		want := countsAt(pl, p.Routed.Step, replicas(spec, live))
		r.Weight = within(p.Routed.Weight, r.Max, want, ready, knownOf(old, t, v.Now))
		r.Managed = routesAt(pl, p.Routed.Step)
	}
	return r
}

// Routing identifies what a state asks of routers and of the Services that they
// name. The wait for proxies to learn of it begins when it is recorded and when
// the cluster holds it, whichever is later: a push may take longer than proxies do.
func Routing(s rollout.State, source *rollout.Render) string {
	text := ""
	for _, p := range s.Progress {
		if spec, ok := source.Spec(p.Workload); ok && isRouted(spec) && p.Routed != nil {
			text += fmt.Sprintf("%s %d %d %s %t;", p.Workload, p.Routed.Step, p.Routed.Weight, p.Routed.At, hasSwitched(planOf(spec), p.Step))
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
	if applied.After(recorded) {
		recorded = applied
	}
	return recorded.Add(settle)
}

// knownOf is how many pods of a ReplicaSet are ready, have been for long enough
// that every proxy knows of them, and are to stay.
func knownOf(r rollout.Revision, t *rollout.Traffic, now time.Time) int {
	return min(r.Serving(now, learnt(t)), r.Desired)
}

// learnt is how long after a pod says that it became ready every proxy knows of
// it. Kubernetes cuts that moment to a whole second: ready since 12:00:00 may be
// ready since 12:00:00.9.
func learnt(t *rollout.Traffic) time.Duration {
	if t.Settle == 0 {
		return 0
	}
	return t.Settle + time.Second
}

// within is the weight that the ready pods can bear: no pod of the new version
// gets more than its step plans for it, relative to what a stable pod gets then.
// Example: 50 with 5 pods beside 10; one of the 5 is lost: each side has 0.8 and
// 1.0 of what the step asks for, so the weight is 40/(40+50) = 44 of 100. When
// an autoscaler has just asked for twice as many on both sides, neither is
// behind the other, and the weight stays.
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

// routesAt returns the managed routes of a step, none after the last one.
func routesAt(pl plan, step int) []rollout.ManagedRoute {
	s, _ := pl.at(step)
	return s.routes
}

// needsRouting reports whether the step asks the routers for something else than
// was asked for last.
func needsRouting(pl plan, pr rollout.Progress) bool {
	s, ok := pl.at(pr.Step)
	if !ok || !isRouted(pl.spec) {
		return false
	}
	if pr.Routed == nil {
		return s.weight > 0 || len(s.routes) > 0
	}
	return s.weight != pr.Routed.Weight || !reflect.DeepEqual(s.routes, routesAt(pl, pr.Routed.Step))
}

// stillRouted reports whether proxies may send requests to the new version, so
// that no pod of it may go, whatever the step asks for.
func stillRouted(spec rollout.Spec, p rollout.Progress, v View) bool {
	if p.Routed == nil || !isRouted(spec) {
		return false
	}
	return p.Routed.Weight > 0 || len(routesAt(planOf(spec), p.Routed.Step)) > 0 || v.Now.Before(settledAt(p.Routed.At, v.Applied, spec.Canary.Traffic.Settle))
}

// gateRoute lets the routers be asked once the Service of the new version has
// endpoints.
func gateRoute(in Input, p plan, pr rollout.Progress) verdict {
	for _, need := range needsOf(in, p.spec) {
		if serves, known := in.Answers.Endpoints[need]; known && !serves {
			return verdict{text: fmt.Sprintf("ready endpoints of Service %s", need.Service.Name), due: in.Now.Add(time.Second)}
		}
	}
	return verdict{route: true}
}

// needsOf returns what must have a ready endpoint before the new version is given
// requests. Istio's subsets have no Service of their own.
func needsOf(in Input, spec rollout.Spec) []Need {
	_, canary := serviceNames(in.State, spec)
	if canary == "" {
		return nil
	}
	fresh, _ := in.Observed.Workloads[spec.Workload].Find(in.State.Release.Templates[spec.Workload])
	return []Need{{Service: rollout.Ref{Kind: "Service", Namespace: spec.Workload.Namespace, Name: canary}, PodHash: fresh.PodHash}}
}

func routedText(pl plan, pr rollout.Progress) string {
	s, _ := pl.at(pr.Step)
	var parts []string
	switch full := pl.spec.Canary.Traffic.MaxWeight; {
	case pr.Weight == 0:
	case full == 100:
		parts = append(parts, fmt.Sprintf("%d%% of the requests", pr.Weight))
	default:
		parts = append(parts, fmt.Sprintf("%d/%d of the requests", pr.Weight, full))
	}
	for _, r := range s.routes {
		switch {
		case r.Mirror != nil:
			parts = append(parts, "copies of route "+r.Name)
		case r.Name == rollout.MatchRoute:
			parts = append(parts, "matched requests")
		default:
			parts = append(parts, "route "+r.Name)
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("routes all requests to stable at step %d/%d %s", pr.Step+1, pr.Of, pr.Name)
	}
	return fmt.Sprintf("routes %s to the new version at step %d/%d %s", strings.Join(parts, " and "), pr.Step+1, pr.Of, pr.Name)
}

// gateRouters keeps a release where it is until every proxy has learnt of its
// routes, and while a router does not take them.
func gateRouters(in Input, p plan, pr rollout.Progress) verdict {
	if pr.Routed == nil || !isRouted(p.spec) {
		return verdict{done: true}
	}
	t := p.spec.Canary.Traffic
	v := traffic.Verify(t.Routers, p.spec.Workload.Namespace, in.Observed.Routes)
	switch due := settledAt(pr.Routed.At, in.Applied, t.Settle); {
	case v.Rejected:
		return verdict{text: "the router to take its objects: " + v.Text, broken: v.Text}
	case in.Now.Before(due):
		return verdict{text: fmt.Sprintf("proxies to learn of the new routes (%s)", t.Settle), due: due}
	case !v.Taken:
		return verdict{text: "the router: " + v.Text}
	default:
		return verdict{done: true}
	}
}

// drained is how many stable pods may be gone by now: as many as were so far
// until the step's weight is in force everywhere, then as many as the step says,
// as far as ready pods of the new version are in their place.
func drained(spec rollout.Spec, p rollout.Progress, s rollout.State, v View, want counts, n int) int {
	live := v.Observed.Workloads[p.Workload]
	stable, _ := live.Find(s.StableHash(p.Workload))
	canary, _ := live.Find(s.Release.Templates[p.Workload])
	rest := n - want.stable
	gone := min(max(0, n-stable.Desired), rest)
	t := spec.Canary.Traffic
	routed := !needsRouting(planOf(spec), p) && p.Routed != nil && !v.Now.Before(settledAt(p.Routed.At, v.Applied, t.Settle))
	if !routed || !traffic.Verify(t.Routers, p.Workload.Namespace, v.Observed.Routes).Taken {
		return gone
	}
	return max(gone, min(rest, servingOf(canary, spec, v.Now)+spec.MaxUnavailable.RoundDown(n)))
}

// settling is how long a retreat keeps the new version's pods for the proxies to
// learn that they get no requests, zero if they got none.
func settling(in Input) time.Duration {
	var longest time.Duration
	for _, spec := range releaseSpecs(in) {
		p, moving := in.State.ProgressOf(spec.Workload)
		switch {
		case !moving || p.Routed == nil || !isRouted(spec):
		case spec.Canary.DynamicStableScale:
			// Stable needs the room, and its Service selects all pods until it
			// has come back.
		default:
			longest = max(longest, spec.Canary.Traffic.Settle)
		}
	}
	return longest
}

// swapped lists the workloads whose stable version is behind the pong Service
// once the release in flight is the stable one.
func swapped(in Input) []rollout.Workload {
	pong := slices.Clone(in.State.Pong)
	for _, p := range in.State.Progress {
		spec, ok := in.Head.Render.Spec(p.Workload)
		if !ok || spec.Canary == nil || spec.Canary.PingPong == nil || len(spec.Canary.Steps) == 0 {
			continue
		}
		if i := slices.Index(pong, p.Workload); i >= 0 {
			pong = slices.Delete(pong, i, i+1)
		} else {
			pong = append(pong, p.Workload)
		}
	}
	slices.SortFunc(pong, func(a, b rollout.Workload) int { return a.Ref().Compare(b.Ref()) })
	if len(pong) == 0 {
		return nil
	}
	return pong
}
