package rollout

import "time"

// AnalysisPhase is the state of a measurement, a metric or a run.
type AnalysisPhase string

// Argo Rollouts has all of these phases except AnalysisStopped.
const (
	AnalysisPending      AnalysisPhase = "Pending" // not measured yet
	AnalysisRunning      AnalysisPhase = "Running"
	AnalysisSuccessful   AnalysisPhase = "Successful"
	AnalysisFailed       AnalysisPhase = "Failed"
	AnalysisErrored      AnalysisPhase = "Error"        // a measurement could not be made
	AnalysisInconclusive AnalysisPhase = "Inconclusive" // neither condition holds

	// AnalysisStopped means that the release ended before a verdict.
	AnalysisStopped AnalysisPhase = "Stopped"
)

// Done reports whether the phase is final.
func (p AnalysisPhase) Done() bool { return p != "" && p != AnalysisPending && p != AnalysisRunning }

// Metric is one metric of an analysis, with defaults. All arguments are filled in, except the fields Secrets and Pods.
type Metric struct {
	Name                    string
	InitialDelay            time.Duration // from the start of the run
	Interval                time.Duration // time between measurements; 0: one measurement
	Count                   int           // number of measurements, without errors; 0: no limit
	SuccessCondition        string        // expr-lang; if both conditions are "", any result is successful
	FailureCondition        string
	FailureLimit            int  // above this number of failed measurements, the metric fails; -1: no limit
	InconclusiveLimit       int  // like FailureLimit, but for inconclusive measurements
	ConsecutiveErrorLimit   int  // above this number of errors in a row, the metric ends; default 4
	ConsecutiveSuccessLimit int  // this many successes in a row pass the metric; 0: off
	Retention               int  // number of kept measurements; default 10
	DryRun                  bool // measured and shown, without effect

	// Not in Argo Rollouts:
	OnNoData   NoData   // the meaning of an empty result; default NoDataError
	MinSamples int      // a result from fewer samples counts as empty; 0: any
	StartWhen  string   // results are ignored until this condition is true once; "": no result is ignored
	Compare    *Compare // nil: the conditions decide

	Provider string               // the kind of provider: prometheus, web, job …
	Config   map[string]any       // settings of the provider, as in the manifest
	Secrets  map[string]SecretRef // arguments that are read at each measurement

	// Pods are arguments that each measurement fills in, because they depend on pods. The value Latest or Stable means
	// that version's pod-template-hash. Other values have variables, such as "{{templates.NAME.podTemplateHash}}".
	Pods map[string]string
}

// NoData is the meaning of an empty result.
type NoData string

// By default an empty result is an error.
const (
	NoDataError NoData = ""     // an error, as in Argo Rollouts: most conditions need a value
	NoDataWait  NoData = "wait" // the result is ignored, and the measurement is repeated
	NoDataPass  NoData = "pass" // the result counts as successful
	NoDataFail  NoData = "fail" // the result counts as failed
)

// Compare compares the new and the stable version, measured together. A result is [bad requests, all requests].
type Compare struct {
	// MaxIncrease is the allowed increase of the share of bad requests; 0.01 is 1 %.
	MaxIncrease float64 `json:"maxIncrease"`
	// Confidence is the required statistical confidence of the metric's verdict, over all measurements; default 0.999.
	Confidence float64 `json:"confidence"`
}

// SecretRef names one key of a Secret in the app's namespace.
type SecretRef struct {
	Name string `json:"name" needs:"name the Secret and its key"`
	Key  string `json:"key" needs:"name the Secret and its key"`
}

// Measurement is one result and its phase.
type Measurement struct {
	At      time.Time     `json:"at"`
	Value   string        `json:"value,omitempty"` // the result as text, shortened
	Phase   AnalysisPhase `json:"phase"`
	Message string        `json:"message,omitempty"`
}

// MetricProgress is a metric's progress in a run. Its counters must survive a restart.
type MetricProgress struct {
	Metric             string        `json:"metric"`
	Phase              AnalysisPhase `json:"phase"`
	Message            string        `json:"message,omitempty"`
	DryRun             bool          `json:"dryRun,omitempty"`
	Condition          string        `json:"condition,omitempty"` // the condition that decided
	Count              int           `json:"count"`               // number of measurements without an error
	Successful         int           `json:"successful,omitempty"`
	Failed             int           `json:"failed,omitempty"`
	Inconclusive       int           `json:"inconclusive,omitempty"`
	Errors             int           `json:"errors,omitempty"`
	ConsecutiveErrors  int           `json:"consecutiveErrors,omitempty"`
	ConsecutiveSuccess int           `json:"consecutiveSuccess,omitempty"`
	Measurements       []Measurement `json:"measurements,omitempty"`
}

// Last returns the newest measurement.
func (p MetricProgress) Last() (Measurement, bool) {
	if len(p.Measurements) == 0 {
		return Measurement{}, false
	}
	return p.Measurements[len(p.Measurements)-1], true
}

// AnalysisRun is one analysis of a release: at a step, in the background, or before or after a blue-green switch.
type AnalysisRun struct {
	// Name is web/step-2, web/background, web/pre-promotion, web/post-promotion, or web/step-2/errors in an experiment.
	Name     string           `json:"name"`
	Release  Hash             `json:"release"`
	Started  time.Time        `json:"started"`
	Phase    AnalysisPhase    `json:"phase"`
	Message  string           `json:"message,omitempty"`
	Accepted string           `json:"accepted,omitempty"` // the user who accepted an Inconclusive run
	Metrics  []MetricProgress `json:"metrics"`
}

// Same reports whether two records belong to one run. Two tries of one release start at different times.
func (r AnalysisRun) Same(o AnalysisRun) bool {
	return r.Name == o.Name && r.Release == o.Release && r.Started.Equal(o.Started)
}

// Analysis is one analysis of a Rollout document.
type Analysis struct {
	Metrics      []Metric
	StartingStep int // the background analysis starts at the step with this index
}

// Metrics returns the metrics of all analyses, including the analyses of experiments.
func (s Spec) Metrics() (metrics []Metric) {
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
