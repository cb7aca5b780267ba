package strategies

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

type runOf struct {
	workloads.Staged
	name       string
	analysis   *rollout.Analysis
	experiment *rollout.Experiment // nil for an analysis of the release itself
	before     time.Time           // when the watched release began; zero without a watch
}

func isTried(s rollout.State) bool {
	return s.Release != nil && s.Stable != nil && s.Draining == nil && !s.Release.Fast && workloads.IsHeld(s) &&
		s.Phase != rollout.Aborting
}

func wantedRuns(s rollout.State, all []workloads.Staged) []runOf {
	var runs []runOf
	if !isTried(s) {
		return nil
	}
	for _, m := range all {
		if m.IsThrough() {
			continue
		}
		if w, is := m.Stage().Wait.(plan.AnalysisWait); is {
			runs = append(runs, runOf{Staged: m, name: runName(m), analysis: w.Analysis})
		}
		runs = append(runs, experimentRuns(m)...)
		if a := m.Background; a != nil && m.Step >= a.StartingStep {
			runs = append(runs, runOf{Staged: m, name: m.Label + backgroundRun, analysis: a})
		}
	}
	return runs
}

func neededRuns(in Input) []runOf {
	return append(wantedRuns(in.State, stagedIn(in)), watchRuns(in)...)
}

const (
	backgroundRun = "/background"
	stepRun       = "/step-"
)

// runName returns a name such as web/soak. If a step has no name, or a name reserved for other runs, it returns
// web/step-2.
func runName(m workloads.Staged) string {
	name := "/" + m.Stage().Name
	if name == "/" || name == backgroundRun || name == watchRun || strings.HasPrefix(name, stepRun) {
		name = stepRun + strconv.Itoa(m.Step+1)
	}
	return m.Label + name
}

func owns(m workloads.Staged, r rollout.AnalysisRun) bool {
	return strings.HasPrefix(r.Name, m.Label+"/")
}

// Runs returns an app's analyses with all unrecorded measurements.
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

func endedRuns(in Input) []rollout.AnalysisRun { return rollout.Mapped(Runs(in), analysis.Stop) }

// Going returns the running analyses.
func Going(s rollout.State) []rollout.AnalysisRun {
	if !isTried(s) && s.Watch == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Analyses), func(r rollout.AnalysisRun) bool { return r.Phase.Done() })
}

func withAnalyses(in, _ Input, d Decision) Decision {
	if d.Stale || d.State.Release == nil && in.State.Watch == nil && d.State.Watch == nil {
		return d
	}
	changed := !d.State.Equal(&in.State)
	in.State = d.State
	wanted := neededRuns(in)
	runs := Runs(in)
	for _, w := range wanted {
		begun := analysis.Start(w.name, cmp.Or(d.State.Release, d.State.Stable).Hash, w.analysis.Metrics, in.Now)
		switch i := slices.IndexFunc(runs, w.isRun); {
		case i < 0:
			runs, changed = append(runs, begun), true
		case runs[i].Phase == rollout.AnalysisStopped, // the step needs the run again
			!runs[i].Phase.Done() && runs[i].Started.After(in.Now): // the clock was set back
			runs[i] = begun
		default: // users may have changed the metrics in the document
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

// worthRecording reports whether a run has a new verdict, bad measurement or number of consecutive errors. Good
// measurements count only when the process ends (all): after a crash, the next process repeats these measurements. A
// watch's errors and inconclusive measurements do not count, because they have no limit.
func worthRecording(recorded, live rollout.AnalysisRun, all bool) bool {
	if recorded.Phase != live.Phase || len(recorded.Metrics) != len(live.Metrics) || !recorded.Same(live) {
		return true
	}
	for i, p := range live.Metrics {
		was := recorded.Metrics[i]
		if p.Metric != was.Metric {
			return true
		}
		counted := p.Failed != was.Failed || all && p.Count != was.Count || !live.IsWatch() &&
			(p.Inconclusive != was.Inconclusive || p.ConsecutiveErrors != was.ConsecutiveErrors)
		if counted || p.Phase.Done() != was.Phase.Done() {
			return true
		}
	}
	return false
}

func inWords(r rollout.AnalysisRun) string {
	if r.Phase.Done() {
		return strings.TrimSuffix(strings.ToLower(string(r.Phase))+": "+r.Message, ": ")
	}
	return strings.Join(rollout.Mapped(r.Metrics, metricInWords), "; ")
}

func metricInWords(p rollout.MetricProgress) string {
	text := fmt.Sprintf("%s %d ok", p.Metric, p.Successful)
	inRow := map[bool]string{true: "error", false: "errors in a row"}[p.ConsecutiveErrors == 1]
	for i, n := range []int{p.Failed, p.Inconclusive, p.ConsecutiveErrors} {
		if n > 0 {
			text += fmt.Sprintf(", %d %s", n, []string{"failed", "inconclusive", inRow}[i])
		}
	}
	switch last, _ := p.Last(); {
	case last.Phase == rollout.AnalysisPending && last.Message != "":
		text += fmt.Sprintf(" (%s)", last.Message)
	case last.Value != "":
		text += fmt.Sprintf(" (last: %s)", last.Value)
	}
	return text
}

func measuredBad(in Input) string {
	for _, r := range Runs(in) {
		isBad := r.Phase == rollout.AnalysisFailed || r.Phase == rollout.AnalysisErrored
		if isBad && r.Release == in.State.Release.Hash {
			return fmt.Sprintf("analysis %s %s: %s", r.Name, strings.ToLower(string(r.Phase)), evidence(r))
		}
	}
	return ""
}

func evidence(r rollout.AnalysisRun) string {
	for _, p := range r.Metrics {
		if p.DryRun || p.Phase != r.Phase {
			continue
		}
		text := fmt.Sprintf("metric %s: %s", p.Metric, p.Message)
		if p.Condition != "" {
			text += " (" + p.Condition + ")"
		}
		values := rollout.Mapped(p.Measurements, func(m rollout.Measurement) string { return m.Value })
		values = slices.DeleteFunc(values, func(value string) bool { return value == "" })
		if n := len(values); n > 0 {
			text += ", last values: " + strings.Join(values[max(0, n-3):], ", ")
		}
		return text
	}
	return r.Message
}

func inconclusive(in Input, m workloads.Staged) (rollout.AnalysisRun, bool) {
	wanted := wantedRuns(in.State, stagedIn(in))
	return rollout.Find(Runs(in), func(r rollout.AnalysisRun) bool {
		open := r.Phase == rollout.AnalysisInconclusive && r.Accepted == "" && owns(m, r)
		return open && slices.ContainsFunc(wanted, func(w runOf) bool { return w.isRun(r) })
	})
}

// acceptedBy records who accepted inconclusive runs, so that no later step waits for these runs.
func acceptedBy(runs []rollout.AnalysisRun, m workloads.Staged, by string) []rollout.AnalysisRun {
	runs = slices.Clone(runs)
	for i, r := range runs {
		if owns(m, r) && r.Phase == rollout.AnalysisInconclusive && r.Accepted == "" {
			runs[i].Accepted = by
		}
	}
	return runs
}

func gateInconclusive(in Input, m workloads.Staged) verdict {
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

// Measure is a measurement that is due.
type Measure struct {
	Run      string
	Release  rollout.Hash
	Started  time.Time
	Metric   rollout.Metric
	Workload rollout.Workload
	Latest   string // pod-template-hash of the new version
	Stable   string
	Number   int // how many earlier measurements had no error; identifies this measurement
	Family   analysis.Family

	Since        time.Time // the step's start or later; earlier requests do not count
	ReleaseSince time.Time
	IsSteady     bool // the step does not change the weight

	// Texts holds arguments of an experiment's metrics, such as templates.NAME.podTemplateHash.
	Texts map[string]string

	// Before is the start of the watched release, or zero without a watch. Comparisons query the former version's
	// metric at this time.
	Before time.Time
}

// of returns m for a metric's next measurement. Since is later than the weight's start if analysis.Weigh restarted the
// window.
func (m Measure) of(so rollout.MetricProgress, metric rollout.Metric, f analysis.Family, now time.Time) Measure {
	m.Metric, m.Number, m.Family = metric, so.Count, f
	for _, at := range []*time.Time{&m.Since, &m.ReleaseSince} {
		if at.After(now) { // the clock was set back
			*at = m.Started
		}
	}
	e := so.Evidence
	if e != nil && !e.Since.After(now) {
		m.Since = rollout.Later(m.Since, e.Since)
	}
	for _, was := range so.Measurements {
		if e != nil && e.Since.After(now) && !was.At.After(now) { // requests before was.At may be counted already
			m.Since = rollout.Later(m.Since, was.At)
		}
	}
	return m
}

// Result is a provider's answer to a measurement.
type Result struct {
	At      time.Time
	Value   any                   // nil: no data
	Stable  any                   // stable's value, if the metric compares versions
	Samples int                   // number of samples in Value; negative if unknown
	Phase   rollout.AnalysisPhase // the provider's verdict, or Error; "" if the conditions decide
	Message string
}

// Measured is a judged measurement of a run.
type Measured struct {
	Run     string
	Release rollout.Hash
	Started time.Time
	Metric  string
	rollout.Measurement
	Look  *analysis.Look // the counts of a comparison, or nil
	Since time.Time      // when the present weight began; zero while the weight changes
}

// Judge evaluates a result by the metric's conditions or comparison. Workers call Judge, because users' conditions may
// be slow.
func (m Measure) Judge(r Result) Measured {
	out := Measured{Run: m.Run, Release: m.Release, Started: m.Started, Metric: m.Metric.Name}
	if m.IsSteady {
		out.Since = m.Since
	}
	before := rollout.MetricProgress{Count: m.Number}
	switch {
	case r.Phase != "":
		out.Measurement = rollout.Measurement{At: r.At, Phase: r.Phase}
	case m.Metric.Compare != nil:
		out.Measurement, out.Look = analysis.JudgeComparison(m.Metric, m.Family, before, m.Started, r.Value, r.Stable, r.At)
	default:
		out.Measurement = analysis.Judge(m.Metric, before, r.Value, r.Samples, r.At)
	}
	out.Message, out.Value = rollout.Printable(cmp.Or(r.Message, out.Message)), rollout.Printable(out.Value)
	out.At = rollout.Second(r.At)
	return out
}

func measureDue(in Input, d Decision, wanted []runOf, runs []rollout.AnalysisRun) Decision {
	for _, w := range wanted {
		if w.Exists && w.N == 0 && w.experiment == nil {
			continue
		}
		r := runs[slices.IndexFunc(runs, w.isRun)]
		for _, metric := range w.analysis.Metrics {
			at, ok := analysis.Due(r, metric, in.Now)
			if !ok {
				continue
			}
			if at.After(in.Now) {
				d.Requeue = rollout.Soonest(d.Requeue, at)
				continue
			}
			so, _ := rollout.Find(r.Metrics, func(p rollout.MetricProgress) bool { return p.Metric == metric.Name })
			due := Measure{
				Run: w.name, Release: r.Release, Started: r.Started, Since: w.Entered, ReleaseSince: w.before,
				Workload: w.Workload, Latest: w.Fresh.Pin.Value, Stable: w.Stable.Pin.Value,
				Before: w.before, IsSteady: isSteady(w.Staged)}
			if w.before.IsZero() {
				due.ReleaseSince = in.State.Release.Since
			} else {
				due.Since = r.Started
			}
			exists := w.experiment == nil || due.about(in, w)
			due = due.of(so, metric, familyOf(rivals(in, w, wanted), metric), in.Now)
			if exists && !due.lacksPods() { // the ReplicaSets exist
				d.Measure = append(d.Measure, due)
			}
		}
	}
	return d
}

// Due returns the measurements that are due in the recorded state.
func Due(in Input) []Measure {
	in = in.prepared()
	in.State = workloads.Reopened(in.State)
	return withAnalyses(in, in, Decision{State: in.State}).Measure
}

// Record returns the app's runs after adding a measurement. It ignores a measurement whose run or release has ended.
func Record(in Input, got Measured) []rollout.AnalysisRun {
	in = in.prepared()
	runs := Runs(in)
	wanted := neededRuns(in)
	for i, r := range runs {
		if r.Name != got.Run || r.Release != got.Release || !r.Started.Equal(got.Started) {
			continue
		}
		for _, w := range wanted {
			m, has := rollout.Find(w.analysis.Metrics, func(m rollout.Metric) bool { return m.Name == got.Metric })
			if has && w.isRun(r) {
				measurement, evidence := weighed(familyOf(rivals(in, w, wanted), m), relatives(in, runs, w), m, got)
				runs[i] = analysis.Record(r, m, measurement, evidence)
			}
		}
	}
	return runs
}
