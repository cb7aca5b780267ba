package rollout_test

import (
	"slices"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestMetricsOfASpec checks that Metrics returns the metrics of background analyses, steps, experiments and blue-green switches.
func TestMetricsOfASpec(t *testing.T) {
	of := func(names ...string) *rollout.Analysis {
		a := &rollout.Analysis{}
		for _, name := range names {
			a.Metrics = append(a.Metrics, rollout.Metric{Name: name})
		}
		return a
	}
	for name, c := range map[string]struct {
		spec rollout.Spec
		want []string
	}{
		"none":           {rollout.Spec{Canary: &rollout.Canary{Steps: []rollout.Step{{Pause: &rollout.Pause{}}}}}, []string{}},
		"the background": {rollout.Spec{Canary: &rollout.Canary{Analysis: of("a", "b")}}, []string{"a", "b"}},
		"steps and experiments": {rollout.Spec{Canary: &rollout.Canary{Steps: []rollout.Step{
			{Analysis: of("a")},
			{Experiment: &rollout.Experiment{Analyses: []rollout.ExperimentAnalysis{{Name: "x", Analysis: of("b")},
				{Name: "y", Analysis: of("c")}}}},
		}}}, []string{"a", "b", "c"}},
		"before and after the switch": {
			rollout.Spec{BlueGreen: &rollout.BlueGreen{PrePromotion: of("a"), PostPromotion: of("b"), Watch: of("c")}},
			[]string{"a", "b", "c"}},
	} {
		got := rollout.Mapped(c.spec.Metrics(), func(m rollout.Metric) string { return m.Name })
		slices.Sort(got)
		compare.CheckNamed(t, name, c.want, got)
	}
}
