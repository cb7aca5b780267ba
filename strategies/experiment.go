package strategies

import (
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/experiment"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// The objects of an experiment exist only during its step:
//
//	entered → its objects are applied → all pods available → recorded
//	        → duration, analyses → next step: its objects are removed
//
// If templates have weights, their pods get requests after "recorded" and until the analyses end. gitrollout removes
// the objects after proxies know the new routes, also in a rollback. Without weights, a rollback's first apply removes
// the objects.

func experimentAt(s rollout.State, m workloads.Staged) (*rollout.Experiment, bool) {
	w, is := m.Stage().Wait.(plan.ExperimentWait)
	leaves := s.Phase == rollout.Aborting && workloads.IsHeld(s) && mayShare(m)
	return w.Experiment, is && (isTried(s) || leaves) && !m.Suspended && !isSuspended(m)
}

func mayShare(m workloads.Staged) bool {
	w, is := m.Stage().Wait.(plan.ExperimentWait)
	return is && w.Weight("") > 0 && m.Available != nil && m.Routing != nil
}

// endShares ends the requests to experiments. It waits until routers accept the new routes and proxies know them. If a
// router refuses objects, endShares waits only for proxies.
func endShares(in Input, m workloads.Staged) verdict {
	switch v := gateRouters(in, m); {
	case !mayShare(m) || m.Routed == nil:
		return verdict{done: true}
	case m.Routed.Shares:
		return verdict{route: true}
	case v.broken != "":
		v.due = workloads.SettledAt(m.Routed.At, in.Applied, m.Routing.Settle)
		v.done = !in.Now.Before(v.due)
		return v
	default:
		return v
	}
}

func hasExperimentPods(in Input, m workloads.Staged) bool {
	w, is := m.Stage().Wait.(plan.ExperimentWait)
	hasPods := func(p experimentPods) bool { return p.live.Desired > 0 }
	return is && slices.ContainsFunc(podsOf(in, m, w.Experiment), hasPods)
}

func experimentObjects(s rollout.State, v workloads.View) (all []rollout.Object) {
	for _, m := range v.Workloads(s) {
		e, is := experimentAt(s, m)
		if !is {
			continue
		}
		others := v.Source.Objects
		if v.Stable != nil {
			others = slices.Concat(others, v.Stable.Objects)
		}
		for _, t := range e.Templates {
			version, commit, hash := v.Source, s.Release.Commit, s.Release.Templates[m.Workload]
			if t.SpecRef == rollout.SpecStable {
				version, commit, hash = v.Stable, s.Stable.Commit, s.StableHash(m.Workload)
			}
			from, found := workloads.WorkloadOf(version, m.Workload)
			if !found {
				continue
			}
			made := experiment.Template{
				ExperimentTemplate: t, Spec: m.Spec, Release: s.Release.Hash, Step: m.Step, From: from, Others: others,
			}.Objects()
			made[0] = workloads.Stamp(v, made[0], s.Mark(), hash, commit, fmt.Sprintf(
				"runs %s for the experiment at step %d/%d of release %s; see: gitrollout get %s",
				t.SpecRef, m.Step+1, m.Of, s.Release.Hash, s.App))
			all = append(all, made...)
		}
	}
	return all
}

func experimentsAhead(r *rollout.Render, known plan.Cache) (all []rollout.Object) {
	for _, spec := range r.Specs {
		from, found := workloads.WorkloadOf(r, spec.Workload)
		for i, stage := range known.Of(spec).Stages {
			w, is := stage.Wait.(plan.ExperimentWait)
			if !is || !found {
				continue
			}
			for _, t := range w.Templates {
				all = append(all, experiment.Template{
					ExperimentTemplate: t, Spec: spec, Release: r.Release(), Step: i, From: from, Others: r.Objects,
				}.Objects()...)
			}
		}
	}
	return all
}

type experimentPods struct {
	rollout.ExperimentTemplate
	live    rollout.Revision
	there   bool // the Deployment's newest generation is observed
	serving int
}

func (p experimentPods) available() bool { return p.there && p.serving >= p.Replicas }

func podsOf(in Input, m workloads.Staged, e *rollout.Experiment) []experimentPods {
	return rollout.Mapped(e.Templates, func(t rollout.ExperimentTemplate) experimentPods {
		name := experiment.Name(m.Workload, in.State.Release.Hash, m.Step, t.Name)
		w, exists := in.Observed.Workloads[rollout.Workload{Namespace: m.Workload.Namespace, Name: name}]
		pods := experimentPods{ExperimentTemplate: t, there: exists && w.Synced, live: w.Current()}
		pods.serving = pods.live.Serving(in.Now, plan.MinReady(m.Spec))
		return pods
	})
}

func experimentRuns(m workloads.Staged) []runOf {
	w, is := m.Stage().Wait.(plan.ExperimentWait)
	if !is || m.Available == nil {
		return nil
	}
	return rollout.Mapped(w.Analyses, func(a rollout.ExperimentAnalysis) runOf {
		return runOf{Staged: m, name: runName(m) + "/" + a.Name, analysis: a.Analysis, experiment: w.Experiment}
	})
}

// about adds the experiment's values to m. It returns false while a ReplicaSet is missing. Latest and Stable get the
// hashes of the experiment's own pods, if the experiment runs these versions.
func (m *Measure) about(in Input, w runOf) bool {
	e := w.experiment
	m.Since = rollout.Later(m.Since, *w.Available) // the experiment's weights are in force from this time
	m.Texts = map[string]string{"experiment.availableAt": w.Available.Format(time.RFC3339)}
	if e.Duration != nil {
		m.Texts["experiment.finishedAt"] = w.Available.Add(*e.Duration).Format(time.RFC3339)
	}
	canary, _ := e.RunsOn(rollout.SpecCanary)
	stable, _ := e.RunsOn(rollout.SpecStable)
	for _, t := range podsOf(in, w.Staged, e) {
		if t.live.Pin.Value == "" {
			return false
		}
		m.Texts["templates."+t.Name+".podTemplateHash"] = t.live.Pin.Value
		m.Texts["templates."+t.Name+".replicaset.name"] = t.live.Name
		switch t.Name {
		case canary.Name:
			m.Latest = t.live.Pin.Value
		case stable.Name:
			m.Stable = t.live.Pin.Value
		}
	}
	return true
}
