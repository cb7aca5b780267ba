package strategies

import (
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// analysisWait waits until the stage's analysis has passed. One that does not
// know has been asked about before: somebody has said that the release goes on.
type analysisWait struct{ *rollout.Analysis }

func (w analysisWait) traits() traits { return traits{number: 5, more: encoded(w.Analysis) + "|0s|\n"} }

func (analysisWait) verdict(in Input, m moving) verdict {
	if in.State.Release.Fast {
		return verdict{done: true}
	}
	runs, name := Runs(in), m.runName()
	i := slices.IndexFunc(runs, func(r rollout.AnalysisRun) bool { return r.Name == name })
	switch {
	case i < 0:
		return verdict{text: "analysis " + name + " to start"}
	case runs[i].Phase == rollout.AnalysisSuccessful:
		return verdict{done: true}
	case runs[i].Phase == rollout.AnalysisInconclusive:
		return verdict{done: true, by: promoter(in)}
	default:
		return verdict{text: fmt.Sprintf("analysis %s: %s", name, inWords(runs[i]))}
	}
}

// forecast: with interval 1m and count 5, an analysis that passes takes at least
// 4m, because the first measurement is made at once. What only begins at a
// condition, or starts late, takes longer.
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
