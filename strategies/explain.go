package strategies

import (
	"cmp"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/routes"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// Explanation describes a workload for display: stages, observed pods and present wait.
type Explanation struct {
	Workload  rollout.Workload
	Strategy  plan.Strategy
	Steps     []ExplainedStep
	Step      int            // index of the present step; len(Steps) if no step is in progress
	Weight    int            // the new version's weight, out of Full
	Pods      int            // new pods that the step requests; 0 if the step sets a weight
	Full      int            // the weight of all requests: 100, or Traffic.MaxWeight
	Routed    bool           // weights are shares of requests, not only of pods
	Routes    []string       // names of the managed routes in force
	Shares    map[string]int // by Service: the experiment's weights in force, out of Full
	Real      int            // new version's actual percentage of requests or, without a router, of ready pods
	Replicas  int
	Ready     int
	Revisions []ExplainedRevision
	Surplus   string // why surplus new pods exist, or ""
	Waiting   string
	Due       time.Time // end of a timed wait, or zero
}

// ExplainedStep is one entry of the step list.
type ExplainedStep struct {
	Name   string
	Text   string
	Weight int
}

// ExplainedRevision is one ReplicaSet and the role of its version.
type ExplainedRevision struct {
	rollout.Revision
	Role plan.Role // "" for a version that is neither stable nor new
}

// Explain describes each workload with a Rollout document.
func Explain(in Input) []Explanation {
	in = in.prepared()
	source := in.Head.Render
	if source == nil || in.State.Source != in.Head.Commit.ID {
		source = cmp.Or(in.Source, source)
	}
	if source == nil {
		return nil
	}
	return rollout.Mapped(source.Specs, func(spec rollout.Spec) Explanation { return explain(in, source, spec) })
}

func explain(in Input, source *rollout.Render, spec rollout.Spec) Explanation {
	p := in.plans.Of(spec)
	live := in.Observed.Workloads[spec.Workload]
	e := Explanation{
		Workload: spec.Workload, Strategy: p.Strategy, Replicas: workloads.Replicas(in.State, spec, live),
		Step: len(p.Stages), Full: p.Full(),
	}
	e.Steps = rollout.Mapped(p.Stages, func(s plan.Stage) ExplainedStep {
		return ExplainedStep{Name: s.Name, Text: s.Text, Weight: s.Weight}
	})
	if pr, moves := in.State.ProgressOf(spec.Workload); moves && in.State.Release != nil {
		e.at(in, workloads.New(in.State, p, pr, in.Observed))
	}
	fresh := 0
	for _, r := range live.Revisions {
		if r.Pods == 0 && r.Desired == 0 && len(r.Members) == 0 && !r.Current {
			continue
		}
		role := p.RoleOf(in.State, r)
		e.Ready += r.Ready()
		if role == p.FreshRole {
			fresh += r.Ready()
		}
		e.Revisions = append(e.Revisions, ExplainedRevision{Revision: r, Role: role})
	}
	switch {
	case p.Routing != nil:
		v := workloads.View{Now: in.Now, Source: source, Observed: in.Observed, Plans: in.plans}
		route := routes.Of(in.State, p, v)
		e.Routed, e.Real, e.Shares = !p.SharesPods(), route.Weight*100/e.Full, route.Shares
		if route.CanaryPods != "" && route.StablePods == "" && e.Ready > 0 { // unmatched requests reach all pods
			e.Real = fresh * 100 / e.Ready
		}
		e.Routes = rollout.Mapped(route.Managed, func(r rollout.ManagedRoute) string { return r.Name })
	case p.Strategy == plan.StrategyBlueGreen: // the active Service selects one version, so no user reaches the preview
		e.Routed, e.Real = true, e.Weight
	case e.Ready > 0:
		e.Real = fresh * 100 / e.Ready
	}
	return e
}

func unseen(in Input, m workloads.Staged) verdict {
	if v := gateHold(in, m); !v.done {
		return v
	}
	switch w := m.Stage().Wait.(type) {
	case plan.PromotionWait:
		return waitForPeople(in, m)
	case plan.TimerWait:
		return waitUntil(in, m, w.End(m.Entered))
	}
	return verdict{}
}

func (e *Explanation) at(in Input, m workloads.Staged) {
	e.Step = min(m.Step, len(m.Stages))
	switch {
	case in.State.Phase == rollout.Aborting:
	case m.IsThrough():
		e.Weight = m.Weight
	default:
		v := gates.verdict(in, m)
		if !in.Observed.Read(m.Workload) {
			v = unseen(in, m)
		}
		e.Surplus = m.Surplus()
		e.Weight, e.Waiting, e.Due = m.Weight, v.text, v.due
		if m.Stage().Scaled {
			e.Pods = m.Want().Canary
		}
	}
}
