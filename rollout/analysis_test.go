package rollout

import (
	"slices"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestMetricsOfASpec checks that Metrics returns the metrics of all analyses: of background, steps, experiments and blue-green switches.
func TestMetricsOfASpec(t *testing.T) {
	of := func(names ...string) *Analysis {
		a := &Analysis{}
		for _, name := range names {
			a.Metrics = append(a.Metrics, Metric{Name: name})
		}
		return a
	}
	for name, c := range map[string]struct {
		spec Spec
		want []string
	}{
		"none":           {Spec{Canary: &Canary{Steps: []Step{{Pause: &Pause{}}}}}, []string{}},
		"the background": {Spec{Canary: &Canary{Analysis: of("a", "b")}}, []string{"a", "b"}},
		"steps and experiments": {Spec{Canary: &Canary{Steps: []Step{
			{Analysis: of("a")},
			{Experiment: &Experiment{Analyses: []ExperimentAnalysis{{Name: "x", Analysis: of("b")}, {Name: "y", Analysis: of("c")}}}},
		}}}, []string{"a", "b", "c"}},
		"before and after the switch": {Spec{BlueGreen: &BlueGreen{PrePromotion: of("a"), PostPromotion: of("b"), Watch: of("c")}},
			[]string{"a", "b", "c"}},
	} {
		got := Mapped(c.spec.Metrics(), func(m Metric) string { return m.Name })
		slices.Sort(got)
		compare.CheckNamed(t, name, c.want, got)
	}
}
