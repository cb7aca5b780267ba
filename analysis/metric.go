package analysis

import "gitrollout.dev/gitrollout/rollout"

// The nouns of this package are kept with all others, because the state branch holds them.
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

// The phases and what an empty result means, by their short names.
const (
	Pending      = rollout.AnalysisPending
	Running      = rollout.AnalysisRunning
	Successful   = rollout.AnalysisSuccessful
	Failed       = rollout.AnalysisFailed
	Errored      = rollout.AnalysisErrored
	Inconclusive = rollout.AnalysisInconclusive
	Stopped      = rollout.AnalysisStopped

	NoDataError = rollout.NoDataError
	NoDataWait  = rollout.NoDataWait
	NoDataPass  = rollout.NoDataPass
	NoDataFail  = rollout.NoDataFail
)
