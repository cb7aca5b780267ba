package strategies

import (
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// waitForAnalysis waits for an analysis, or for a promotion, by which gateInconclusive accepts an inconclusive one.
func waitForAnalysis(w plan.AnalysisWait, in Input, m workload) verdict {
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
	if m.want().Canary == 0 && m.n > 0 {
		v.broken = who + " asks about pods of the new version, and no earlier step starts one; " +
			"put a setWeight or a setCanaryScale before it"
	}
	return v
}
