package strategies

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// runOf is one analysis of a release at its present step.
type runOf struct {
	workload
	name       string
	analysis   *rollout.Analysis
	experiment *rollout.Experiment // the experiment that it judges; nil: the release itself
}

// isTried reports whether a state's release is at its steps and is judged there. A verified version is not.
func isTried(s rollout.State) bool {
	return s.Release != nil && s.Stable != nil && s.Draining == nil && !s.Release.Fast && isHeld(s) &&
		s.Phase != rollout.Aborting
}

// wantedRuns returns the analyses of a release's workloads at their steps.
func wantedRuns(s rollout.State, all []workload) []runOf {
	var runs []runOf
	if !isTried(s) {
		return nil
	}
	for _, m := range all {
		if m.isThrough() {
			continue
		}
		if w, is := m.stage().Wait.(plan.AnalysisWait); is {
			runs = append(runs, runOf{workload: m, name: m.runName(), analysis: w.Analysis})
		}
		runs = append(runs, experimentRuns(m)...)
		if a := m.Background; a != nil && m.Step >= a.StartingStep {
			runs = append(runs, runOf{workload: m, name: m.label + backgroundRun, analysis: a})
		}
	}
	return runs
}

// Names of runs after the workload's. No step's run has another run's name.
const (
	backgroundRun = "/background"
	stepRun       = "/step-"
)

// labelOf returns the prefix of a workload's run names: its name, with its namespace if that is ambiguous: web@east.
func labelOf(s rollout.State, w rollout.Workload) string {
	namesake := func(p rollout.Progress) bool { return p.Workload.Name == w.Name && p.Workload != w }
	if slices.ContainsFunc(s.Progress, namesake) {
		return w.Name + "@" + w.Namespace
	}
	return w.Name
}

// runName returns the run name of a workload's stage: web/soak, or web/step-2 if the step's name is ambiguous.
func (m workload) runName() string {
	name := "/" + m.stage().Name
	if name == "/" || name == backgroundRun || strings.HasPrefix(name, stepRun) {
		name = stepRun + strconv.Itoa(m.Step+1)
	}
	return m.label + name
}

// owns reports whether a run belongs to the workload.
func (m workload) owns(r rollout.AnalysisRun) bool { return strings.HasPrefix(r.Name, m.label+"/") }

// Runs returns an app's recorded analyses with all later measurements.
func Runs(in Input) []rollout.AnalysisRun {
	runs := slices.Clone(in.State.Analyses)
	for i, r := range runs {
		for _, live := range in.Runs {
			if live.Same(r) {
				live.Accepted = r.Accepted
				runs[i] = analysis.Follow(live, r.Metrics)
			}
		}
	}
	return runs
}

// endedRuns returns the analyses of a release that becomes stable, with running ones stopped.
func endedRuns(in Input) []rollout.AnalysisRun { return rollout.Mapped(Runs(in), analysis.Stop) }

// Going returns the analyses of a state that are not over.
func Going(s rollout.State) []rollout.AnalysisRun {
	if !isTried(s) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Analyses), func(r rollout.AnalysisRun) bool { return r.Phase.Done() })
}

// withAnalyses starts a state's runs, records changes that a restart must not lose, and lists the due measurements.
func withAnalyses(in Input, d Decision) Decision {
	if d.Stale || d.State.Release == nil {
		return d
	}
	changed := !d.State.Equal(&in.State)
	in.State = d.State
	wanted := wantedRuns(d.State, workloads(in))
	runs := Runs(in)
	for _, w := range wanted {
		begun := analysis.Start(w.name, d.State.Release.Hash, w.analysis.Metrics, in.Now)
		switch i := slices.IndexFunc(runs, w.isRun); {
		case i < 0:
			runs, changed = append(runs, begun), true
		case runs[i].Phase == rollout.AnalysisStopped: // the run is wanted again
			runs[i] = begun
		default: // the document may have other metrics by now
			runs[i] = analysis.Follow(runs[i], begun.Metrics)
		}
	}
	for i, r := range runs {
		if !slices.ContainsFunc(wanted, func(w runOf) bool { return w.isRun(r) }) && !r.Phase.Done() {
			runs[i] = analysis.Stop(r)
		}
		if i < len(d.State.Analyses) && worthRecording(d.State.Analyses[i], runs[i], in.Ends) {
			changed = true
			d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s analysis %s: %s", d.State.App, r.Name, inWords(runs[i])))
		}
	}
	if changed {
		d.State.Analyses = runs
	}
	return measureDue(in, d, wanted, runs)
}

func (w runOf) isRun(r rollout.AnalysisRun) bool { return w.name == r.Name }

// worthRecording reports whether a run has changes that a restart must not lose: a verdict, a measurement towards
// one, or another number of consecutive errors. Successes are measured again, unless no process runs long enough.
func worthRecording(recorded, live rollout.AnalysisRun, all bool) bool {
	if recorded.Phase != live.Phase || len(recorded.Metrics) != len(live.Metrics) || !recorded.Same(live) {
		return true
	}
	for i, p := range live.Metrics {
		was := recorded.Metrics[i]
		if p.Metric != was.Metric {
			return true
		}
		counted := p.Failed != was.Failed || p.Inconclusive != was.Inconclusive || all && p.Count != was.Count
		if counted || p.ConsecutiveErrors != was.ConsecutiveErrors || p.Phase.Done() != was.Phase.Done() {
			return true
		}
	}
	return false
}

// inWords returns the progress of all metrics of a run, or its verdict.
func inWords(r rollout.AnalysisRun) string {
	if r.Phase.Done() {
		return strings.TrimSuffix(strings.ToLower(string(r.Phase))+": "+r.Message, ": ")
	}
	return strings.Join(rollout.Mapped(r.Metrics, metricInWords), "; ")
}

func metricInWords(p rollout.MetricProgress) string {
	text := fmt.Sprintf("%s %d ok", p.Metric, p.Successful)
	if p.Failed > 0 {
		text += fmt.Sprintf(", %d failed", p.Failed)
	}
	if p.Inconclusive > 0 {
		text += fmt.Sprintf(", %d inconclusive", p.Inconclusive)
	}
	switch p.ConsecutiveErrors {
	case 0:
	case 1:
		text += ", 1 error"
	default:
		text += fmt.Sprintf(", %d errors in a row", p.ConsecutiveErrors)
	}
	switch last, _ := p.Last(); {
	case last.Phase == rollout.AnalysisPending && last.Message != "":
		text += fmt.Sprintf(" (%s)", last.Message)
	case last.Value != "":
		text += fmt.Sprintf(" (last: %s)", last.Value)
	}
	return text
}

// measuredBad returns which analysis of the release has failed, "" if none. Runs of other releases do not count.
func measuredBad(in Input) string {
	for _, r := range Runs(in) {
		isBad := r.Phase == rollout.AnalysisFailed || r.Phase == rollout.AnalysisErrored
		if isBad && r.Release == in.State.Release.Hash {
			return fmt.Sprintf("analysis %s %s: %s", r.Name, strings.ToLower(string(r.Phase)), evidence(r))
		}
	}
	return ""
}

// evidence returns the reason of a run's phase: the metric, its condition and its last values.
func evidence(r rollout.AnalysisRun) string {
	for _, p := range r.Metrics {
		if p.DryRun || p.Phase != r.Phase {
			continue
		}
		text := fmt.Sprintf("metric %s: %s", p.Metric, p.Message)
		if p.Condition != "" {
			text += " (" + p.Condition + ")"
		}
		var values []string
		for _, m := range p.Measurements {
			if m.Value != "" {
				values = append(values, m.Value)
			}
		}
		if n := len(values); n > 0 {
			text += ", last values: " + strings.Join(values[max(0, n-3):], ", ")
		}
		return text
	}
	return r.Message
}

// inconclusive returns an inconclusive run of the present step, or in the background, that no promotion has accepted.
func inconclusive(in Input, m workload) (rollout.AnalysisRun, bool) {
	wanted := wantedRuns(in.State, workloads(in))
	for _, r := range Runs(in) {
		open := r.Phase == rollout.AnalysisInconclusive && r.Accepted == "" && m.owns(r)
		if open && slices.ContainsFunc(wanted, func(w runOf) bool { return w.isRun(r) }) {
			return r, true
		}
	}
	return rollout.AnalysisRun{}, false
}

// acceptedBy records who promoted a workload with inconclusive runs: the next step does not wait for them again.
func acceptedBy(runs []rollout.AnalysisRun, m workload, by string) []rollout.AnalysisRun {
	runs = slices.Clone(runs)
	for i, r := range runs {
		if m.owns(r) && r.Phase == rollout.AnalysisInconclusive && r.Accepted == "" {
			runs[i].Accepted = by
		}
	}
	return runs
}

// gateInconclusive keeps a release at its step while an analysis of the step is inconclusive and not promoted.
func gateInconclusive(in Input, m workload) verdict {
	r, is := inconclusive(in, m)
	if !is {
		return verdict{done: true}
	}
	v := waitForPeople(in, m)
	if !v.done {
		v.text = fmt.Sprintf("a decision: analysis %s is inconclusive: %s; %s", r.Name, evidence(r), v.text)
	}
	return v
}
