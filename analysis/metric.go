package analysis

import "time"

// Phase is the state of a measurement, of a metric or of a run.
type Phase string

// The phases, from Argo Rollouts.
const (
	Pending      Phase = "Pending" // not measured yet
	Running      Phase = "Running"
	Successful   Phase = "Successful"
	Failed       Phase = "Failed"
	Error        Phase = "Error"        // it could not be measured
	Inconclusive Phase = "Inconclusive" // neither condition holds
)

// Done reports whether nothing will change the phase any more.
func (p Phase) Done() bool { return p != "" && p != Pending && p != Running }

// Metric is one metric of a run with all arguments filled in and all defaults
// set.
type Metric struct {
	Name                    string
	InitialDelay            time.Duration // from the start of the run
	Interval                time.Duration // between measurements; 0: one measurement
	Count                   int           // measurements; 0: one without an interval, else endless
	SuccessCondition        string        // expr-lang; both "": any result is successful
	FailureCondition        string
	FailureLimit            int    // more failed measurements than that fail the metric; -1: they never do
	InconclusiveLimit       int    // likewise
	ConsecutiveErrorLimit   int    // more errors in a row than that; default 4
	ConsecutiveSuccessLimit int    // so many successes in a row pass the metric; 0: off
	DryRun                  bool   // is measured and shown, and decides nothing
	Provider                string // the provider's kind: prometheus, web, job …
	Config                  map[string]any
}
