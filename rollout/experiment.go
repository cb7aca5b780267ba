package rollout

import "time"

// Experiment is a step that runs additional pods, until its duration is over and its required analyses have passed. The
// pods get users' requests only if their template has a weight.
type Experiment struct {
	Templates []ExperimentTemplate
	Analyses  []ExperimentAnalysis

	// Duration starts when all pods are available. If nil, the step ends when the required analyses have passed.
	Duration *time.Duration `json:"duration" min:"1" fix:"leave duration out to wait for the analyses with requiredForCompletion: true"`
	// ProgressDeadlineSeconds bounds the wait for the next ready pod, until all pods are available. After this time, the
	// release is rolled back. Default: the Rollout's value. Argo Rollouts has the field in its kind Experiment.
	ProgressDeadlineSeconds int `json:"progressDeadlineSeconds" own:"" min:"1" fix:"write seconds, or leave it out"`
}

// ExperimentTemplate describes one set of equal pods.
type ExperimentTemplate struct {
	Name     string  `json:"name" needs:"name the template" is:"part"`
	SpecRef  SpecRef `json:"specRef" needs:"write stable or canary" oneOf:"stable canary"`
	Replicas int     `json:"replicas" default:"1" min:"1" fix:"write 1 or more, or leave the template out"`

	// Weight is the share of requests to the pods, out of Traffic.MaxWeight, while all of them are ready.
	Weight int `json:"weight" max:"1000000"`

	Labels      map[string]string // additional labels of the pods
	Annotations map[string]string // additional annotations of the pods
	Selector    map[string]any    // additional selector of the Deployment; nil for none
	Service     *string           // name of the Service; nil: no Service; "": the Deployment's name
}

// SpecRef selects the version of a template's pods.
type SpecRef string

// The versions of pods.
const (
	SpecStable SpecRef = "stable"
	SpecCanary SpecRef = "canary"
)

// ExperimentAnalysis is one analysis of an experiment. A failure rolls the release back.
type ExperimentAnalysis struct {
	Name     string
	Required bool // the analysis must pass before the experiment ends
	*Analysis
}

// RunsOn returns the first template with pods of the version.
func (e *Experiment) RunsOn(ref SpecRef) (ExperimentTemplate, bool) {
	return Find(e.Templates, func(t ExperimentTemplate) bool { return t.SpecRef == ref })
}

// Weight returns the sum of the weights of all templates of a version, or of all for "". It is 0 without an experiment.
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
