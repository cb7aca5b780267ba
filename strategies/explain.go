package strategies

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Explanation is one workload of an app for people to look at: what the state
// says, what the cluster shows, and what comes next.
type Explanation struct {
	Workload  rollout.Workload
	Strategy  string // "canary", "blueGreen", or "rollingUpdate" for no steps
	Steps     []ExplainedStep
	Step      int      // index of the step in progress; len(Steps) when there is none
	Weight    int      // asked for the new version, of Full
	Full      int      // the weight that is everything: 100, or Traffic.MaxWeight
	Routed    bool     // requests are split, and not only pods
	Routes    []string // of managed routes, the names of those in force
	Real      int      // percent of the requests that go to the new version or, without a router, of the ready pods that are of it
	Replicas  int
	Ready     int
	Revisions []ExplainedRevision
	Waiting   string    // what the step waits for, "" if nothing
	Due       time.Time // when a timed wait ends, zero if it is not timed
}

// ExplainedStep is one entry of the step list.
type ExplainedStep struct {
	Name   string // the user's name, "" if none
	Text   string
	Weight int
}

// ExplainedRevision is one ReplicaSet and its role.
type ExplainedRevision struct {
	rollout.Revision
	Role string // "stable", "canary", "preview", "active", or "" for a left-over
}

// Explain describes each staged workload of an app. It takes the same input as
// Decide and changes nothing.
func Explain(in Input) []Explanation {
	source := in.Head.Render
	if source == nil || in.State.Source != in.Head.Commit.ID {
		source = orRender(in.Source, source)
	}
	if source == nil {
		return nil
	}
	all := make([]Explanation, 0, len(source.Specs))
	for _, spec := range source.Specs {
		all = append(all, explain(in, source, spec))
	}
	return all
}

func orRender(a, b *rollout.Render) *rollout.Render {
	if a != nil {
		return a
	}
	return b
}

func explain(in Input, source *rollout.Render, spec rollout.Spec) Explanation {
	pl := planOf(spec)
	live := in.Observed.Workloads[spec.Workload]
	e := Explanation{Workload: spec.Workload, Strategy: strategyName(spec), Replicas: replicas(spec, live), Step: len(pl.stages), Full: 100}
	for _, s := range pl.stages {
		e.Steps = append(e.Steps, ExplainedStep{Name: s.name, Text: s.text, Weight: s.weight})
	}
	pr, moving := in.State.ProgressOf(spec.Workload)
	if moving && in.State.Release != nil {
		e.Step, e.Weight = min(pr.Step, len(pl.stages)), pr.Weight
		if in.State.Phase == rollout.Aborting {
			e.Weight = 0
		} else if pr.Step < pr.Of {
			v := verdictAt(in, pl, pr)
			e.Waiting, e.Due = v.text, v.due
		}
	}
	fresh := 0
	for _, r := range live.Revisions {
		if r.Pods == 0 && r.Desired == 0 && len(r.Members) == 0 && !r.Current {
			continue
		}
		role := roleOf(in.State, spec, r)
		e.Ready += r.Ready()
		if role == "canary" || role == "preview" {
			fresh += r.Ready()
		}
		e.Revisions = append(e.Revisions, ExplainedRevision{Revision: r, Role: role})
	}
	switch c := spec.Canary; {
	case c != nil && c.Traffic != nil:
		route := routeOf(in.State, spec, View{Now: in.Now, Source: source, Observed: in.Observed})
		e.Routed, e.Full, e.Real = true, c.Traffic.MaxWeight, route.Weight*100/c.Traffic.MaxWeight
		for _, r := range route.Managed {
			e.Routes = append(e.Routes, r.Name)
		}
	case e.Ready > 0:
		e.Real = fresh * 100 / e.Ready
	}
	return e
}

func strategyName(spec rollout.Spec) string {
	switch {
	case spec.BlueGreen != nil:
		return "blueGreen"
	case len(spec.Canary.Steps) == 0:
		return "rollingUpdate"
	default:
		return "canary"
	}
}

func roleOf(s rollout.State, spec rollout.Spec, r rollout.Revision) string {
	switch {
	case r.Hash == "":
		return ""
	case r.Hash == s.StableHash(spec.Workload) && spec.BlueGreen != nil:
		return "active"
	case r.Hash == s.StableHash(spec.Workload):
		return "stable"
	case s.Release != nil && r.Hash == s.Release.Templates[spec.Workload] && spec.BlueGreen != nil:
		return "preview"
	case s.Release != nil && r.Hash == s.Release.Templates[spec.Workload]:
		return "canary"
	default:
		return ""
	}
}
