package strategies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
)

// Measure is one measurement that is due.
type Measure struct {
	Run      string // the run's name
	Release  rollout.Hash
	Started  time.Time
	Metric   rollout.Metric
	Workload rollout.Workload
	Latest   string // pod-template-hash of the new version
	Stable   string
	Number   int // of the metric's measurements so far that are no errors: names this one

	// Of an experiment's: what templates.NAME.podTemplateHash and the like are.
	Texts map[string]string
}

// Measured is what became of one.
type Measured struct {
	Run     string
	Release rollout.Hash
	Started time.Time
	Metric  string
	At      time.Time
	Value   any                   // nil: no data
	Stable  any                   // the same of the stable version, where the metric compares
	Samples int                   // what Value is about; less than 0 if that is not known
	Phase   rollout.AnalysisPhase // of a provider that judges itself
	Message string
}

// runOf is one analysis that a release asks for at its present step.
type runOf struct {
	moving
	name       string
	analysis   *rollout.Analysis
	experiment *rollout.Experiment // that it is of; nil: the release itself
}

// isTried reports whether a state's release is at its steps and shows there what
// it is worth. A version that was verified before has shown it.
func isTried(s rollout.State) bool {
	return s.Release != nil && s.Stable != nil && !s.Release.Fast && isHeld(s) && s.Phase != rollout.Aborting
}

// wantedRuns are the analyses of a release's workloads at their steps.
func wantedRuns(s rollout.State, all []moving) []runOf {
	var runs []runOf
	if !isTried(s) {
		return nil
	}
	for _, m := range all {
		if m.isThrough() {
			continue
		}
		if w, is := m.stage().wait.(analysisWait); is {
			runs = append(runs, runOf{moving: m, name: m.runName(), analysis: w.Analysis})
		}
		runs = append(runs, experimentRuns(m)...)
		if a := m.background; a != nil && m.Step >= a.StartingStep {
			runs = append(runs, runOf{moving: m, name: m.Workload.Name + "/background", analysis: a})
		}
	}
	return runs
}

// runName names the run of a workload's stage: web/soak, web/step-2.
func (m moving) runName() string {
	return m.Workload.Name + "/" + orElse(m.stage().name, fmt.Sprintf("step-%d", m.Step+1))
}

func isRunOf(r rollout.AnalysisRun, w rollout.Workload) bool {
	return strings.HasPrefix(r.Name, w.Name+"/")
}

// Runs are the analyses of an app's release with what was measured since they
// were recorded.
func Runs(in Input) []rollout.AnalysisRun {
	runs := slices.Clone(in.State.Analyses)
	for i, r := range runs {
		for _, live := range in.Runs {
			if live.Same(r) {
				live.Accepted = r.Accepted
				runs[i] = live
			}
		}
	}
	return runs
}

// withAnalyses starts the runs that a decision's state asks for, records what
// must not be forgotten, and says what is to be measured.
func withAnalyses(in Input, d Decision) Decision {
	if d.Stale || d.State.Release == nil {
		return d
	}
	changed := !d.State.Equal(&in.State)
	in.State = d.State
	wanted := wantedRuns(d.State, movers(in))
	runs := Runs(in)
	for _, w := range wanted {
		if !slices.ContainsFunc(runs, w.isRun) {
			runs = append(runs, analysis.Start(w.name, d.State.Release.Hash, w.analysis.Metrics, in.Now))
			changed = true
		}
	}
	for i, r := range runs {
		if !slices.ContainsFunc(wanted, func(w runOf) bool { return w.isRun(r) }) && !r.Phase.Done() {
			runs[i] = analysis.Stop(r)
		}
		if i < len(d.State.Analyses) && worthRecording(d.State.Analyses[i], runs[i]) {
			changed = true
			d.Subject = orElse(d.Subject, fmt.Sprintf("%s analysis %s: %s", d.State.App, r.Name, inWords(runs[i])))
		}
	}
	if changed {
		d.State.Analyses = runs
	}
	return measureDue(in, d, wanted, runs)
}

func (w runOf) isRun(r rollout.AnalysisRun) bool { return w.name == r.Name }

// worthRecording reports whether a run holds what a restart must not forget: a
// verdict, a measurement that counts towards one, or that a row of errors has
// begun or ended. Good ones are measured again.
func worthRecording(recorded, live rollout.AnalysisRun) bool {
	if recorded.Phase != live.Phase {
		return true
	}
	for i, p := range live.Metrics {
		if i >= len(recorded.Metrics) {
			return true
		}
		was := recorded.Metrics[i]
		counted := p.Failed != was.Failed || p.Inconclusive != was.Inconclusive
		if counted || p.ConsecutiveErrors != was.ConsecutiveErrors || p.Phase.Done() != was.Phase.Done() {
			return true
		}
	}
	return false
}

// inWords says how far a run is: its worst metric.
func inWords(r rollout.AnalysisRun) string {
	if r.Phase.Done() {
		return strings.TrimSuffix(strings.ToLower(string(r.Phase))+": "+r.Message, ": ")
	}
	parts := make([]string, len(r.Metrics))
	for i, p := range r.Metrics {
		parts[i] = metricInWords(p)
	}
	return strings.Join(parts, "; ")
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

// measureDue lists what is due, and when the next is.
func measureDue(in Input, d Decision, wanted []runOf, runs []rollout.AnalysisRun) Decision {
	for _, w := range wanted {
		r := runs[slices.IndexFunc(runs, w.isRun)]
		for _, metric := range w.analysis.Metrics {
			at, ok := analysis.Due(r, metric)
			if !ok {
				continue
			}
			if at.After(in.Now) {
				d.Requeue = soonest(d.Requeue, at)
				continue
			}
			due := Measure{
				Run: w.name, Release: r.Release, Started: r.Started, Metric: metric, Number: progressOf(r, metric).Count,
				Workload: w.Workload, Latest: w.fresh.PodHash, Stable: w.stable.PodHash,
			}
			if w.experiment != nil && !due.about(in, w) {
				continue // its ReplicaSets are not there yet, or not any more
			}
			d.Measure = append(d.Measure, due)
		}
	}
	return d
}

// progressOf is how far a metric of a run has come, the zero value before its
// first measurement.
func progressOf(r rollout.AnalysisRun, m rollout.Metric) rollout.MetricProgress {
	for _, p := range r.Metrics {
		if p.Metric == m.Name {
			return p
		}
	}
	return rollout.MetricProgress{}
}

// Record adds a measurement to the live runs of an app. One of a run that is
// over, or of another release's, changes nothing.
func Record(in Input, got Measured) []rollout.AnalysisRun {
	in.plans = in.plans.orNew()
	runs := Runs(in)
	if in.State.Release == nil {
		return runs
	}
	wanted := wantedRuns(in.State, movers(in))
	for i, r := range runs {
		if r.Name != got.Run || r.Release != got.Release || !r.Started.Equal(got.Started) {
			continue
		}
		for _, w := range wanted {
			at := slices.IndexFunc(w.analysis.Metrics, func(m rollout.Metric) bool { return m.Name == got.Metric })
			if !w.isRun(r) || at < 0 {
				continue
			}
			metric := w.analysis.Metrics[at]
			runs[i] = analysis.Record(r, metric, measurementOf(metric, r, got))
		}
	}
	return runs
}

func measurementOf(m rollout.Metric, r rollout.AnalysisRun, got Measured) rollout.Measurement {
	before := progressOf(r, m)
	var out rollout.Measurement
	switch {
	case got.Phase != "":
		out = rollout.Measurement{At: got.At.UTC(), Phase: got.Phase}
	case m.Compare != nil:
		out = analysis.JudgeComparison(m, before, r.Started, got.Value, got.Stable, got.At)
	default:
		out = analysis.Judge(m, before, got.Value, got.Samples, got.At)
	}
	if got.Message != "" {
		out.Message = got.Message
	}
	out.At = rollout.Second(out.At)
	return out
}

// measuredBad says which analysis of the release has failed, if one has.
func measuredBad(in Input) (string, bool) {
	for _, r := range Runs(in) {
		if r.Phase == rollout.AnalysisFailed || r.Phase == rollout.AnalysisErrored {
			return fmt.Sprintf("analysis %s %s: %s", r.Name, strings.ToLower(string(r.Phase)), evidence(r)), true
		}
	}
	return "", false
}

// evidence is why a run is what it is: the metric, its condition and its last
// values.
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

// inconclusive finds a run of a workload's present step, or one in the background,
// that does not know and about which nobody has decided.
func inconclusive(in Input, m moving) (rollout.AnalysisRun, bool) {
	wanted := wantedRuns(in.State, movers(in))
	for _, r := range Runs(in) {
		open := r.Phase == rollout.AnalysisInconclusive && r.Accepted == "" && isRunOf(r, m.Workload)
		if open && slices.ContainsFunc(wanted, func(w runOf) bool { return w.isRun(r) }) {
			return r, true
		}
	}
	return rollout.AnalysisRun{}, false
}

// acceptedBy notes who let a workload go on though runs of it are inconclusive, so
// that nobody is asked again at the next step.
func acceptedBy(runs []rollout.AnalysisRun, w rollout.Workload, by string) []rollout.AnalysisRun {
	runs = slices.Clone(runs)
	for i, r := range runs {
		if isRunOf(r, w) && r.Phase == rollout.AnalysisInconclusive && r.Accepted == "" {
			runs[i].Accepted = by
		}
	}
	return runs
}

// gateInconclusive keeps a release where it is while an analysis of its step does
// not know: then somebody has to say.
func gateInconclusive(in Input, m moving) verdict {
	r, is := inconclusive(in, m)
	if !is {
		return verdict{done: true}
	}
	if v := waitForPeople(in, m); !v.done {
		v.text = fmt.Sprintf("somebody to decide: analysis %s is inconclusive: %s; %s", r.Name, evidence(r), v.text)
		return v
	}
	return verdict{done: true, by: promoter(in)}
}
