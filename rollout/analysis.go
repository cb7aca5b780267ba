package rollout

import (
	"strings"
	"time"
)

// AnalysisPhase is the state of a measurement, metric or run.
type AnalysisPhase string

const (
	AnalysisPending      AnalysisPhase = "Pending" // not measured yet, or the result is ignored
	AnalysisRunning      AnalysisPhase = "Running"
	AnalysisSuccessful   AnalysisPhase = "Successful"
	AnalysisFailed       AnalysisPhase = "Failed"
	AnalysisErrored      AnalysisPhase = "Error"
	AnalysisInconclusive AnalysisPhase = "Inconclusive" // neither condition is true

	// AnalysisStopped means that a run ended without a verdict.
	AnalysisStopped AnalysisPhase = "Stopped"
)

// Done reports whether the phase is final.
func (p AnalysisPhase) Done() bool { return p != "" && p != AnalysisPending && p != AnalysisRunning }

// Metric is a metric with defaults filled in. All arguments have values, except arguments in Secrets and Pods.
type Metric struct {
	Name                    string
	InitialDelay            time.Duration // from the run's start to the first measurement
	Interval                time.Duration // 0: one measurement
	Count                   int           // maximum number of measurements, not counting errors; 0: no limit
	SuccessCondition        string        // in expr-lang; without conditions, each result is a success
	FailureCondition        string
	FailureLimit            int  // with more failed measurements, the metric fails; -1: no limit
	InconclusiveLimit       int  // as FailureLimit, for inconclusive measurements
	ConsecutiveErrorLimit   int  // with more errors in a row, the metric ends as Error; default 4
	ConsecutiveSuccessLimit int  // successes in a row after which the metric passes; 0: off
	Retention               int  // number of newest measurements kept; default 10
	DryRun                  bool // the verdict has no effect

	// Argo Rollouts lacks the next four fields.
	OnNoData   NoData   // how an empty result counts; default NoDataError
	MinSamples int      // with fewer samples, OnNoData applies; if OnNoData is "", the result is Pending
	StartWhen  string   // ignore results until this condition is first true; "": none
	Compare    *Compare // to compare both versions; nil: the conditions decide

	Provider string               // prometheus, web, job …
	Config   map[string]any       // the provider's settings, as in the manifest
	Secrets  map[string]SecretRef // arguments read from Secrets at each measurement

	// Pods has arguments whose values are computed at each measurement. The text Latest or Stable stands for the new or
	// stable version's pod-template-hash. Other texts contain variables, such as "{{templates.NAME.podTemplateHash}}".
	Pods map[string]string
}

// NoData sets how an empty result counts.
type NoData string

const (
	NoDataError NoData = ""     // the conditions decide; as in Argo Rollouts, most conditions then cause an error
	NoDataWait  NoData = "wait" // ignored: the metric is measured again
	NoDataPass  NoData = "pass"
	NoDataFail  NoData = "fail"
)

// Compare sets how versions are compared. A query returns [bad requests, all requests].
type Compare struct {
	// MaxIncrease is the allowed increase of the share of bad requests; 0.01 is one percentage point.
	MaxIncrease float64 `json:"maxIncrease"`
	// Confidence is 1 minus the allowed probability of a false failure, over all measurements; default 0.999.
	Confidence float64 `json:"confidence"`
	// Histogram means that queries return cumulative buckets (label le, or a native histogram), not [bad, all].
	Histogram bool `json:"histogram,omitempty"`
	// By is a label. The comparison counts the label's values, such as users, instead of requests.
	By string `json:"by,omitempty"`
	// Before, in a watch, compares with the former version at the release's start, and not with stable.
	Before bool `json:",omitempty"`
}

// SecretRef names a key of a Secret in the app's namespace.
type SecretRef struct {
	Name string `json:"name" needs:"name the Secret and its key"`
	Key  string `json:"key" needs:"name the Secret and its key"`
}

// Measurement is the result of one measurement.
type Measurement struct {
	At      time.Time     `json:"at"`
	Value   string        `json:"value,omitempty"` // as text, shortened
	Phase   AnalysisPhase `json:"phase"`
	Message string        `json:"message,omitempty"`
}

// MetricProgress is a metric's recorded progress in a run.
type MetricProgress struct {
	Metric             string        `json:"metric"`
	Phase              AnalysisPhase `json:"phase"`
	Message            string        `json:"message,omitempty"`
	DryRun             bool          `json:"dryRun,omitempty"`
	Condition          string        `json:"condition,omitempty"` // the deciding condition, if the metric did not succeed
	Count              int           `json:"count"`               // measurements without error
	Successful         int           `json:"successful,omitempty"`
	Failed             int           `json:"failed,omitempty"`
	Inconclusive       int           `json:"inconclusive,omitempty"`
	Errors             int           `json:"errors,omitempty"`
	ConsecutiveErrors  int           `json:"consecutiveErrors,omitempty"`
	ConsecutiveSuccess int           `json:"consecutiveSuccess,omitempty"`
	Evidence           *Sequential   `json:"evidence,omitempty"` // for Compare with {{elapsed}} or {{release.elapsed}}
	Measurements       []Measurement `json:"measurements,omitempty"`
}

// Last returns the newest measurement, or false.
func (p MetricProgress) Last() (Measurement, bool) {
	if len(p.Measurements) == 0 {
		return Measurement{}, false
	}
	return p.Measurements[len(p.Measurements)-1], true
}

// AnalysisRun is one run of an analysis.
type AnalysisRun struct {
	// Name is web/step-2, web/background, web/watch, web/soak (a step's name) or, in an experiment, web/step-2/errors.
	Name     string           `json:"name"`
	Release  Hash             `json:"release"`
	Started  time.Time        `json:"started"`
	Phase    AnalysisPhase    `json:"phase"`
	Message  string           `json:"message,omitempty"`
	Accepted string           `json:"accepted,omitempty"` // user who accepted an Inconclusive run
	Metrics  []MetricProgress `json:"metrics"`
}

// Same reports whether two records are of one run. Runs of another attempt start at another time.
func (r AnalysisRun) Same(o AnalysisRun) bool {
	return r.Name == o.Name && r.Release == o.Release && r.Started.Equal(o.Started)
}

// IsWatch reports whether a watch ran the analysis. An experiment's run may end in /watch, but has two slashes.
func (r AnalysisRun) IsWatch() bool {
	return strings.HasSuffix(r.Name, "/watch") && strings.Count(r.Name, "/") == 1
}

// Analysis is one analysis of a Rollout document.
type Analysis struct {
	Metrics      []Metric
	StartingStep int           // index of a background analysis' first step
	For          time.Duration `json:",omitempty"` // a watch's length; 0 for other analyses
}

// Watched returns the analysis that a watch runs after a release, or nil.
func (s Spec) Watched() *Analysis {
	switch {
	case s.Canary != nil:
		return s.Canary.Watch
	case s.BlueGreen != nil:
		return s.BlueGreen.Watch
	}
	return nil
}

// Metrics returns the metrics of all analyses, including experiments and the watch.
func (s Spec) Metrics() []Metric {
	metrics := s.ReleaseMetrics()
	if w := s.Watched(); w != nil {
		metrics = append(metrics, w.Metrics...)
	}
	return metrics
}

// ReleaseMetrics returns the metrics of analyses during a release.
func (s Spec) ReleaseMetrics() (metrics []Metric) {
	var analyses []*Analysis
	if c := s.Canary; c != nil {
		analyses = append(analyses, c.Analysis)
		for _, step := range c.Steps {
			analyses = append(analyses, step.Analysis)
			if step.Experiment != nil {
				for _, a := range step.Experiment.Analyses {
					analyses = append(analyses, a.Analysis)
				}
			}
		}
	}
	if b := s.BlueGreen; b != nil {
		analyses = append(analyses, b.PrePromotion, b.PostPromotion)
	}
	for _, a := range analyses {
		if a != nil {
			metrics = append(metrics, a.Metrics...)
		}
	}
	return metrics
}
