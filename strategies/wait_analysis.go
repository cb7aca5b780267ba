package strategies

import (
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// analysisWait waits for the stage's analysis or a promotion, by which gateInconclusive accepts an inconclusive one.
type analysisWait struct{ *rollout.Analysis }

func (w analysisWait) traits() traits {
	return traits{number: 5, more: encoded(w.Analysis) + "|0s|\n", early: true}
}

func (w analysisWait) verdict(in Input, m workload) verdict {
	if in.State.Release.Fast {
		return verdict{done: true}
	}
	runs, name := Runs(in), m.runName()
	lacks := func(metric rollout.Metric) bool { return asksAbout(metric, "Latest") && m.fresh.Pin.Value == "" }
	i := slices.IndexFunc(runs, func(r rollout.AnalysisRun) bool { return r.Name == name })
	switch {
	case i >= 0 && runs[i].Phase == rollout.AnalysisSuccessful:
		return verdict{done: true}
	case i >= 0 && runs[i].Phase == rollout.AnalysisInconclusive:
		return verdict{done: true, by: runs[i].Accepted}
	case m.isOpen(in):
		return verdict{done: true, by: promoter(in)}
	case i < 0:
		return verdict{text: "analysis " + name + " to start"}
	case slices.ContainsFunc(w.Metrics, lacks):
		return m.withoutPods("analysis " + name)
	default:
		return verdict{text: fmt.Sprintf("analysis %s: %s", name, inWords(runs[i]))}
	}
}

// withoutPods waits for the first pod that an analysis needs; if no earlier step starts one, waiting does not help.
func (m workload) withoutPods(who string) verdict {
	v := verdict{text: who + ": a pod of the new version"}
	if m.want().canary == 0 && m.n > 0 {
		v.broken = who + " asks about pods of the new version, and no earlier step starts one; " +
			"put a setWeight or a setCanaryScale before it"
	}
	return v
}

// forecast sets an analysis' least time: interval 1m and count 5 take 4m, as the first measurement is immediate. A
// start condition or a late start adds to that.
func (w analysisWait) forecast(c *forecaster, s *ForecastStage) {
	s.Wait = WaitAnalysis
	for _, m := range w.Metrics {
		measurements := m.Count
		if k := m.ConsecutiveSuccessLimit; k > 0 && (measurements == 0 || k < measurements) {
			measurements = k
		}
		if !m.DryRun && !c.in.Fast {
			s.AtLeast = max(s.AtLeast, m.InitialDelay+time.Duration(max(0, measurements-1))*m.Interval)
		}
	}
}
