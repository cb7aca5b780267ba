package rollout

import "time"

// Experiment is a step that runs additional pods until its duration is over and required analyses have passed.
type Experiment struct {
	Templates []ExperimentTemplate
	Analyses  []ExperimentAnalysis

	// Duration starts when all pods are available. If nil, the required analyses end the step.
	Duration *time.Duration `json:"duration" min:"1" fix:"leave duration out to wait for the analyses with requiredForCompletion: true"`
	// ProgressDeadlineSeconds limits the time in which no further pod becomes ready. If it passes before all pods are
	// available, the release is rolled back. Default: the Rollout's.
	ProgressDeadlineSeconds int `json:"progressDeadlineSeconds" own:"" min:"1" fix:"write seconds, or leave it out"`
}

// ExperimentTemplate describes a set of equal pods.
type ExperimentTemplate struct {
	Name     string  `json:"name" needs:"name the template" is:"part"`
	SpecRef  SpecRef `json:"specRef" needs:"write stable or canary" oneOf:"stable canary"`
	Replicas int     `json:"replicas" default:"1" min:"1" fix:"write 1 or more, or leave the template out"`

	// Weight is the pods' share of requests, out of Traffic.MaxWeight, while all pods are ready.
	Weight int `json:"weight" max:"1000000"`

	Labels      map[string]string // additional labels of pods
	Annotations map[string]string // additional annotations of pods
	Selector    map[string]any    // additional labels in the Deployment's selector, or nil
	Service     *string           // nil: no Service; "": named as the Deployment
}

// SpecRef selects the version of pods.
type SpecRef string

const (
	SpecStable SpecRef = "stable"
	SpecCanary SpecRef = "canary"
)

// ExperimentAnalysis is an analysis of an experiment. If the analysis fails, the release is rolled back.
type ExperimentAnalysis struct {
	Name     string
	Required bool
	*Analysis
}

// RunsOn returns the version's first template.
func (e *Experiment) RunsOn(ref SpecRef) (ExperimentTemplate, bool) {
	return Find(e.Templates, func(t ExperimentTemplate) bool { return t.SpecRef == ref })
}

// Weight returns the sum of a version's weights or, for "", of all weights.
func (e *Experiment) Weight(ref SpecRef) (sum int) {
	if e == nil {
		return 0
	}
	for _, t := range e.Templates {
		if ref == "" || t.SpecRef == ref {
			sum += t.Weight
		}
	}
	return sum
}
