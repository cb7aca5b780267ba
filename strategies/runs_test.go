package strategies_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// measuredWeb returns a canary of four pods with the given steps.
func measuredWeb(namespace string, background *rollout.Analysis, steps ...rollout.Step) staged {
	return staged{version: "v1", spec: rollout.Spec{
		Name: "web", Workload: rollout.Workload{Namespace: namespace, Name: "web"}, Replicas: new(4), Scaling: rollout.Surge,
		MaxSurge: percent(25), MaxUnavailable: percent(25), ProgressDeadlineSeconds: 600,
		Canary: &rollout.Canary{Steps: steps, Analysis: background},
	}}
}

func errorsOf(name string, change func(*rollout.Metric)) *rollout.Analysis {
	m := rollout.Metric{Name: name, Interval: time.Minute, Count: 1, ConsecutiveErrorLimit: 4, Retention: 10}
	if change != nil {
		change(&m)
	}
	return &rollout.Analysis{Metrics: []rollout.Metric{m}}
}

// measuring is a simulated cluster in which the test sets the results of measurements.
type measuring struct {
	*loop
	t testing.TB
}

// newMeasuring returns a simulated cluster in which v1 is Healthy and v2 has been pushed.
func newMeasuring(t testing.TB, of ...staged) *measuring {
	t.Helper()
	m := &measuring{t: t, loop: newLoop(newHistory(source{workloads: of}), newKube())}
	m.rests(rollout.Healthy)
	m.release("v2")
	return m
}

func (m *measuring) rests(want rollout.Phase) {
	m.t.Helper()
	m.until(string(want), func() bool { return m.state.Phase == want })
}

// until advances the clock from event to event until there() is true.
func (m *measuring) until(what string, there func() bool) {
	m.t.Helper()
	for range 10 {
		if !m.rest() {
			m.t.Fatalf("the world does not come to rest: %s", dump(m.state))
		}
		if there() {
			return
		}
		if due := m.nextDue(); due.After(m.kube.Now) {
			m.kube.Now = due
		}
	}
	m.t.Fatalf("it is %s, want %s: %s", m.state.Phase, what, dump(m.state))
}

func (m *measuring) release(version string) {
	m.git.push(func(s *source) {
		for i := range s.workloads {
			s.workloads[i].version = version
		}
	})
}

// measured records the phase as the result of one due measurement.
func (l *loop) measured(due strategies.Measure, phase rollout.AnalysisPhase) {
	l.runs = strategies.Record(l.input(l.state, l.settled), strategies.Measured{Run: due.Run, Release: due.Release, Started: due.Started,
		Metric: due.Metric.Name, Measurement: rollout.Measurement{At: l.kube.Now, Phase: phase}})
}

// measure records the phase as the result of a metric's due measurements. It returns the number of these measurements.
func (m *measuring) measure(metric string, phase rollout.AnalysisPhase) (n int) {
	m.t.Helper()
	for _, due := range m.due() {
		if due.Metric.Name == metric {
			m.measured(due, phase)
			n++
		}
	}
	m.rest()
	return n
}

func (m *measuring) due() []strategies.Measure {
	return strategies.Decide(m.input(m.state, m.settled)).Measure
}

func (m *measuring) run(name string) rollout.AnalysisRun {
	m.t.Helper()
	r, found := rollout.Find(m.state.Analyses, func(r rollout.AnalysisRun) bool { return r.Name == name })
	if !found {
		m.t.Fatalf("there is no run %s: %s", name, dump(m.state.Analyses))
	}
	return r
}

// TestAnalysesOfThePastJudgeNobody checks that a failed analysis ends with its release. The analysis must not reject a version after the
// Deployment gets another name or namespace, or gets its Rollout document back.
func TestAnalysesOfThePastJudgeNobody(t *testing.T) {
	moves := func(s *source) { s.workloads[0].spec.Workload.Namespace = "other" }
	for name, change := range map[string]func(*measuring){
		"renamed": func(m *measuring) {
			m.release("v1")
			m.rests(rollout.Healthy)
			m.git.push(func(s *source) { s.workloads[0].spec.Name, s.workloads[0].spec.Workload.Name = "shop", "shop" })
		},
		"another namespace": func(m *measuring) {
			m.release("v1")
			m.rests(rollout.Healthy)
			m.git.push(moves)
		},
		"another namespace, with the version that failed": func(m *measuring) {
			m.git.push(moves)
			m.rests(rollout.Degraded) // the version fails in the new namespace as well
			m.release("v1")
		},
		"its document removed and put back": func(m *measuring) {
			for _, plain := range []bool{true, false} {
				m.release("v1")
				m.rests(rollout.Healthy)
				m.git.push(func(s *source) { s.workloads[0].plain = plain })
				m.rest()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeasuring(t, measuredWeb("shop", nil, weight(25), rollout.Step{Analysis: errorsOf("errors", nil)}))
			m.rests(rollout.Progressing)
			m.measure("errors", rollout.AnalysisFailed)
			m.rests(rollout.Degraded)
			change(m)
			m.rests(rollout.Healthy)
			if m.state.Held != nil {
				t.Errorf("held: %s", m.state.Held.Message)
			}
		})
	}
}

// TestNamesakesAreMeasuredByThemselves checks that Deployments with the same name in two namespaces have separate runs. Steps with similar
// names also have separate runs.
func TestNamesakesAreMeasuredByThemselves(t *testing.T) {
	check := rollout.Step{Analysis: errorsOf("errors", nil)}
	t.Run("namespaces", func(t *testing.T) {
		m := newMeasuring(t, measuredWeb("east", nil, weight(25), check), measuredWeb("west", nil, weight(25), check))
		m.rest()
		of := map[string]strategies.Measure{} // due measurements by namespace
		for _, due := range m.due() {
			of[due.Workload.Namespace] = due
		}
		if len(of) != 2 || of["east"].Run == of["west"].Run {
			t.Fatalf("measured: %v", of)
		}
		m.measured(of["east"], rollout.AnalysisSuccessful)
		m.rest()
		for _, p := range m.state.Progress {
			if passed := p.Step == p.Of; passed != (p.Workload.Namespace == "east") {
				t.Errorf("%s is at step %d of %d", p.Workload, p.Step, p.Of)
			}
		}
	})
	t.Run("steps", func(t *testing.T) {
		named, back := check, check
		named.Name, back.Name = "step-3", "background"
		m := newMeasuring(t, measuredWeb("shop", errorsOf("latency", nil), weight(25), named, check, back))
		m.rest()
		for step := 1; step < 4; step++ {
			if at := m.state.Progress[0].Step; at != step {
				t.Fatalf("at step %d, want %d: a verdict of another one counted", at, step)
			}
			if n := m.measure("errors", rollout.AnalysisSuccessful); n != 1 {
				t.Fatalf("%d measurements at step %d", n, step)
			}
		}
		m.rests(rollout.Healthy)
	})
}

// TestFirstMeasurementsKnowTheirPods checks that a metric is not measured until each version that the metric needs has pods.
func TestFirstMeasurementsKnowTheirPods(t *testing.T) {
	latest := func(m *rollout.Metric) { m.Pods = map[string]string{"hash": "Latest"} }
	for name, change := range map[string]func(*rollout.Metric){
		"the new version's": latest,
		"a comparison":      func(m *rollout.Metric) { m.Compare = &rollout.Compare{} },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeasuring(t, measuredWeb("shop", errorsOf("errors", change),
				rollout.Step{Pause: &rollout.Pause{Duration: new(time.Second)}}, weight(25), aPause))
			asked := 0
			m.decided = func(_ strategies.Input, d strategies.Decision) {
				for _, due := range d.Measure {
					if asked++; due.Latest == "" || due.Stable == "" {
						t.Errorf("measured about the pods %q and %q", due.Latest, due.Stable)
					}
				}
			}
			m.rests(rollout.Paused)
			m.kube.Now = m.kube.Now.Add(time.Minute)
			m.rest()
			if asked == 0 || m.state.Progress[0].Step != 2 {
				t.Errorf("at step %d, measured %d times", m.state.Progress[0].Step, asked)
			}
		})
	}
	t.Run("a step that can have none", func(t *testing.T) {
		m := newMeasuring(t, measuredWeb("shop", nil, rollout.Step{Analysis: errorsOf("errors", latest)}, weight(25)))
		m.rests(rollout.Stalled)
		if want := "no earlier step starts"; !strings.Contains(m.state.Reason, want) {
			t.Errorf("reason %q, want %q", m.state.Reason, want)
		}
	})
}

func endless(m *rollout.Metric) { m.Count = 0 }

// TestChangedMetricsAreMeasured checks that metrics added during a release are measured, and that removed metrics have no effect.
func TestChangedMetricsAreMeasured(t *testing.T) {
	for _, first := range []*rollout.Analysis{errorsOf("errors", endless), errorsOf("errors", nil), nil} {
		m := newMeasuring(t, measuredWeb("shop", first, weight(25), aPause))
		m.rests(rollout.Paused)
		m.measure("errors", rollout.AnalysisSuccessful)
		edit := func(a *rollout.Analysis) {
			m.git.push(func(s *source) { s.workloads[0].editCanary(func(c *rollout.Canary) { c.Analysis = a }) })
			m.rest()
		}
		edit(errorsOf("latency", endless))
		if due := m.due(); len(due) != 1 || due[0].Metric.Name != "latency" {
			t.Fatalf("due after a change: %+v, runs %s", due, dump(m.state.Analyses))
		}
		edit(nil)
		compare.CheckNamed(t, "an analysis that is no longer asked for", rollout.AnalysisStopped, m.run("web/background").Phase)
		edit(errorsOf("saturation", endless))
		if n := m.measure("saturation", rollout.AnalysisFailed); n != 1 {
			t.Fatalf("%d measurements of a metric that is asked for again: %s", n, dump(m.state.Analyses))
		}
		m.rests(rollout.Degraded)
	}
}

// TestStoppedIsNotSuccessful checks that an analysis does not count as successful if the end of its release stops the analysis.
func TestStoppedIsNotSuccessful(t *testing.T) {
	m := newMeasuring(t, measuredWeb("shop", errorsOf("errors", endless), weight(25), aPause))
	m.rests(rollout.Paused)
	m.measure("errors", rollout.AnalysisSuccessful)
	m.git.push(func(s *source) {
		s.promotion = &rollout.Promotion{Release: m.state.Release.Hash, Decision: rollout.Abort, Author: "Ann", Digest: "1"}
	})
	m.rests(rollout.Degraded)
	r := m.run("web/background")
	if r.Phase != rollout.AnalysisStopped || r.Metrics[0].Phase != rollout.AnalysisStopped {
		t.Errorf("the run of an aborted release is %s, its metric %s", r.Phase, r.Metrics[0].Phase)
	}
}

// TestTimeoutPromotesPastDoubt checks a pause with onTimeout: promote. After the timeout, a release with an inconclusive analysis continues
// without a promotion file.
func TestTimeoutPromotesPastDoubt(t *testing.T) {
	timeout := time.Hour
	pause := rollout.Step{Pause: &rollout.Pause{Timeout: &timeout, OnTimeout: rollout.TimeoutPromote}}
	m := newMeasuring(t, measuredWeb("shop", errorsOf("errors", nil), weight(25), pause))
	m.rests(rollout.Paused)
	m.measure("errors", rollout.AnalysisInconclusive)
	if all := strategies.Explain(m.input(m.state, true)); !strings.Contains(all[0].Waiting, "inconclusive") {
		t.Errorf("waits for %q", all[0].Waiting)
	}
	m.kube.Now = m.kube.Now.Add(timeout)
	m.rests(rollout.Healthy)
}

// TestMeasuredTextsArePrintable checks measurements with NUL characters, escapes and long texts. The resulting rollback must be recorded,
// and the recorded state must stay small.
func TestMeasuredTextsArePrintable(t *testing.T) {
	m := newMeasuring(t, measuredWeb("shop", nil, weight(25), rollout.Step{Analysis: errorsOf("errors",
		func(m *rollout.Metric) { m.SuccessCondition = "result == 'ok'" })}))
	var subjects []string
	m.commits = func(_, _ rollout.State, subject string) { subjects = append(subjects, subject) }
	m.rests(rollout.Progressing)
	for _, due := range m.due() {
		m.runs = strategies.Record(m.input(m.state, m.settled),
			due.Judge(strategies.Result{At: m.kube.Now, Value: "x\x00y\x1b[2J" + strings.Repeat("z\n", 5000), Samples: -1}))
	}
	m.rests(rollout.Degraded)
	data, err := m.state.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(subjects, string(data)) {
		if strings.ContainsAny(text, "\x00\x1b") || strings.Contains(text, `\0`) || strings.Contains(text, `\e`) {
			t.Errorf("recorded: %q", text)
		}
		for line := range strings.Lines(text) {
			if len(line) > 1000 {
				t.Errorf("recorded: a line of %d bytes", len(line))
			}
		}
	}
}

// TestNothingIsMeasuredAtZero checks that step and background analyses stop at 0 replicas, because missing traffic must reject no version.
// The analyses continue once pods exist again.
func TestNothingIsMeasuredAtZero(t *testing.T) {
	for name, w := range map[string]staged{
		"a step":            measuredWeb("shop", nil, weight(25), rollout.Step{Analysis: errorsOf("errors", nil)}),
		"in the background": measuredWeb("shop", errorsOf("errors", nil), weight(25), aPause),
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeasuring(t, w)
			replicas := m.git.head().workloads[0].spec.Replicas
			scale := func(n *int) {
				m.git.push(func(s *source) { s.workloads[0].spec.Replicas = n })
				if !m.rest() {
					t.Fatal("the world does not come to rest")
				}
			}
			m.rest()
			m.kube.Now = m.kube.Now.Add(time.Hour)
			m.rest()
			if due := m.due(); len(due) != 1 {
				t.Fatalf("with pods, due: %+v", due)
			}
			scale(new(0))
			m.kube.Now = m.kube.Now.Add(time.Hour)
			m.rest()
			if due := m.due(); len(due) > 0 {
				t.Errorf("without pods, due: %+v", due)
			}
			scale(replicas)
			m.rest()
			if due := m.due(); len(due) != 1 {
				t.Errorf("with pods again, due: %+v; %s", due, dump(m.state))
			}
		})
	}
}
