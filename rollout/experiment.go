package rollout

import "time"

// Experiment is a step at which pods of both versions run beside the release,
// alike but for the version, until a time is over and analyses of them have
// passed. Users' requests do not reach them.
type Experiment struct {
	Templates               []ExperimentTemplate
	Analyses                []ExperimentAnalysis
	Duration                *time.Duration // from when all of its pods are available; nil: until what is required has passed
	ProgressDeadlineSeconds int            // default: the Rollout's; seconds without a new available pod before the release goes back
}

// ExperimentTemplate is one set of pods of an experiment.
type ExperimentTemplate struct {
	Name        string
	SpecRef     SpecRef
	Replicas    int               // default 1
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

// ExperimentAnalysis is one analysis of an experiment's pods. Whichever fails
// takes the release back.
type ExperimentAnalysis struct {
	Name     string
	Required bool // the experiment is not over before it has passed
	*Analysis
}

// RunsOn returns the first template of a version, false if there is none.
func (e *Experiment) RunsOn(ref SpecRef) (ExperimentTemplate, bool) {
	for _, t := range e.Templates {
		if t.SpecRef == ref {
			return t, true
		}
	}
	return ExperimentTemplate{}, false
}
