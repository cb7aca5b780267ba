package routes

import (
	"cmp"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/experiment"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
	"gitrollout.dev/gitrollout/traffic"
)

// Requests and pods change in this order in each release and rollback:
//
//	advance   pods ready → known to the proxies → recorded → routed → known → old pods stop
//	rollback  routed → known to the proxies → new pods stop
//
// Progress.Routed records the last routed weight, so that a new gitrollout process neither changes the routes nor waits
// for pods again.

// Overlay writes the routes into the routers' objects.
func Overlay(s rollout.State, v workloads.View, objects []rollout.Object) ([]rollout.Object, error) {
	var set *traffic.Objects
	for _, spec := range v.Source.Specs {
		p := v.Plans.Of(spec)
		if p.Routing == nil {
			continue
		}
		if set == nil {
			set = traffic.NewObjects(objects)
		}
		if err := traffic.Overlay(set, p.Routing.Routers, Of(s, p, v)); err != nil {
			return nil, fmt.Errorf("route requests of %s: %w", spec.Workload, err)
		}
	}
	if set == nil {
		return objects, nil
	}
	return set.List(), nil
}

// Of returns a workload's route in a state:
//
//	                weight                       matched users
//	no release      0                            none
//	between steps   the last routed weight, at   as in that step, while the
//	                most the step's; less while  new version has a ready pod
//	                pods are missing
//	Promoting       0: the stable Service is     none
//	                switched; all with pingPong
//	Aborting        0                            none
func Of(s rollout.State, p *plan.Compiled, v workloads.View) traffic.Route {
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
	main, side := Pinned(m, s, v)
	r.StablePods, r.CanaryPods, r.PodLabel = main.Value, side.Value, cmp.Or(main, side).Label
	switch {
	case s.Phase == rollout.Aborting:
	case workloads.IsPromoting(s):
		if p.Swaps() {
			r.Weight = r.Max
		}
	default:
		r.Shares = sharesOf(s, m, v)
		ready := workloads.KnownOf(m.Fresh, t, v.Now)
		if m.Routed == nil || ready == 0 {
			break
		}
		r.Weight = Within(min(m.Routed.Weight, m.Weight), r.Max, m.Planned(), ready, workloads.KnownOf(m.Stable, t, v.Now))
		r.Managed, r.Headers = m.RoutedAt(m.Routed.Step).Routes, m.RoutedAt(m.Routed.Step).Headers
	}
	return r
}

// sharesOf returns, by Service, the weights of the step's experiment. It includes a template only while proxies know
// all its pods.
func sharesOf(s rollout.State, m workloads.Staged, v workloads.View) map[string]int {
	w, is := m.Stage().Wait.(plan.ExperimentWait)
	if !is || m.Routed == nil || !m.Routed.Shares || m.Routed.Step != m.Step || m.Available == nil || m.N == 0 {
		return nil
	}
	shares := map[string]int{}
	for _, t := range w.Templates {
		made := experiment.Template{ExperimentTemplate: t, Spec: m.Spec, Release: s.Release.Hash, Step: m.Step}
		live := v.Observed.Workloads[rollout.Workload{Namespace: m.Workload.Namespace, Name: made.Name()}]
		if t.Weight > 0 && live.Synced && workloads.KnownOf(live.Current(), m.Routing, v.Now) >= t.Replicas {
			shares[made.ServiceName()] = t.Weight
		}
	}
	return shares
}

// Within returns the weight that ready new pods can serve, so that missing new pods do not raise the other new pods'
// load. If 4 of 5 new pods are ready beside all stable pods, weight 50 becomes 40/(40+50) = 44 of 100.
func Within(weight, full int, want plan.Counts, canary, stable int) int {
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

// RoutedText describes the requests that a step sends to the new version.
func RoutedText(m workloads.Staged) string {
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
	if m.Routed.Shares {
		what += " and a share to the experiment"
	}
	return fmt.Sprintf("routes %s at step %d/%d %s", what, m.Step+1, m.Of, m.Name)
}
