package strategies

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
	"gitrollout.dev/gitrollout/traffic"
)

// Requests follow pods in the same order everywhere:
//
//	advance   pods ready → known to the proxies → recorded → routed → known → old pods go
//	rollback  routed → known to the proxies → new pods go
//
// Progress.Routed records the last routed weight, so that a restart neither moves a request nor repeats a wait. Routers
// get less while the new version has fewer ready pods than its step asks for, in both directions at once.

// overlaid lays each workload's route over the objects.
func overlaid(s rollout.State, v workloads.View, objects []rollout.Object) ([]rollout.Object, error) {
	var set *traffic.Objects
	for _, spec := range v.Source.Specs {
		p := v.Plans.Of(spec)
		if p.Routing == nil {
			continue
		}
		if set == nil {
			set = traffic.NewObjects(objects)
		}
		if err := traffic.Overlay(set, p.Routing.Routers, routeOf(s, p, v)); err != nil {
			return nil, fmt.Errorf("route requests of %s: %w", spec.Workload, err)
		}
	}
	if set == nil {
		return objects, nil
	}
	return set.List(), nil
}

// Watched returns the objects of a render whose status shows whether routers have accepted them.
func Watched(r *rollout.Render) []rollout.Ref {
	var refs []rollout.Ref
	for _, spec := range r.Specs {
		if t := plan.Compile(spec).Routing; t != nil {
			refs = append(refs, traffic.Watched(t.Routers, spec.Workload.Namespace)...)
		}
	}
	return refs
}

// Ahead returns the objects that releases of a render will apply later, for the API server to check first. They are
// workloads that still have stable's templates, routers' objects in each later form, and experiments' objects.
func Ahead(r *rollout.Render, now []rollout.Object) ([]rollout.Object, error) {
	known := plan.Cache{}
	all := experimentsAhead(r, known)
	for _, spec := range r.Specs {
		own, found := workloads.WorkloadOf(r, spec.Workload)
		isAsked := func(o rollout.Object) bool {
			return o.Ref() == spec.Workload.Ref() && reflect.DeepEqual(o.Map("spec")["template"], own.Map("spec")["template"])
		}
		if found && !slices.ContainsFunc(now, isAsked) {
			all = append(all, own)
		}
	}
	for _, spec := range r.Specs {
		p := known.Of(spec)
		if p.Routing == nil {
			continue
		}
		for _, route := range traffic.Stages(spec) {
			laid := traffic.NewObjects(r.Objects)
			if err := traffic.Overlay(laid, p.Routing.Routers, route); err != nil {
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

// routeOf returns the route of one workload in a state.
//
//	                weight                       matched users
//	at rest         0                            none
//	between steps   the last routed weight, at   as in that step, while the
//	                most the step's; less while  new version has a ready pod
//	                pods are missing
//	Promoting       0: the stable Service is     none
//	                switched; all with pingPong
//	Aborting        0                            none
func routeOf(s rollout.State, p *plan.Compiled, v workloads.View) traffic.Route {
	t, spec := p.Routing, p.Spec
	stable, canary := p.Services(s)
	r := traffic.Route{
		Name: spec.Name, Namespace: spec.Workload.Namespace,
		Stable: stable, Canary: canary, Max: t.MaxWeight, Sticky: t.Sticky,
	}
	pr, moves := s.ProgressOf(spec.Workload)
	if !moves || s.Stable == nil || s.Release == nil {
		return r
	}
	m := workloads.New(s, p, pr, v.Observed)
	r.Active = true
	main, side := pinned(m, s, v)
	r.StablePods, r.CanaryPods, r.PodLabel = main.Value, side.Value, cmp.Or(main, side).Label
	switch {
	case s.Phase == rollout.Aborting:
	case workloads.IsPromoting(s):
		if p.Swaps() {
			r.Weight = r.Max
		}
	default:
		ready := workloads.KnownOf(m.Fresh, t, v.Now)
		if m.Routed == nil || ready == 0 {
			break
		}
		r.Weight = within(min(m.Routed.Weight, m.Weight), r.Max, m.Planned(), ready, workloads.KnownOf(m.Stable, t, v.Now))
		r.Managed = m.RoutesAt(m.Routed.Step)
	}
	return r
}

// Routing identifies the routes and Service switches of a state. Proxies learn them some time after both the record
// and the apply: a push may take longer than proxies do.
func Routing(s rollout.State, source *rollout.Render) string {
	text := ""
	s = workloads.Reopened(s)
	for _, m := range workloads.All(s, source.Specs, rollout.Observed{}, nil) {
		if m.Routing != nil && m.Routed != nil {
			r := m.Routed
			text += fmt.Sprintf("%s %d %d %s %t;", m.Workload, r.Step, r.Weight, r.At, m.HasSwitched(m.Step))
		}
	}
	if text == "" {
		return ""
	}
	if s.Rollback != nil {
		text += "back " + s.Rollback.Routed.String()
	}
	return text
}

// within returns the weight that the ready pods can bear: no new pod gets more than its step plans, relative to a
// stable pod. Example: 50 with 5 pods beside 10, and 4 of 5 are left: 0.8 and 1.0 of the planned pods, so 40/(40+50)
// = 44 of 100. When an autoscaler has doubled both sides, the weight stays.
func within(weight, full int, want plan.Counts, canary, stable int) int {
	if canary == 0 {
		return 0
	}
	if want.Canary == 0 || want.Stable == 0 {
		return weight
	}
	c, s := min(canary, want.Canary)*want.Stable, min(stable, want.Stable)*want.Canary
	if c >= s {
		return weight
	}
	return c * weight * full / (c*weight + s*(full-weight))
}

// lessRouted returns why missing pods reduce the new version's requests, and when that may end. Its pods must be
// ready for a while before, so that a crash loop is one transition.
func lessRouted(in Input) (reason string, due time.Time) {
	for _, m := range stagedIn(in) {
		t := m.Routing
		if t == nil || m.Routed == nil || in.State.Phase == rollout.Aborting {
			continue
		}
		isMatched := len(m.RoutesAt(m.Routed.Step)) > 0
		known := workloads.Learnt(t)
		if in.State.Reason != "" {
			known = max(known, wellFor)
		}
		ready := min(m.Fresh.Serving(in.Now, known), m.Fresh.Desired)
		want := m.CountsAt(m.Routed.Step, m.N)
		bears := within(m.Routed.Weight, m.Full(), want, ready, workloads.KnownOf(m.Stable, t, in.Now))
		if bears < m.Routed.Weight || isMatched && ready == 0 {
			reason = fmt.Sprintf("the new version of %s lacks pods, or lacked some within the last minute: it gets "+
				"fewer requests while it does", m.Workload)
			due = rollout.Soonest(due, workloads.ServesNext(in.Now, known, m.Fresh))
		}
	}
	return reason, due
}

// needsOf returns the versions that need a ready endpoint first. Istio's subsets have no separate Service.
func needsOf(in Input, m workloads.Staged) []Need {
	_, canary := m.Services(in.State)
	if canary == "" {
		return nil
	}
	service := rollout.Ref{Kind: "Service", Namespace: m.Workload.Namespace, Name: canary}
	return []Need{{Service: service, PodHash: m.Fresh.Pin.Value}}
}

func routedText(m workloads.Staged) string {
	var parts []string
	switch full := m.Full(); {
	case m.RoutedWeight(m.Stage()) == 0:
	case full == 100:
		parts = append(parts, fmt.Sprintf("%d%% of the requests", m.Weight))
	default:
		parts = append(parts, fmt.Sprintf("%d/%d of the requests", m.Weight, full))
	}
	for _, r := range m.Stage().Routes {
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

// gateRouters keeps a release at its step until every proxy has learnt its routes and routers accept them. A changed
// list may go on, with another weight, at a step that waits for no pods.
func gateRouters(in Input, m workloads.Staged) verdict {
	if !isPodsStage(m) && m.NeedsRouting() {
		return waitForPods(in, m)
	}
	t := m.Routing
	if m.Routed == nil || t == nil {
		return verdict{done: true}
	}
	v := traffic.Verify(t.Routers, m.Workload.Namespace, in.Observed.Routes)
	switch due := workloads.SettledAt(m.Routed.At, in.Applied, t.Settle); {
	case v.Rejected:
		return verdict{text: "the router to take its objects: " + v.Text, broken: v.Text}
	case in.Now.Before(due):
		return verdict{
			paused: in.State.Phase == rollout.Paused, // a new process waits again, which is no transition
			text:   fmt.Sprintf("proxies to learn of the new routes (%s)", t.Settle), due: due,
		}
	case !v.Taken:
		return verdict{text: "the router: " + v.Text}
	default:
		return verdict{done: true}
	}
}

// settling returns how long a rollback keeps the new pods until proxies learn the routes, zero without requests.
func settling(in Input) time.Duration {
	var longest time.Duration
	for _, m := range stagedIn(in) {
		// A dynamic stable needs the room, and its Service selects all pods meanwhile. In place, matched requests
		// reach stable, as the new version's Service selects its pods.
		if m.Routed != nil && m.Routing != nil && !m.IsDynamic() && !m.SharesPods() {
			longest = max(longest, m.Routing.Settle)
		}
	}
	return longest
}

// swapped lists the workloads whose stable version is behind the pong Service once the release in flight is stable.
func swapped(in Input) []rollout.Workload {
	pong := slices.Clone(in.State.Pong)
	for _, m := range stagedIn(in) {
		if !m.Swaps() {
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
