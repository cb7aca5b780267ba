package analysis

import "gitrollout.dev/gitrollout/rollout"

// These types are defined in package rollout, because the state branch contains them.
type (
	Phase       = rollout.AnalysisPhase
	Metric      = rollout.Metric
	NoData      = rollout.NoData
	Compare     = rollout.Compare
	SecretRef   = rollout.SecretRef
	Measurement = rollout.Measurement
	Progress    = rollout.MetricProgress
	Run         = rollout.AnalysisRun
)

const (
	Pending      = rollout.AnalysisPending
	Running      = rollout.AnalysisRunning
	Successful   = rollout.AnalysisSuccessful
	Failed       = rollout.AnalysisFailed
	Errored      = rollout.AnalysisErrored
	Inconclusive = rollout.AnalysisInconclusive
	Stopped      = rollout.AnalysisStopped
)
