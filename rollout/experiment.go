package rollout

import "time"

// Experiment is a step at which pods of both versions run beside the release, alike but for the version, until a time
// is over and analyses of them have passed. Users' requests do not reach them.
type Experiment struct {
	Templates []ExperimentTemplate
	Analyses  []ExperimentAnalysis

	// Duration is counted from when all of its pods are available; nil: until what is required has passed.
	Duration *time.Duration `json:"duration" min:"1" fix:"leave duration out to wait for the analyses with requiredForCompletion: true"`
	// ProgressDeadlineSeconds is how long no further pod may become available before the release goes back. Default: the
	// Rollout's. The field is that of Argo Rollouts' own kind Experiment.
	ProgressDeadlineSeconds int `json:"progressDeadlineSeconds" own:"" min:"1" fix:"write seconds, or leave it out"`
}

// ExperimentTemplate is one set of pods of an experiment.
type ExperimentTemplate struct {
	Name     string  `json:"name" needs:"name the template" is:"part"`
	SpecRef  SpecRef `json:"specRef" needs:"write stable or canary" oneOf:"stable canary"`
	Replicas int     `json:"replicas" default:"1" min:"1" fix:"write 1 or more, or leave the template out"`

	Labels      map[string]string // of the pods, in addition
	Annotations map[string]string // likewise
	Selector    map[string]any    // of the Deployment, in addition to its own label; nil for none
	Service     *string           // nil: none; "": named after the Deployment
}

// SpecRef is the version that a template's pods are of.
type SpecRef string

// The two versions.
const (
	SpecStable SpecRef = "stable"
	SpecCanary SpecRef = "canary"
)

// ExperimentAnalysis is one analysis of an experiment's pods. Whichever fails takes the release back.
type ExperimentAnalysis struct {
	Name     string
	Required bool // the experiment is not over before it has passed
	*Analysis
}

// RunsOn returns the first template of a version, false if there is none.
func (e *Experiment) RunsOn(ref SpecRef) (ExperimentTemplate, bool) {
	return Find(e.Templates, func(t ExperimentTemplate) bool { return t.SpecRef == ref })
}
