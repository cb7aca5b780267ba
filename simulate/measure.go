package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// meter is an Analyzer with a script's results. Metrics without a result succeed. meter needs no lock (see Process).
type meter struct {
	now   func() time.Time
	touch func(app string)

	says   map[string]reading // by metric
	done   map[string][]strategies.Measured
	counts int
}

type reading struct {
	phase rollout.AnalysisPhase
	value any
}

var phases = []rollout.AnalysisPhase{
	rollout.AnalysisSuccessful, rollout.AnalysisFailed, rollout.AnalysisInconclusive, rollout.AnalysisErrored,
}

func (m *meter) set(args, known []string) error {
	if len(args) < 2 {
		return errors.New("measure what? write measure METRIC Failed, or a value for its conditions: measure METRIC [0.2]")
	}
	text := strings.Join(args[1:], " ")
	r := reading{phase: rollout.AnalysisPhase(text)}
	if !slices.Contains(phases, r.phase) {
		r.phase = ""
		if err := json.Unmarshal([]byte(text), &r.value); err != nil {
			return fmt.Errorf(
				"measure %s: %q is neither a phase (Successful, Failed, Inconclusive, Error) nor a result in JSON",
				args[0], text)
		}
	}
	m.says[args[0]] = r
	return oneOf("metric", strings.TrimPrefix(args[0], "stable:"), known)
}

// Measure implements reconciler.Analyzer. The results are available immediately.
func (m *meter) Measure(app rollout.App, _ []rollout.AnalysisRun, due []strategies.Measure) {
	if len(due) == 0 {
		return
	}
	for _, d := range due {
		got := strategies.Result{At: m.now(), Samples: -1, Phase: rollout.AnalysisSuccessful}
		if r, said := m.says[d.Metric.Name]; said {
			if got.Phase, got.Value = r.phase, r.value; d.Metric.Compare != nil {
				got.Stable = m.says["stable:"+d.Metric.Name].value
			}
		}
		if got.Phase == rollout.AnalysisErrored {
			got.Message = "the script says that the metric cannot be measured"
		}
		m.counts++
		m.done[app.Name] = append(m.done[app.Name], d.Judge(got))
	}
	m.touch(app.Name)
}

// Measured implements reconciler.Analyzer.
func (m *meter) Measured(app string) []strategies.Measured {
	got := m.done[app]
	delete(m.done, app)
	return got
}
