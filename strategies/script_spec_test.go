package strategies

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// scriptSpec is a Rollout document, as far as the scripts need it.
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
		StableService              string       `json:"stableService"`
		CanaryService              string       `json:"canaryService"`
		MinPodsPerReplicaSet       int          `json:"minPodsPerReplicaSet"`
		AbortScaleDownDelaySeconds int          `json:"abortScaleDownDelaySeconds"`
		ScaleDownDelaySeconds      int          `json:"scaleDownDelaySeconds"`
		Steps                      []scriptStep `json:"steps"`
	} `json:"canary"`
	BlueGreen *rollout.BlueGreen `json:"blueGreen"`
}

type scriptStep struct {
	Name      string `json:"name"`
	SetWeight *int   `json:"setWeight"`
	Pause     *struct {
		Duration string `json:"duration"`
	} `json:"pause"`
	SetCanaryScale *rollout.CanaryScale `json:"setCanaryScale"`
}

func readSpec(t *testing.T, data []byte, name string) rollout.Spec {
	t.Helper()
	doc := scriptSpec{MaxSurge: "25%", MaxUnavailable: "25%", ProgressDeadlineSeconds: 600, Scaling: rollout.InPlace}
	if err := yaml.UnmarshalStrict(data, &doc); err != nil {
		t.Fatalf("%s.yaml: %v", name, err)
	}
	spec := rollout.Spec{
		Workload: rollout.Workload{Namespace: testApp.Namespace, Name: name}, Replicas: doc.Replicas,
		MaxSurge: readAmount(t, doc.MaxSurge), MaxUnavailable: readAmount(t, doc.MaxUnavailable),
		MinReadySeconds: doc.MinReadySeconds, ProgressDeadlineSeconds: doc.ProgressDeadlineSeconds,
		ProgressDeadlineAbort: doc.ProgressDeadlineAbort, RollbackWindow: doc.RollbackWindow, Scaling: doc.Scaling,
		BlueGreen: doc.BlueGreen,
	}
	if spec.BlueGreen != nil {
		spec.Scaling = rollout.Surge
		return spec
	}
	spec.Canary = &rollout.Canary{}
	if c := doc.Canary; c != nil {
		*spec.Canary = rollout.Canary{
			StableService: c.StableService, CanaryService: c.CanaryService, MinPodsPerReplicaSet: c.MinPodsPerReplicaSet,
			AbortScaleDownDelaySeconds: c.AbortScaleDownDelaySeconds, ScaleDownDelaySeconds: c.ScaleDownDelaySeconds,
			Steps: readSteps(t, c.Steps),
		}
	}
	return spec
}

func readSteps(t *testing.T, from []scriptStep) []rollout.Step {
	t.Helper()
	var steps []rollout.Step
	for _, s := range from {
		step := rollout.Step{Name: s.Name, SetWeight: s.SetWeight, SetCanaryScale: s.SetCanaryScale}
		if s.Pause != nil {
			step.Pause = &rollout.Pause{}
			if s.Pause.Duration != "" {
				step.Pause.Duration = new(readDuration(t, s.Pause.Duration))
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
