package strategies_test

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// scriptSpec has the fields of a Rollout document that scripts need.
type scriptSpec struct {
	Replicas                *int            `json:"replicas"`
	MaxSurge                string          `json:"maxSurge"`
	MaxUnavailable          string          `json:"maxUnavailable"`
	MinReadySeconds         int             `json:"minReadySeconds"`
	ProgressDeadlineSeconds int             `json:"progressDeadlineSeconds"`
	ProgressDeadlineAbort   bool            `json:"progressDeadlineAbort"`
	RollbackWindow          *int            `json:"rollbackWindow"`
	Scaling                 rollout.Scaling `json:"scaling"`
	Canary                  *struct {
		StableService              string          `json:"stableService"`
		CanaryService              string          `json:"canaryService"`
		MinPodsPerReplicaSet       int             `json:"minPodsPerReplicaSet"`
		AbortScaleDownDelaySeconds int             `json:"abortScaleDownDelaySeconds"`
		ScaleDownDelaySeconds      int             `json:"scaleDownDelaySeconds"`
		DynamicStableScale         bool            `json:"dynamicStableScale"`
		PingPong                   bool            `json:"pingPong"` // stableService and canaryService swap roles
		Settle                     string          `json:"settle"`   // if set, an HTTPRoute splits the requests
		Background                 *scriptAnalysis `json:"background"`
		Steps                      []scriptStep    `json:"steps"`

		Threshold *rollout.ProgressThreshold `json:"threshold"`
	} `json:"canary"`
	BlueGreen     *rollout.BlueGreen `json:"blueGreen"`
	PrePromotion  *scriptAnalysis    `json:"prePromotion"`
	PostPromotion *scriptAnalysis    `json:"postPromotion"`
	Watch         *scriptAnalysis    `json:"watch"`
}

type scriptStep struct {
	Name      string `json:"name"`
	SetWeight *int   `json:"setWeight"`
	Pause     *struct {
		Duration  string `json:"duration"`
		Timeout   string `json:"timeout"`
		OnTimeout string `json:"onTimeout"`
	} `json:"pause"`
	Analysis       *scriptAnalysis      `json:"analysis"`
	SetCanaryScale *rollout.CanaryScale `json:"setCanaryScale"`
	Match          *bool                `json:"match"`  // false ends the match
	Header         string               `json:"header"` // the value of X-Canary in requests to the new version
	Experiment     *scriptExperiment    `json:"experiment"`
}

// scriptAnalysis is an analysis whose metrics differ only in their names.
type scriptAnalysis struct {
	Metrics      []string `json:"metrics"`
	StartingStep int      `json:"startingStep"`
	Interval     string   `json:"interval"` // default 1m
	Count        int      `json:"count"`
	FailureLimit int      `json:"failureLimit"`
	SuccessLimit int      `json:"consecutiveSuccessLimit"`
	DryRun       []string `json:"dryRun"`
	For          string   `json:"for"` // the length of a watch
}

func (a *scriptAnalysis) read(t *testing.T) *rollout.Analysis {
	t.Helper()
	if a == nil {
		return nil
	}
	out, errors := &rollout.Analysis{StartingStep: a.StartingStep}, 4
	if a.For != "" { // as in package render
		out.For, errors = readDuration(t, a.For), math.MaxInt32
	}
	for _, name := range a.Metrics {
		out.Metrics = append(out.Metrics, rollout.Metric{
			Name: name, Interval: readDuration(t, cmp.Or(a.Interval, "1m")), Count: a.Count, FailureLimit: a.FailureLimit,
			ConsecutiveSuccessLimit: a.SuccessLimit, ConsecutiveErrorLimit: errors, InconclusiveLimit: errors - 4, Retention: 10,
			DryRun: slices.Contains(a.DryRun, name),
		})
	}
	return out
}

// scriptExperiment is an experiment. Each analysis has one metric, with the name of the analysis.
type scriptExperiment struct {
	Duration  string `json:"duration"`
	Deadline  int    `json:"deadline"` // default 600
	Templates []struct {
		Name     string          `json:"name"`
		SpecRef  rollout.SpecRef `json:"specRef"`
		Replicas int             `json:"replicas"`
		Weight   int             `json:"weight"`
	} `json:"templates"`
	Required []string `json:"required"` // names of required analyses
	Watching []string `json:"watching"` // names of analyses that are not required
}

func (e *scriptExperiment) read(t *testing.T) *rollout.Experiment {
	t.Helper()
	out := &rollout.Experiment{ProgressDeadlineSeconds: e.Deadline}
	if e.Deadline == 0 {
		out.ProgressDeadlineSeconds = 600
	}
	if e.Duration != "" {
		out.Duration = new(readDuration(t, e.Duration))
	}
	for _, from := range e.Templates {
		made := rollout.ExperimentTemplate{Name: from.Name, SpecRef: from.SpecRef, Replicas: max(1, from.Replicas), Weight: from.Weight}
		if made.Weight > 0 {
			made.Service = new("")
		}
		out.Templates = append(out.Templates, made)
	}
	for i, name := range append(append([]string{}, e.Required...), e.Watching...) {
		metric := rollout.Metric{Name: name, Interval: time.Minute}
		if i < len(e.Required) {
			metric.Count = 3
		}
		out.Analyses = append(out.Analyses, rollout.ExperimentAnalysis{
			Name: name, Required: i < len(e.Required), Analysis: &rollout.Analysis{Metrics: []rollout.Metric{metric}},
		})
	}
	return out
}

func readSpec(t *testing.T, data []byte, name string) rollout.Spec {
	t.Helper()
	doc := scriptSpec{MaxSurge: "25%", MaxUnavailable: "25%", ProgressDeadlineSeconds: 600, Scaling: rollout.InPlace}
	if err := yaml.UnmarshalStrict(data, &doc); err != nil {
		t.Fatalf("%s.yaml: %v", name, err)
	}
	spec := rollout.Spec{
		Name: name, Workload: rollout.Workload{Namespace: testApp.Namespace, Name: name}, Replicas: doc.Replicas,
		MaxSurge: readAmount(t, doc.MaxSurge), MaxUnavailable: readAmount(t, doc.MaxUnavailable),
		MinReadySeconds: doc.MinReadySeconds, ProgressDeadlineSeconds: doc.ProgressDeadlineSeconds,
		ProgressDeadlineAbort: doc.ProgressDeadlineAbort, RollbackWindow: doc.RollbackWindow, Scaling: doc.Scaling,
		BlueGreen: doc.BlueGreen,
	}
	if spec.BlueGreen != nil {
		spec.Scaling = rollout.Surge
		spec.BlueGreen.PrePromotion, spec.BlueGreen.PostPromotion = doc.PrePromotion.read(t), doc.PostPromotion.read(t)
		spec.BlueGreen.Watch = doc.Watch.read(t)
		return spec
	}
	spec.Canary = &rollout.Canary{Watch: doc.Watch.read(t)}
	if c := doc.Canary; c != nil {
		*spec.Canary = rollout.Canary{
			StableService: c.StableService, CanaryService: c.CanaryService, MinPodsPerReplicaSet: c.MinPodsPerReplicaSet,
			AbortScaleDownDelaySeconds: c.AbortScaleDownDelaySeconds, ScaleDownDelaySeconds: c.ScaleDownDelaySeconds,
			Steps: readSteps(t, c.Steps), Analysis: c.Background.read(t), ReplicaProgressThreshold: c.Threshold,
			Watch: spec.Canary.Watch,
		}
		if c.Settle != "" {
			spec.Scaling, spec.Canary.DynamicStableScale = rollout.Surge, c.DynamicStableScale
			spec.Canary.Traffic = &rollout.Traffic{
				MaxWeight: 100, Settle: readDuration(t, c.Settle), Routers: []rollout.Router{httpRoute(name)},
			}
		}
		if c.PingPong {
			spec.Canary.PingPong = &rollout.PingPong{PingService: c.StableService, PongService: c.CanaryService}
			spec.Canary.StableService, spec.Canary.CanaryService = "", ""
		}
	}
	return spec
}

func readSteps(t *testing.T, from []scriptStep) []rollout.Step {
	t.Helper()
	var steps []rollout.Step
	for _, s := range from {
		step := rollout.Step{Name: s.Name, SetWeight: s.SetWeight, SetCanaryScale: s.SetCanaryScale}
		if s.Match != nil {
			step.Route = &rollout.ManagedRoute{Name: rollout.MatchRoute}
			if *s.Match {
				step.Route.Matches = []rollout.Match{{Headers: []rollout.NamedMatch{{Name: "X-Staff", StringMatch: rollout.StringMatch{Exact: "yes"}}}}}
			}
		}
		if s.Header != "" {
			step.Headers = &rollout.HeaderModifier{Set: []rollout.Header{{Name: "X-Canary", Value: s.Header}}}
		}
		step.Analysis = s.Analysis.read(t)
		if s.Experiment != nil {
			step.Experiment = s.Experiment.read(t)
		}
		if s.Pause != nil {
			step.Pause = &rollout.Pause{}
			if s.Pause.Duration != "" {
				step.Pause.Duration = new(readDuration(t, s.Pause.Duration))
			}
			if s.Pause.Timeout != "" {
				step.Pause.Timeout, step.Pause.OnTimeout = new(readDuration(t, s.Pause.Timeout)), cmp.Or(s.Pause.OnTimeout, rollout.TimeoutAbort)
			}
		}
		steps = append(steps, step)
	}
	return steps
}

func readAmount(t *testing.T, text string) rollout.Amount {
	t.Helper()
	return rollout.Amount{Value: readInt(t, strings.TrimSuffix(text, "%")), Percent: strings.HasSuffix(text, "%")}
}

func readInt(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func readDuration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
