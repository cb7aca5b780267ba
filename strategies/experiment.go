package strategies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/experiment"
)

// An experiment is there while its step lasts, and nowhere else:
//
//	entered → its objects are applied → all pods available → recorded
//	        → duration, analyses → next step: its objects are removed
//
// A retreat asks for none of its objects, so they go with the first write of it.

// experimentAt returns the experiment of the step that a workload is at, if its
// pods are to run now.
func experimentAt(s rollout.State, spec rollout.Spec, p rollout.Progress) (*rollout.Experiment, bool) {
	if s.Release == nil || s.Stable == nil || s.Release.Fast || !held(s) || s.Phase == rollout.Aborting {
		return nil, false
	}
	st, ok := planOf(spec).at(p.Step)
	return st.experiment, ok && st.experiment != nil
}

// experimentObjects are the objects of all experiments of a state. A version that
// the renders do not have runs no pods: what is not known is not applied.
func experimentObjects(s rollout.State, v View) []rollout.Object {
	var all []rollout.Object
	for _, p := range s.Progress {
		spec, ok := v.Source.Spec(p.Workload)
		if !ok {
			continue
		}
		e, is := experimentAt(s, spec, p)
		if !is {
			continue
		}
		others := v.Source.Objects
		if v.Stable != nil {
			others = slices.Concat(others, v.Stable.Objects)
		}
		for _, t := range e.Templates {
			version, commit, hash := v.Source, s.Release.Commit, s.Release.Templates[p.Workload]
			if t.SpecRef == rollout.SpecStable {
				version, commit, hash = v.Stable, s.Stable.Commit, s.StableHash(p.Workload)
			}
			from, found := deploymentOf(version, p.Workload)
			if !found {
				continue
			}
			made := experiment.Template{ExperimentTemplate: t, Spec: spec, Release: s.Release.Hash, Step: p.Step, From: from, Others: others}.Objects()
			status := fmt.Sprintf("runs %s for the experiment at step %d/%d of release %s; see: gitrollout get %s", t.SpecRef, p.Step+1, p.Of, s.Release.Hash, s.App)
			made[0] = stamp(made[0], s.Serial, hash, commit, status)
			all = append(all, made...)
		}
	}
	return all
}

// experimentsAhead are the objects of all experiments of a render, with its own
// template in the place of stable's, which differs in what pods run only.
func experimentsAhead(r *rollout.Render) []rollout.Object {
	var all []rollout.Object
	for _, spec := range r.Specs {
		from, found := deploymentOf(r, spec.Workload)
		if spec.Canary == nil || !found {
			continue
		}
		for i, step := range spec.Canary.Steps {
			if step.Experiment == nil {
				continue
			}
			for _, t := range step.Experiment.Templates {
				all = append(all, experiment.Template{ExperimentTemplate: t, Spec: spec, Release: r.Release(), Step: i, From: from, Others: r.Objects}.Objects()...)
			}
		}
	}
	return all
}

// experimentPods are the pods of one template, as the cluster shows them.
type experimentPods struct {
	rollout.ExperimentTemplate
	live    rollout.Revision
	there   bool // the Deployment exists, and the controller has seen its newest form
	serving int
}

// available reports whether all pods of the template are.
func (p experimentPods) available() bool { return p.there && p.serving >= p.Replicas }

func podsOf(in Input, spec rollout.Spec, p rollout.Progress, e *rollout.Experiment) []experimentPods {
	all := make([]experimentPods, 0, len(e.Templates))
	for _, t := range e.Templates {
		name := experiment.Name(p.Workload, in.State.Release.Hash, p.Step, t.Name)
		w, exists := in.Observed.Workloads[rollout.Workload{Namespace: p.Workload.Namespace, Name: name}]
		pods := experimentPods{ExperimentTemplate: t, there: exists && w.Synced}
		for _, r := range w.Revisions {
			if r.Current {
				pods.live, pods.serving = r, r.Serving(in.Now, minReady(spec))
			}
		}
		all = append(all, pods)
	}
	return all
}

// gateExperiment waits for the experiment's pods, then for its duration and for
// the analyses that it is not over without. One that does not know has been
// asked about before: somebody has said that the release goes on.
func gateExperiment(in Input, p plan, pr rollout.Progress, s stage) verdict {
	if in.State.Release.Fast {
		return verdict{done: true}
	}
	if pr.Available == nil {
		return gateAvailable(in, p, pr, s.experiment)
	}
	var waits []string
	var due time.Time
	if d := s.experiment.Duration; d != nil {
		if due = pr.Available.Add(*d); in.Now.Before(due) {
			waits = append(waits, fmt.Sprintf("the experiment, until %s", due.Format(time.RFC3339)))
		}
	}
	for _, a := range s.experiment.Analyses {
		name := experimentRun(pr.Workload, s, pr.Step, a)
		i := slices.IndexFunc(in.State.Analyses, func(r rollout.AnalysisRun) bool { return r.Name == name })
		if i < 0 {
			if a.Required {
				waits = append(waits, "analysis "+name+" to start")
			}
			continue
		}
		switch r := liveRuns(in)[i]; {
		case r.Phase == rollout.AnalysisInconclusive:
			return verdict{done: true, by: promoter(in)}
		case a.Required && r.Phase != rollout.AnalysisSuccessful:
			waits = append(waits, fmt.Sprintf("analysis %s: %s", r.Name, inWords(r)))
		}
	}
	if len(waits) == 0 {
		return verdict{done: true}
	}
	return verdict{text: strings.Join(waits, "; "), due: laterOnly(due, in.Now)}
}

// gateAvailable waits until every pod of the experiment is available.
func gateAvailable(in Input, p plan, pr rollout.Progress, e *rollout.Experiment) verdict {
	var waits []string
	var due time.Time
	for _, t := range podsOf(in, p.spec, pr, e) {
		if t.available() {
			continue
		}
		text := fmt.Sprintf("pods of the experiment's %s: %d of %d available", t.Name, t.serving, t.Replicas)
		if t.live.Problem != "" {
			text += " (" + t.live.Problem + ")"
		}
		waits = append(waits, text)
		due = soonest(due, servesNext(in.Now, minReady(p.spec), t.live))
	}
	if len(waits) == 0 {
		return verdict{begins: true}
	}
	if late, _ := lateExperiment(in); !late.at.IsZero() {
		due = soonest(due, laterOnly(late.at, in.Now))
	}
	return verdict{text: strings.Join(waits, "; "), due: due}
}

// tooLate is an experiment whose pods do not come.
type tooLate struct {
	at     time.Time
	reason string
}

// lateExperiment finds an experiment whose pods have made no progress for longer
// than its deadline. Progress is entering the step, and each pod that becomes
// ready. It returns the earliest deadline either way.
//
// Pods that are lost once all were available are no reason: the analyses see
// what they do.
func lateExperiment(in Input) (tooLate, bool) {
	var first tooLate
	for _, spec := range releaseSpecs(in) {
		p, moving := in.State.ProgressOf(spec.Workload)
		if !moving || p.Available != nil {
			continue
		}
		e, is := experimentAt(in.State, spec, p)
		if !is {
			continue
		}
		since, missing, problem := p.Entered, "", ""
		for _, t := range podsOf(in, spec, p, e) {
			if n := t.live.Ready(); n > 0 && t.live.ReadySince[n-1].After(since) {
				since = t.live.ReadySince[n-1]
			}
			if !t.available() && missing == "" {
				missing = fmt.Sprintf("%d of %d pods of the experiment's %s are available", t.serving, t.Replicas, t.Name)
				problem = t.live.Problem
			}
		}
		at := since.Add(time.Duration(e.ProgressDeadlineSeconds) * time.Second)
		if missing == "" || !first.at.IsZero() && !at.Before(first.at) {
			continue
		}
		first = tooLate{at: at, reason: fmt.Sprintf("no progress for %ds at %s: %s", e.ProgressDeadlineSeconds, p.Name, missing)}
		if problem != "" {
			first.reason += ": " + problem
		}
	}
	return first, !first.at.IsZero() && !in.Now.Before(first.at)
}

// experimentRun names the run of one analysis of an experiment.
func experimentRun(w rollout.Workload, s stage, step int, a rollout.ExperimentAnalysis) string {
	return fmt.Sprintf("%s/%s/%s", w.Name, stepName(s, step), a.Name)
}

// experimentRuns are the analyses of the experiment that a workload is at, once
// its pods are available.
func experimentRuns(s rollout.State, spec rollout.Spec, p rollout.Progress) []runOf {
	e, is := experimentAt(s, spec, p)
	if !is || p.Available == nil {
		return nil
	}
	st, _ := planOf(spec).at(p.Step)
	runs := make([]runOf, 0, len(e.Analyses))
	for _, a := range e.Analyses {
		runs = append(runs, runOf{name: experimentRun(p.Workload, st, p.Step, a), workload: p.Workload, analysis: a.Analysis, experiment: e})
	}
	return runs
}

// about says what a measurement of an experiment is about: Latest and Stable are
// the experiment's own pods, where it has such, and texts have the rest. It is
// false while pods are not known.
func (m *Measure) about(in Input, s rollout.State, spec rollout.Spec, e *rollout.Experiment) bool {
	p, _ := s.ProgressOf(spec.Workload)
	after := in
	after.State = s
	m.Texts = map[string]string{"experiment.availableAt": p.Available.Format(time.RFC3339)}
	if e.Duration != nil {
		m.Texts["experiment.finishedAt"] = p.Available.Add(*e.Duration).Format(time.RFC3339)
	}
	canary, _ := e.RunsOn(rollout.SpecCanary)
	stable, _ := e.RunsOn(rollout.SpecStable)
	for _, t := range podsOf(after, spec, p, e) {
		if t.live.PodHash == "" {
			return false
		}
		m.Texts["templates."+t.Name+".podTemplateHash"] = t.live.PodHash
		m.Texts["templates."+t.Name+".replicaset.name"] = t.live.Name
		switch t.Name {
		case canary.Name:
			m.Latest = t.live.PodHash
		case stable.Name:
			m.Stable = t.live.PodHash
		}
	}
	return true
}
