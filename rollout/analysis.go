package rollout

import "time"

// AnalysisPhase is the state of a measurement, of a metric or of a run.
type AnalysisPhase string

// The phases, from Argo Rollouts.
const (
	AnalysisPending      AnalysisPhase = "Pending" // not measured yet
	AnalysisRunning      AnalysisPhase = "Running"
	AnalysisSuccessful   AnalysisPhase = "Successful"
	AnalysisFailed       AnalysisPhase = "Failed"
	AnalysisErrored      AnalysisPhase = "Error"        // it could not be measured
	AnalysisInconclusive AnalysisPhase = "Inconclusive" // neither condition holds

	// AnalysisStopped is gitrollout's own: its release went on or back before there was a verdict.
	AnalysisStopped AnalysisPhase = "Stopped"
)

// Done reports whether nothing will change the phase any more.
func (p AnalysisPhase) Done() bool { return p != "" && p != AnalysisPending && p != AnalysisRunning }

// Metric is one metric of a run with all arguments filled in, but for those out of Secrets, and all defaults set.
type Metric struct {
	Name                    string
	InitialDelay            time.Duration // from the start of the run
	Interval                time.Duration // between measurements; 0: one measurement
	Count                   int           // measurements that are no errors; 0: without end
	SuccessCondition        string        // expr-lang; both "": any result is successful
	FailureCondition        string
	FailureLimit            int  // more failed measurements than that fail the metric; -1: they never do
	InconclusiveLimit       int  // likewise
	ConsecutiveErrorLimit   int  // more errors in a row than that; default 4
	ConsecutiveSuccessLimit int  // so many successes in a row pass the metric; 0: off
	Retention               int  // measurements that are kept; default 10
	DryRun                  bool // is measured and shown, and decides nothing

	// Not in Argo Rollouts:
	OnNoData   NoData   // what an empty result means; default NoDataError, as there
	MinSamples int      // a result about fewer is none; 0: any
	StartWhen  string   // a condition on the result that begins the measuring; "": at once
	Compare    *Compare // nil: the conditions judge

	Provider string               // the provider's kind: prometheus, web, job …
	Config   map[string]any       // its block
	Secrets  map[string]SecretRef // arguments that are looked up when it is measured

	// Pods are arguments about pods, known when it is measured: Latest or Stable for a version's
	// pod-template-hash, or a text with {{templates.NAME.podTemplateHash}} and the like.
	Pods map[string]string
}

// NoData is what an empty result means.
type NoData string

// An empty result is an error unless a metric says otherwise.
const (
	NoDataError NoData = ""     // as Argo Rollouts: mostly the condition cannot be evaluated
	NoDataWait  NoData = "wait" // it does not count, and is measured again
	NoDataPass  NoData = "pass" // it is successful
	NoDataFail  NoData = "fail" // it is failed
)

// Compare judges the new version by what the stable one does at the same time.
// The result for each version is [bad, all]: so many of all requests are bad.
type Compare struct {
	// MaxIncrease is by how much the share of bad ones may be larger, 0.01: one in a hundred.
	MaxIncrease float64 `json:"maxIncrease"`
	// Confidence is how sure a verdict is that it is; default 0.999, over all measurements of the metric together.
	Confidence float64 `json:"confidence"`
}

// SecretRef names one key of a Secret in the app's namespace.
type SecretRef struct {
	Name string `json:"name" needs:"name the Secret and its key"`
	Key  string `json:"key" needs:"name the Secret and its key"`
}

// Measurement is one result and what it is worth.
type Measurement struct {
	At      time.Time     `json:"at"`
	Value   string        `json:"value,omitempty"` // in short
	Phase   AnalysisPhase `json:"phase"`
	Message string        `json:"message,omitempty"`
}

// MetricProgress is how far one metric of a run has come. Its counters are what a restart must not forget.
type MetricProgress struct {
	Metric             string        `json:"metric"`
	Phase              AnalysisPhase `json:"phase"`
	Message            string        `json:"message,omitempty"`
	DryRun             bool          `json:"dryRun,omitempty"`
	Condition          string        `json:"condition,omitempty"` // what decided
	Count              int           `json:"count"`               // measurements that are no errors
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

// AnalysisRun is one analysis of a release: at a step, in the background, before or after a switch.
type AnalysisRun struct {
	// web/step-2, web/background, web/pre-promotion, web/post-promotion, web/step-2/errors of an experiment
	Name     string           `json:"name"`
	Release  Hash             `json:"release"`
	Started  time.Time        `json:"started"`
	Phase    AnalysisPhase    `json:"phase"`
	Message  string           `json:"message,omitempty"`
	Accepted string           `json:"accepted,omitempty"` // who let the release go on though the run is Inconclusive
	Metrics  []MetricProgress `json:"metrics"`
}

// Same reports whether two are records of one run. A release that starts in the
// second in which another one went back has runs of its own.
func (r AnalysisRun) Same(o AnalysisRun) bool {
	return r.Name == o.Name && r.Release == o.Release && r.Started.Equal(o.Started)
}

// Analysis is what a Rollout document asks to be measured at one place.
type Analysis struct {
	Metrics      []Metric
	StartingStep int // of a background analysis: the step from which on
}

// Metrics are those of all analyses of a workload, of its experiments too.
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
