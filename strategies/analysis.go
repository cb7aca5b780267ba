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
	name     string
	workload rollout.Workload
	analysis *rollout.Analysis

	experiment *rollout.Experiment // that it is of; nil: the release itself
}

// wantedRuns are the analyses of a release's workloads at their steps. A version
// that was verified before is not measured again.
func wantedRuns(s rollout.State, specs []rollout.Spec) []runOf {
	var runs []runOf
	if s.Release == nil || s.Stable == nil || s.Release.Fast || !held(s) || s.Phase == rollout.Aborting {
		return nil
	}
	for _, spec := range specs {
		p, moving := s.ProgressOf(spec.Workload)
		if !moving || p.Step >= p.Of {
			continue
		}
		if st, ok := planOf(spec).at(p.Step); ok && st.analysis != nil {
			runs = append(runs, runOf{name: fmt.Sprintf("%s/%s", spec.Workload.Name, stepName(st, p.Step)), workload: spec.Workload, analysis: st.analysis})
		}
		runs = append(runs, experimentRuns(s, spec, p)...)
		if c := spec.Canary; c != nil && c.Analysis != nil && p.Step >= c.Analysis.StartingStep {
			runs = append(runs, runOf{name: spec.Workload.Name + "/background", workload: spec.Workload, analysis: c.Analysis})
		}
	}
	return runs
}

func stepName(s stage, step int) string {
	if s.name != "" {
		return s.name
	}
	return fmt.Sprintf("step-%d", step+1)
}

func isRunOf(r rollout.AnalysisRun, w rollout.Workload) bool {
	return strings.HasPrefix(r.Name, w.Name+"/")
}

// Runs are the analyses of an app's release with what was measured since they
// were recorded.
func Runs(in Input) []rollout.AnalysisRun { return liveRuns(in) }

// liveRuns are the recorded runs with what was measured since.
func liveRuns(in Input) []rollout.AnalysisRun {
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
	specs := releaseSpecs(Input{Head: in.Head, Source: in.Source, State: d.State})
	wanted := wantedRuns(d.State, specs)
	after := in
	after.State = d.State
	live := liveRuns(after)
	runs := slices.Clone(live)
	changed := !d.State.Equal(&in.State)
	for _, w := range wanted {
		if !slices.ContainsFunc(runs, func(r rollout.AnalysisRun) bool { return r.Name == w.name }) {
			runs = append(runs, analysis.Start(w.name, d.State.Release.Hash, w.analysis.Metrics, in.Now))
			changed = true
		}
	}
	for i, r := range runs {
		if !slices.ContainsFunc(wanted, func(w runOf) bool { return w.name == r.Name }) && !r.Phase.Done() {
			runs[i] = analysis.Stop(r)
		}
		if i < len(d.State.Analyses) && worthRecording(d.State.Analyses[i], runs[i]) {
			changed = true
			if d.Subject == "" {
				d.Subject = fmt.Sprintf("%s analysis %s: %s", d.State.App, r.Name, inWords(runs[i]))
			}
		}
	}
	if changed {
		d.State.Analyses = runs
	}
	return measureDue(in, d, specs, wanted, runs)
}

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
		if p.Phase.Done() != was.Phase.Done() || p.Failed != was.Failed || p.Inconclusive != was.Inconclusive || p.ConsecutiveErrors != was.ConsecutiveErrors {
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
	var parts []string
	for _, p := range r.Metrics {
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
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// measureDue lists what is due, and when the next is.
func measureDue(in Input, d Decision, specs []rollout.Spec, wanted []runOf, runs []rollout.AnalysisRun) Decision {
	for _, w := range wanted {
		i := slices.IndexFunc(runs, func(r rollout.AnalysisRun) bool { return r.Name == w.name })
		live := in.Observed.Workloads[w.workload]
		fresh, _ := live.Find(d.State.Release.Templates[w.workload])
		stable, _ := live.Find(d.State.StableHash(w.workload))
		for _, m := range w.analysis.Metrics {
			at, ok := analysis.Due(runs[i], m)
			if !ok {
				continue
			}
			if at.After(in.Now) {
				d.Requeue = soonest(d.Requeue, at)
				continue
			}
			number := 0
			for _, p := range runs[i].Metrics {
				if p.Metric == m.Name {
					number = p.Count
				}
			}
			due := Measure{
				Run: w.name, Release: runs[i].Release, Started: runs[i].Started, Metric: m, Workload: w.workload, Latest: fresh.PodHash, Stable: stable.PodHash, Number: number,
			}
			if w.experiment != nil && !due.about(in, d.State, specOf(specs, w.workload), w.experiment) {
				continue // its ReplicaSets are not there yet, or not any more
			}
			d.Measure = append(d.Measure, due)
		}
	}
	return d
}

func specOf(specs []rollout.Spec, w rollout.Workload) rollout.Spec {
	i := slices.IndexFunc(specs, func(s rollout.Spec) bool { return s.Workload == w })
	return specs[i] // it is what the run was wanted for
}

// Record adds a measurement to the live runs of an app. One of a run that is
// over, or of another release's, changes nothing.
func Record(in Input, got Measured) []rollout.AnalysisRun {
	runs := liveRuns(in)
	if in.State.Release == nil {
		return runs
	}
	for i, r := range runs {
		if r.Name != got.Run || r.Release != got.Release || !r.Started.Equal(got.Started) {
			continue
		}
		for _, w := range wantedRuns(in.State, releaseSpecs(in)) {
			at := slices.IndexFunc(w.analysis.Metrics, func(m rollout.Metric) bool { return m.Name == got.Metric })
			if w.name != r.Name || at < 0 {
				continue
			}
			runs[i] = analysis.Record(r, w.analysis.Metrics[at], judged(w.analysis.Metrics[at], r, got))
		}
	}
	return runs
}

func judged(m rollout.Metric, r rollout.AnalysisRun, got Measured) rollout.Measurement {
	before := rollout.MetricProgress{}
	for _, p := range r.Metrics {
		if p.Metric == m.Name {
			before = p
		}
	}
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
	for _, r := range liveRuns(in) {
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
func inconclusive(in Input, w rollout.Workload) (rollout.AnalysisRun, bool) {
	wanted := wantedRuns(in.State, releaseSpecs(in))
	for _, r := range liveRuns(in) {
		if isRunOf(r, w) && r.Phase == rollout.AnalysisInconclusive && r.Accepted == "" && slices.ContainsFunc(wanted, func(o runOf) bool { return o.name == r.Name }) {
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

// gateAnalysis keeps a release where it is until the analysis of its step has
// passed, and while one does not know: then somebody has to say.
func gateAnalysis(in Input, p plan, pr rollout.Progress) verdict {
	if r, is := inconclusive(in, pr.Workload); is {
		if v := gatePromotion(in, p, pr); !v.done {
			v.text = fmt.Sprintf("somebody to decide: analysis %s is inconclusive: %s; %s", r.Name, evidence(r), v.text)
			return v
		}
		return verdict{done: true, by: promoter(in)}
	}
	s, ok := p.at(pr.Step)
	if !ok || s.wait != waitAnalysis || in.State.Release.Fast {
		return verdict{done: true}
	}
	name := fmt.Sprintf("%s/%s", pr.Workload.Name, stepName(s, pr.Step))
	for _, r := range liveRuns(in) {
		if r.Name != name {
			continue
		}
		if r.Phase == rollout.AnalysisSuccessful {
			return verdict{done: true}
		}
		return verdict{text: fmt.Sprintf("analysis %s: %s", r.Name, inWords(r))}
	}
	return verdict{text: "analysis " + name + " to start"}
}

// timedOut says which pause nobody has ended in time, if its document wants the
// release back then.
func timedOut(in Input) (string, bool) {
	if in.State.Stable == nil {
		return "", false
	}
	for _, spec := range releaseSpecs(in) {
		p, moving := in.State.ProgressOf(spec.Workload)
		if !moving {
			continue
		}
		pl := planOf(spec)
		s, ok := pl.at(p.Step)
		if !ok || s.wait != waitGate || s.timeout == 0 || s.onTimeout != rollout.TimeoutAbort || in.Now.Before(p.Entered.Add(s.timeout)) {
			continue
		}
		if !gatePromotion(in, pl, p).done && !userHolds(in, spec) {
			return fmt.Sprintf("nobody promoted it within %s at step %d/%d", s.timeout, p.Step+1, p.Of), true
		}
	}
	return "", false
}
