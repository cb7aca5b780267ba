package reconciler

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// meter measures at once and successfully. Uncollected measurements are lost at the end of a process.
type meter struct {
	begun int
	lost  []strategies.Measured
	now   func() time.Time
}

func (m *meter) Measure(_ rollout.App, _ []rollout.AnalysisRun, due []strategies.Measure) {
	for _, d := range due {
		m.begun++
		m.lost = append(m.lost, strategies.Measured{Run: d.Run, Release: d.Release, Started: d.Started, Metric: d.Metric.Name,
			Measurement: rollout.Measurement{At: m.now(), Value: "0.1", Phase: rollout.AnalysisSuccessful}})
	}
}

func (m *meter) Measured(string) []strategies.Measured {
	taken := m.lost
	m.lost = nil
	return taken
}

// TestTheLastPassBeginsNothing checks that a process collects the measurements of its last pass, however long the
// pass takes. Each requested measurement is then on record.
func TestTheLastPassBeginsNothing(t *testing.T) {
	m := &meter{}
	w := newWorld(t, func(o *Options) { o.Analyzer, o.Ends = m, true })
	slow := func() time.Time { // the clock advances by seconds per reading
		w.now = w.now.Add(3 * time.Second)
		return w.now
	}
	m.now = slow
	app := strings.Replace(version("v2"), "{pause: {}}", "{analysis: {templates: [{templateName: load}]}}, {pause: {}}", 1)
	w.commit("v2", map[string]string{"apps/shop/app.yaml": app + "---\n" + `apiVersion: gitrollout.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: load}
spec:
  metrics:
  - {name: load, count: 3, interval: 1s, successCondition: result < 0.5, provider: {web: {url: "http://a.example.com"}}}
`})
	isThrough := false
	for i := 0; i < 40 && !isThrough; i++ {
		w.pass()
		must(t, w.r.RunOnce(t.Context(), slow, false))
		s := w.state()
		isThrough = len(s.Progress) > 0 && s.Progress[0].Step == 2
		m.lost = nil
		w.r = New(w.r.Options)
	}
	if m.begun != 3 || !isThrough {
		t.Errorf("%d measurements were begun of the 3 that count; the step has ended: %t", m.begun, isThrough)
	}
}
