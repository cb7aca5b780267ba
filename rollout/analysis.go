package rollout

import (
	"strings"
	"time"
)

// AnalysisPhase is the state of a measurement, a metric or a run.
type AnalysisPhase string

// Argo Rollouts lacks AnalysisStopped.
const (
	AnalysisPending      AnalysisPhase = "Pending" // not measured yet, or the measurement was ignored
	AnalysisRunning      AnalysisPhase = "Running"
	AnalysisSuccessful   AnalysisPhase = "Successful"
	AnalysisFailed       AnalysisPhase = "Failed"
	AnalysisErrored      AnalysisPhase = "Error"        // measurements could not be made
	AnalysisInconclusive AnalysisPhase = "Inconclusive" // neither the success nor the failure condition holds

	// AnalysisStopped means that the release ended before a verdict.
	AnalysisStopped AnalysisPhase = "Stopped"
)

// Done reports whether the phase is final.
func (p AnalysisPhase) Done() bool { return p != "" && p != AnalysisPending && p != AnalysisRunning }

// Metric is one metric of an analysis, with defaults. All arguments except Secrets and Pods have their values.
type Metric struct {
	Name                    string
	InitialDelay            time.Duration // time from the start of the run to the first measurement
	Interval                time.Duration // time between measurements; 0: one measurement
	Count                   int           // measurements until the metric ends, not counting errors; 0: no limit
	SuccessCondition        string        // an expr-lang condition; without both conditions, each result is a success
	FailureCondition        string
	FailureLimit            int  // above this number of failed measurements, the metric fails; -1: no limit
	InconclusiveLimit       int  // like FailureLimit, but for inconclusive measurements
	ConsecutiveErrorLimit   int  // above this number of errors in a row, the metric ends as Error; default 4
	ConsecutiveSuccessLimit int  // the metric passes after this many successes in a row; 0: off
	Retention               int  // number of newest measurements that are kept; default 10
	DryRun                  bool // the metric is measured and shown, but its verdict has no effect

	// Argo Rollouts does not have these fields:
	OnNoData   NoData   // how an empty result counts; default NoDataError
	MinSamples int      // with fewer samples, OnNoData applies (default: no verdict yet); 0: no minimum
	StartWhen  string   // results are ignored until this condition is true once; "": no result is ignored
	Compare    *Compare // set if the metric compares both versions; nil: the conditions decide

	Provider string               // the kind of provider: prometheus, web, job …
	Config   map[string]any       // settings of the provider, as in the manifest
	Secrets  map[string]SecretRef // arguments whose values are read from Secrets at each measurement

	// Pods has arguments whose values each measurement computes. Latest and Stable stand for the pod-template-hash of the
	// new and the stable version. Other values have variables, such as "{{templates.NAME.podTemplateHash}}".
	Pods map[string]string
}

// NoData sets how an empty result counts.
type NoData string

// The values of Metric.OnNoData.
const (
	NoDataError NoData = ""     // the conditions are evaluated: most then give an error, as in Argo Rollouts
	NoDataWait  NoData = "wait" // the result is ignored, and the measurement is repeated
	NoDataPass  NoData = "pass" // the result counts as successful
	NoDataFail  NoData = "fail" // the result counts as failed
)

// Compare sets how two versions are compared. Each result is [bad requests, all requests].
type Compare struct {
	// MaxIncrease is the allowed increase of the share of bad requests; 0.01 is one percentage point.
	MaxIncrease float64 `json:"maxIncrease"`
	// Confidence is 1 minus the allowed probability of a false failure, over all measurements; default 0.999.
	Confidence float64 `json:"confidence"`
	// Histogram means that the query returns cumulative buckets (label le, or a native histogram) instead of [bad, all].
	Histogram bool `json:"histogram,omitempty"`
	// By is a label, such as user. The numbers count distinct values of this label instead of requests.
	By string `json:"by,omitempty"`
	// Before means that the version before the release is compared, at the time before the release, instead of stable.
	Before bool `json:",omitempty"`
}

// SecretRef names one key of a Secret in the app's namespace.
type SecretRef struct {
	Name string `json:"name" needs:"name the Secret and its key"`
	Key  string `json:"key" needs:"name the Secret and its key"`
}

// Measurement is the result of one measurement.
type Measurement struct {
	At      time.Time     `json:"at"`
	Value   string        `json:"value,omitempty"` // the result as text, shortened
	Phase   AnalysisPhase `json:"phase"`
	Message string        `json:"message,omitempty"`
}

// MetricProgress is a metric's progress in a run, recorded to survive a restart.
type MetricProgress struct {
	Metric             string        `json:"metric"`
	Phase              AnalysisPhase `json:"phase"`
	Message            string        `json:"message,omitempty"`
	DryRun             bool          `json:"dryRun,omitempty"`
	Condition          string        `json:"condition,omitempty"` // the condition of a metric that ended without success
	Count              int           `json:"count"`               // number of measurements without an error
	Successful         int           `json:"successful,omitempty"`
	Failed             int           `json:"failed,omitempty"`
	Inconclusive       int           `json:"inconclusive,omitempty"`
	Errors             int           `json:"errors,omitempty"`
	ConsecutiveErrors  int           `json:"consecutiveErrors,omitempty"`
	ConsecutiveSuccess int           `json:"consecutiveSuccess,omitempty"`
	Evidence           *Sequential   `json:"evidence,omitempty"` // of a comparison whose query covers {{elapsed}} time
	Measurements       []Measurement `json:"measurements,omitempty"`
}

// Last returns the newest measurement, or false if there is none.
func (p MetricProgress) Last() (Measurement, bool) {
	if len(p.Measurements) == 0 {
		return Measurement{}, false
	}
	return p.Measurements[len(p.Measurements)-1], true
}

// AnalysisRun is one run of an analysis: at a step, in the background, or around a blue-green switch.
type AnalysisRun struct {
	// Name is web/step-2, web/background, web/watch or, in an experiment, web/step-2/errors. For a step named soak, it is
	// web/soak.
	Name     string           `json:"name"`
	Release  Hash             `json:"release"`
	Started  time.Time        `json:"started"`
	Phase    AnalysisPhase    `json:"phase"`
	Message  string           `json:"message,omitempty"`
	Accepted string           `json:"accepted,omitempty"` // the user who accepted an Inconclusive run
	Metrics  []MetricProgress `json:"metrics"`
}

// Same reports whether two records belong to one run. The runs of another attempt start at another time.
func (r AnalysisRun) Same(o AnalysisRun) bool {
	return r.Name == o.Name && r.Release == o.Release && r.Started.Equal(o.Started)
}

// IsWatch reports whether a run belongs to a watch. Names of an experiment's runs have two slashes.
func (r AnalysisRun) IsWatch() bool {
	return strings.HasSuffix(r.Name, "/watch") && strings.Count(r.Name, "/") == 1
}

// Analysis is one analysis of a Rollout document.
type Analysis struct {
	Metrics      []Metric
	StartingStep int           // index of the step at which a background analysis starts
	For          time.Duration `json:",omitempty"` // how long a watch lasts; 0 for all other analyses
}

// Watched returns the analysis after a release of the workload, or nil.
func (s Spec) Watched() *Analysis {
	switch {
	case s.Canary != nil:
		return s.Canary.Watch
	case s.BlueGreen != nil:
		return s.BlueGreen.Watch
	}
	return nil
}

// Metrics returns the metrics of all analyses in a Spec, also in experiments and the watch.
func (s Spec) Metrics() []Metric {
	metrics := s.ReleaseMetrics()
	if w := s.Watched(); w != nil {
		metrics = append(metrics, w.Metrics...)
	}
	return metrics
}

// ReleaseMetrics returns the metrics of all analyses during a release.
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
