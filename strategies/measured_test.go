package strategies_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// lab simulates a release at a step with an analysis. The cluster does not change, so decisions depend only on measurements and time.
type lab struct {
	strategies.Input
	commits int // the number of commits on the state branch
}

// newLab returns a release of v2 of web, which has ten pods, at the analysis that follows the step with weight 20 %.
func newLab(t testing.TB, metrics ...rollout.Metric) *lab {
	t.Helper()
	m := newMeasuring(t, oneWeb(func(s *rollout.Spec) {
		s.Scaling = rollout.Surge
		s.Canary.Steps = []rollout.Step{weight(20), {Analysis: &rollout.Analysis{Metrics: metrics}}}
	}).head().workloads...)
	m.until("v2 measured", func() bool { return len(m.state.Analyses) == 1 })
	return &lab{Input: m.input(m.state, true)}
}

func (l *lab) step() strategies.Decision {
	d := strategies.Decide(l.Input)
	if d.Subject != "" {
		l.State = d.State
		l.commits++
	}
	return d
}

// crash simulates a restart of the process, which loses all measurements that are not recorded in Git.
func (l *lab) crash(t testing.TB) {
	t.Helper()
	l.State, l.Runs = readAgain(t, l.State), nil
}

// live calls Decide until the analysis ends or until the given time. It makes each measurement when due, and returns the last phase.
func (l *lab) live(t testing.TB, until time.Time, measure func(strategies.Measure, time.Time) strategies.Result) rollout.AnalysisPhase {
	t.Helper()
	for range 100_000 {
		d := l.step()
		if len(d.State.Analyses) == 1 && d.State.Analyses[0].Phase.Done() {
			return d.State.Analyses[0].Phase
		}
		if d.Rollback || d.State.Phase != rollout.Progressing {
			t.Fatalf("without a verdict it is %s: %s", d.State.Phase, d.Subject)
		}
		if d.Subject != "" {
			continue
		}
		for _, m := range d.Measure {
			got := measure(m, l.Now)
			got.At = l.Now
			l.Runs = strategies.Record(l.Input, m.Judge(got))
		}
		if len(d.Measure) > 0 {
			continue
		}
		if d.Requeue.IsZero() || !d.Requeue.After(l.Now) {
			t.Fatalf("nothing is due: %s, requeue %s at %s", dump(d.State.Analyses), d.Requeue, l.Now)
		}
		if d.Requeue.After(until) {
			return rollout.AnalysisRunning
		}
		l.Now = d.Requeue
	}
	t.Fatal("it never ends")
	return ""
}

// said maps each phase to a provider's answer that leads to this phase.
var said = map[rollout.AnalysisPhase]strategies.Result{
	rollout.AnalysisSuccessful: {Value: 0.0, Samples: -1}, rollout.AnalysisFailed: {Value: 1.0, Samples: -1},
	rollout.AnalysisInconclusive: {Value: 0.5, Samples: -1},
	rollout.AnalysisErrored:      {Phase: rollout.AnalysisErrored, Message: "no answer", Samples: -1},
	rollout.AnalysisPending:      {Samples: -1},
}

// TestCrashAtEachMeasurement compares a process that crashes at one measurement with a process that does not crash. The provider's answers
// depend only on the time. Both processes must roll back at the same time. After a crash, a process repeats successful measurements. Its
// other verdicts may come later or differ, but a different verdict must not come earlier.
func TestCrashAtEachMeasurement(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	words := slices.Sorted(maps.Keys(said))
	crashes, verdicts := 0, map[rollout.AnalysisPhase]int{}
	sequences := 200
	if testing.Short() {
		sequences = 20
	}
	for range sequences {
		m := rollout.Metric{
			Name: "m", Interval: 10 * time.Second, Count: 3 + rng.IntN(8), FailureLimit: rng.IntN(4), InconclusiveLimit: rng.IntN(3),
			ConsecutiveErrorLimit: rng.IntN(4), Retention: 10, OnNoData: rollout.NoDataWait, SuccessCondition: "result < 0.3",
			FailureCondition: "result > 0.7",
		}
		start := newLab(t, m)
		odds := rng.Float64()
		sequence := make([]rollout.AnalysisPhase, 60) // the answer in each period of ten seconds
		for i := range sequence {
			sequence[i] = rollout.AnalysisSuccessful
			if i < 30 && rng.Float64() < odds {
				sequence[i] = words[rng.IntN(len(words))]
			}
		}
		live := func(crashAt int) (*lab, rollout.AnalysisPhase, int) {
			l, n := *start, 0
			phase := l.live(t, start.Now.Add(20*time.Minute), func(_ strategies.Measure, now time.Time) strategies.Result {
				if n++; n-1 == crashAt {
					l.crash(t)
				}
				i := min(int(now.Sub(start.Now)/(10*time.Second)), len(sequence)-1)
				return said[sequence[i]]
			})
			return &l, phase, n
		}
		whole, want, n := live(-1)
		verdicts[want]++
		for at := 1; at < n; at++ {
			crashes++
			l, got, _ := live(at)
			goesBack, early := want == rollout.AnalysisFailed || want == rollout.AnalysisInconclusive, l.Now.Before(whole.Now)
			switch {
			case goesBack && got == want && l.Now.Equal(whole.Now), got == rollout.AnalysisErrored && want == rollout.AnalysisErrored:
			case !goesBack && got == rollout.AnalysisErrored && early:
				t.Fatalf("%+v of %v: a crash at %d makes a row of errors longer", m, sequence[:30], at)
			case goesBack, got != want && early:
				t.Fatalf("%+v of %v: after a crash at %d it is %s at %s, without %s at %s", m, sequence[:30], at, got,
					l.Now.Sub(start.Now), want, whole.Now.Sub(start.Now))
			}
		}
	}
	t.Logf("%d crashes; verdicts without: %v", crashes, verdicts)
	for _, phase := range []rollout.AnalysisPhase{rollout.AnalysisSuccessful, rollout.AnalysisFailed,
		rollout.AnalysisInconclusive, rollout.AnalysisErrored} {
		if verdicts[phase] < sequences/50 {
			t.Errorf("only %d are %s: the test shows little", verdicts[phase], phase)
		}
	}
}

// TestAProcessForEachMeasurement checks that a new process per measurement reaches the same verdicts as one process.
func TestAProcessForEachMeasurement(t *testing.T) {
	for want, says := range map[rollout.AnalysisPhase][]rollout.AnalysisPhase{
		rollout.AnalysisSuccessful: {rollout.AnalysisSuccessful}, rollout.AnalysisErrored: {rollout.AnalysisErrored},
		rollout.AnalysisFailed: {rollout.AnalysisSuccessful, rollout.AnalysisFailed},
	} {
		l := newLab(t, rollout.Metric{Name: "m", Interval: 10 * time.Second, Count: 5, FailureLimit: 1, ConsecutiveErrorLimit: 3,
			Retention: 10, SuccessCondition: "result < 0.3", FailureCondition: "result > 0.7"})
		l.Ends = true
		made := 0
		for l.Now = l.Now.Add(time.Minute); !l.State.Analyses[0].Phase.Done() && made < 20; l.Now = l.Now.Add(time.Minute) {
			for _, m := range strategies.Decide(l.Input).Measure {
				r := said[says[made%len(says)]]
				made++
				r.At = l.Now
				l.Runs = strategies.Record(l.Input, m.Judge(r))
			}
			l.step()
			l.crash(t)
		}
		compare.CheckNamed(t, fmt.Sprintf("after %d measurements", made), want, l.State.Analyses[0].Phase)
	}
}

// TestElapsedSince checks that a measurement has the start times of the workload's step and of the release, also after a restart of the
// process.
func TestElapsedSince(t *testing.T) {
	l := newLab(t, rollout.Metric{Name: "m", Interval: 10 * time.Second, Count: 5, Retention: 10})
	begins := func() [2]time.Time {
		t.Helper()
		due := strategies.Decide(l.Input).Measure
		if len(due) != 1 {
			t.Fatalf("%d measurements are due", len(due))
		}
		p := l.State.Progress[0]
		compare.CheckNamed(t, "the recorded hashes of pods", [2]string{due[0].Latest, due[0].Stable}, [2]string{p.PodHash, p.StablePodHash})
		return [2]time.Time{due[0].Since, due[0].ReleaseSince}
	}
	before := begins()
	compare.CheckNamed(t, "the step and the release", [2]time.Time{l.State.Progress[0].Entered, l.State.Release.Since}, before)
	l.Now = l.Now.Add(time.Minute)
	l.crash(t)
	compare.CheckNamed(t, "after a restart", before, begins())
}

// TestClockThatWasAhead checks measurements after a clock was a day ahead and was set back. Measurements continue at their interval, and no
// measured period begins in the future. The clock was ahead at a measurement, or at the start of a window, a run or a step.
func TestClockThatWasAhead(t *testing.T) {
	const ahead = 24 * time.Hour
	answer := func(m strategies.Measure, now time.Time, lacks bool) strategies.Result {
		n := max(1, now.Sub(m.Since).Seconds())
		r := strategies.Result{At: now, Value: []any{0.0, 20 * n}, Stable: []any{0.0, 80 * n}, Samples: -1}
		if lacks {
			r.Value, r.Stable = []any{0.0, 2.0}, []any{0.0, 8.0}
		}
		return r
	}
	for name, was := range map[string]func(l *lab, measure func(lacks bool)){
		"at a measurement": func(_ *lab, measure func(bool)) { measure(false) },
		"at a new window":  func(_ *lab, measure func(bool)) { measure(true) },
		"at the begin of the run": func(l *lab, measure func(bool)) {
			l.State.Analyses, l.Runs = nil, nil
			l.step()
			measure(false)
		},
		"at the begin of the step": func(l *lab, _ func(bool)) { l.State.Progress[0].Entered = l.Now },
		"at the begin of the release": func(l *lab, measure func(bool)) {
			l.State.Progress[0].Entered, l.State.Release.Since, l.State.Analyses, l.Runs = l.Now, l.Now, nil, nil
			l.step()
			measure(false)
		},
	} {
		l := newLab(t, comparedMetric("errors"))
		due := func(lacks bool) (all []strategies.Measure) {
			all = strategies.Decide(l.Input).Measure
			for _, m := range all {
				l.Runs = strategies.Record(l.Input, m.Judge(answer(m, l.Now, lacks)))
			}
			l.step()
			return all
		}
		due(false)
		l.Now = l.Now.Add(10 * time.Second)
		due(false)
		l.Now = l.Now.Add(ahead)
		was(l, func(lacks bool) { due(lacks) })
		l.Now = l.Now.Add(10*time.Second - ahead)
		measured := 0
		for second := range 300 {
			for _, m := range due(false) {
				if measured++; second > 20 && min(l.Now.Sub(m.Since), l.Now.Sub(m.ReleaseSince)) < 10*time.Second {
					t.Errorf("%s: after %ds the period begins at %s, now is %s", name, second, m.Since, l.Now)
				}
			}
			l.Now = l.Now.Add(time.Second)
		}
		if measured < 30 || measured > 32 {
			t.Errorf("%s: %d measurements in five minutes", name, measured)
		}
		p := strategies.Runs(l.Input)[0].Metrics[0]
		if e := p.Evidence; e == nil || e.Since.After(l.Now) || e.Canary < 2000 {
			t.Errorf("%s: evidence %+v", name, e)
		}
	}
}
