package rollout

import "time"

// Experiment is a step with equal numbers of pods of both versions beside the release, until a duration is over and
// its analyses have passed. It receives no users' requests.
type Experiment struct {
	Templates []ExperimentTemplate
	Analyses  []ExperimentAnalysis

	// Duration starts when all pods of the experiment are available; nil: until required analyses have passed.
	Duration *time.Duration `json:"duration" min:"1" fix:"leave duration out to wait for the analyses with requiredForCompletion: true"`
	// ProgressDeadlineSeconds is how long no further pod may become available before a rollback; default: the
	// Rollout's. The field is from Argo Rollouts' kind Experiment.
	ProgressDeadlineSeconds int `json:"progressDeadlineSeconds" own:"" min:"1" fix:"write seconds, or leave it out"`
}

// ExperimentTemplate is one set of pods of an experiment.
type ExperimentTemplate struct {
	Name     string  `json:"name" needs:"name the template" is:"part"`
	SpecRef  SpecRef `json:"specRef" needs:"write stable or canary" oneOf:"stable canary"`
	Replicas int     `json:"replicas" default:"1" min:"1" fix:"write 1 or more, or leave the template out"`

	Labels      map[string]string // of the pods, in addition
	Annotations map[string]string // of the pods, in addition
	Selector    map[string]any    // of the Deployment, besides the experiment's label; nil for none
	Service     *string           // nil: none; "": named after the Deployment
}

// SpecRef is the version of a template's pods.
type SpecRef string

// The two versions.
const (
	SpecStable SpecRef = "stable"
	SpecCanary SpecRef = "canary"
)

// ExperimentAnalysis is one analysis of an experiment. A failed one rolls the release back.
type ExperimentAnalysis struct {
	Name     string
	Required bool // it must pass before the experiment ends
	*Analysis
}

// RunsOn returns the first template of a version.
func (e *Experiment) RunsOn(ref SpecRef) (ExperimentTemplate, bool) {
	return Find(e.Templates, func(t ExperimentTemplate) bool { return t.SpecRef == ref })
}
