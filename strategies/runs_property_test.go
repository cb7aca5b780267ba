package strategies_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
)

// TestAnalysesOfRandomReleases checks invariants of analyses in random releases. The releases have pushes, reverts, aborts, edited metrics,
// renames, changed namespaces and removed documents.
func TestAnalysesOfRandomReleases(t *testing.T) {
	seeds := uint64(120)
	if testing.Short() {
		seeds = 12
	}
	verdicts, retreats := 0, 0
	for seed := range seeds {
		w := newMeasuredWorld(t, seed)
		for range 60 {
			w.move()
			if !w.rest() {
				t.Fatalf("seed %d does not come to rest: %s", seed, dump(w.state))
			}
			w.measureSome()
		}
		verdicts, retreats = verdicts+w.verdicts, retreats+w.retreats
	}
	t.Logf("%d measurements were bad, %d releases went back for them", verdicts, retreats)
	if retreats < int(seeds)/2 {
		t.Errorf("%d releases of %d worlds were taken back by an analysis: the test shows little", retreats, seeds)
	}
}

// measuredWorld is a random simulation of an app with one or two workloads that have analyses.
type measuredWorld struct {
	*loop
	t                  *testing.T
	seed               uint64
	rng                *rand.Rand
	bad                bool // a measurement of the release in flight has failed
	verdicts, retreats int
}

func newMeasuredWorld(t *testing.T, seed uint64) *measuredWorld {
	rng := rand.New(rand.NewPCG(seed, 77))
	w := &measuredWorld{t: t, seed: seed, rng: rng}
	first := source{workloads: []staged{measuredWeb("shop", w.analysis(), w.steps()...)}}
	if rng.IntN(2) == 0 {
		first.workloads = append(first.workloads, measuredWeb("other", w.analysis(), w.steps()...))
	}
	w.loop = newLoop(newHistory(first), kube.New(rng, noon))
	w.decided = w.check
	return w
}

func (w *measuredWorld) analysis() *rollout.Analysis {
	a := &rollout.Analysis{StartingStep: w.rng.IntN(3)}
	for _, name := range []string{"errors", "latency", "load"} {
		if w.rng.IntN(2) == 0 {
			m := rollout.Metric{Name: name, Interval: time.Minute, Count: w.rng.IntN(3), ConsecutiveErrorLimit: 4, Retention: 10}
			if w.rng.IntN(2) == 0 {
				m.Pods = map[string]string{"hash": []string{"Latest", "Stable"}[w.rng.IntN(2)]}
			}
			a.Metrics = append(a.Metrics, m)
		}
	}
	if len(a.Metrics) == 0 {
		return nil
	}
	return a
}

// steps returns random steps, some of them with analyses. The first step is a weight or a pause.
func (w *measuredWorld) steps() []rollout.Step {
	var steps []rollout.Step
	names := []string{"soak", "background", "step-2", "step-3", "check"}
	for i := range 2 + w.rng.IntN(4) {
		a := w.analysis()
		if i == 0 || a == nil {
			steps = append(steps, []rollout.Step{weight(25 + 25*w.rng.IntN(3)), aPause}[w.rng.IntN(2)])
			continue
		}
		for j := range a.Metrics {
			a.Metrics[j].Count = max(1, a.Metrics[j].Count)
		}
		step := rollout.Step{Analysis: a}
		if w.rng.IntN(2) == 0 {
			k := w.rng.IntN(len(names))
			step.Name, names = names[k], slices.Delete(slices.Clone(names), k, k+1)
		}
		if len(names) == 0 {
			step.Name = ""
		}
		steps = append(steps, step)
	}
	return steps
}

func (w *measuredWorld) move() {
	w.git.push(func(s *source) {
		one := &s.workloads[w.rng.IntN(len(s.workloads))]
		switch w.rng.IntN(12) {
		case 0, 1, 2:
			one.version = fmt.Sprint("v", 1+w.rng.IntN(5))
		case 3:
			one.spec.Workload.Name = []string{"web", "shop"}[w.rng.IntN(2)]
			one.spec.Name = one.spec.Workload.Name
		case 4:
			one.plain = !one.plain
		case 5, 6:
			one.editCanary(func(c *rollout.Canary) { c.Analysis = w.analysis() })
		case 7:
			one.editCanary(func(c *rollout.Canary) { c.Steps = w.steps() })
		case 8, 9, 10:
			s.promotion = &rollout.Promotion{
				Release: w.git.at(w.git.headID()).Release(), Author: "Ann", Digest: fmt.Sprint(len(w.git.commits)),
				Decision: rollout.Verbs()[w.rng.IntN(len(rollout.Verbs()))], Through: []string{rollout.Full, "1", "2"}[w.rng.IntN(3)],
			}
		default:
			w.kube.Now = w.kube.Now.Add(time.Duration(w.rng.IntN(300)) * time.Second)
		}
	})
}

// measureSome gives each due measurement a random phase and advances the clock by a minute. Sometimes the process restarts first.
func (w *measuredWorld) measureSome() {
	if w.rng.IntN(8) == 0 {
		w.runs = nil
	}
	for _, due := range strategies.Decide(w.input(w.state, w.settled)).Measure {
		phase := []rollout.AnalysisPhase{rollout.AnalysisSuccessful, rollout.AnalysisSuccessful, rollout.AnalysisSuccessful,
			rollout.AnalysisFailed, rollout.AnalysisInconclusive, rollout.AnalysisErrored}[w.rng.IntN(6)]
		if phase == rollout.AnalysisFailed {
			w.bad = true
			w.verdicts++
		}
		w.measured(due, phase)
	}
	w.kube.Now = w.kube.Now.Add(time.Minute)
	w.rest()
}

// check checks the invariants after each decision.
func (w *measuredWorld) check(in strategies.Input, d strategies.Decision) {
	was, s := in.State, d.State
	if releaseID(was) != releaseID(s) {
		defer func() { w.bad = false }()
	}
	if s.Release == nil {
		return
	}
	if s.Phase == rollout.Aborting && was.Phase != rollout.Aborting && s.Rollback.Reject && !in.Promotion.Says(rollout.Abort, s.Release.Hash) {
		if w.retreats++; !w.bad {
			w.t.Errorf("seed %d: %s, and nothing of this release was bad", w.seed, s.Reason)
		}
	}
	if h := s.Held; h != nil && h.Reason == rollout.HeldNoStable && strings.HasPrefix(h.Message, "analysis") {
		w.t.Errorf("seed %d: a first deployment is judged: %s", w.seed, h.Message)
	}
	for _, r := range s.Analyses {
		if r.Release != s.Release.Hash {
			w.t.Errorf("seed %d: release %s has the run %s of release %s", w.seed, s.Release.Hash, r.Name, r.Release)
		}
		if !r.Phase.Done() && !strategies.IsTried(s) {
			w.t.Errorf("seed %d: in phase %s the run %s goes on", w.seed, s.Phase, r.Name)
		}
	}
	w.checkDue(s, d.Measure)
	w.checkWanted(s, d)
}

// checkDue checks that each due measurement belongs to a recorded run that has not ended, and that no two workloads share a run.
func (w *measuredWorld) checkDue(s rollout.State, due []strategies.Measure) {
	of := map[string]string{} // workloads by run
	for _, m := range due {
		i := slices.IndexFunc(s.Analyses, func(r rollout.AnalysisRun) bool { return r.Name == m.Run })
		if i < 0 || s.Analyses[i].Phase.Done() {
			w.t.Errorf("seed %d: measured for the run %s, which is not under way", w.seed, m.Run)
		}
		for _, about := range m.Metric.Pods {
			if about == "Latest" && m.Latest == "" || about == "Stable" && m.Stable == "" {
				w.t.Errorf("seed %d: %s of %s is measured about no pods", w.seed, m.Metric.Name, m.Run)
			}
		}
		if other := of[m.Run]; other != "" && other != m.Workload.String() {
			w.t.Errorf("seed %d: %s and %s share the run %s", w.seed, other, m.Workload, m.Run)
		}
		of[m.Run] = m.Workload.String()
	}
}

// checkWanted checks that a step's analysis and a background analysis each have their own run with exactly their metrics.
func (w *measuredWorld) checkWanted(s rollout.State, d strategies.Decision) {
	source := w.git.at(s.Source)
	if !strategies.IsTried(s) || source == nil || d.Subject == "" || s.Held != nil {
		return
	}
	asked := map[string]int{} // numbers of analyses without a run, by their metrics' names
	key := func(a *rollout.Analysis) (names string) {
		for _, m := range a.Metrics {
			names += m.Name + " "
		}
		return names
	}
	for _, p := range s.Progress {
		spec, has := source.Spec(p.Workload)
		if !has || p.Step >= p.Of {
			continue
		}
		if a := spec.Canary.Steps[p.Step].Analysis; a != nil {
			asked[key(a)]++
		}
		if a := spec.Canary.Analysis; a != nil && p.Step >= a.StartingStep {
			asked[key(a)]++
		}
	}
	for _, r := range s.Analyses {
		names := ""
		for _, m := range r.Metrics {
			names += m.Metric + " "
		}
		asked[names]--
	}
	for names, n := range asked {
		if n > 0 {
			w.t.Errorf("seed %d: %d analyses of %sare asked for and have no run: %s", w.seed, n, names, dump(s.Analyses))
		}
	}
}
