package simulate

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// analysisTemplates has the AnalysisTemplates of random analyses: a metric measured three times, metrics without a count, and a Job.
var analysisTemplates = []any{
	analysisTemplate("errors", map[string]any{"interval": "20s", "count": 3, "provider": web}),
	analysisTemplate("watch", map[string]any{"interval": "45s", "failureLimit": 1, "provider": web}),
	analysisTemplate("after", map[string]any{"interval": "15s", "provider": web}),
	analysisTemplate("suite", map[string]any{"provider": map[string]any{"job": map[string]any{"spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "suite", "image": "example/suite:v1"}},
		}},
	}}}}),
}

var web = map[string]any{"web": map[string]any{"url": "http://metrics.example/errors", "jsonPath": "{$.ok}"}}

func analysisTemplate(name string, metric map[string]any) map[string]any {
	metric["name"] = name
	return manifest(rollout.APIVersion, "AnalysisTemplate", name, map[string]any{"spec": map[string]any{"metrics": []any{metric}}})
}

// randomAnalyses adds analyses to a canary's steps and background, or before and after the switch of a blue-green workload.
func randomAnalyses(rng *rand.Rand, w *workloadSource) {
	random := func(names ...string) map[string]any {
		return map[string]any{"templates": []any{map[string]any{"templateName": names[rng.IntN(len(names))]}}}
	}
	if w.blueGreen != nil {
		w.blueGreen = maps.Clone(w.blueGreen)
		for _, field := range []string{"prePromotionAnalysis", "postPromotionAnalysis"} {
			if delete(w.blueGreen, field); rng.IntN(3) > 0 {
				w.blueGreen[field] = random("errors", "suite")
			}
		}
		return
	}
	steps := slices.Clone(w.steps())
	for range 1 + rng.IntN(2) {
		at := min(len(steps), 1+rng.IntN(len(steps)+1)) // never before the first step
		steps = slices.Insert(steps, at, any(map[string]any{"analysis": random("errors", "suite")}))
	}
	w.setSteps(steps)
	if delete(w.canary, "analysis"); rng.IntN(2) == 0 {
		analysis := random("errors", "watch")
		analysis["startingStep"] = rng.IntN(len(steps))
		w.canary["analysis"] = analysis
	}
}

// isMeasured reports whether the workload's Rollout document has analyses.
func (w workloadSource) isMeasured() bool {
	return !w.plain && (w.isWatched() || w.canary["analysis"] != nil || w.hasStep("analysis") ||
		w.blueGreen["prePromotionAnalysis"] != nil || w.blueGreen["postPromotionAnalysis"] != nil)
}

func (w workloadSource) hasExperiments() bool { return w.hasStep("experiment") }

func (w workloadSource) hasStep(kind string) bool {
	return slices.ContainsFunc(w.steps(), func(step any) bool { return step.(map[string]any)[kind] != nil })
}

// lab is a process's reconciler.Analyzer. Durations and results of measurements are random. One release in four gets mostly bad results.
type lab struct {
	u       *universe
	process *Process
	tasks   []task
}

// task is a measurement whose result has not been read yet.
type task struct {
	strategies.Measure
	app string
	due time.Time
}

// Measure implements reconciler.Analyzer.
func (l *lab) Measure(app rollout.App, going []rollout.AnalysisRun, due []strategies.Measure) {
	l.tasks = slices.DeleteFunc(l.tasks, func(t task) bool { return t.app == app.Name && !isGoing(going, t.Measure) })
	for _, d := range due {
		if !slices.ContainsFunc(l.tasks, func(t task) bool { return t.app == app.Name && t.isFor(d) }) {
			takes := []time.Duration{0, time.Second, 5 * time.Second, time.Minute, 4 * time.Minute}[l.u.rng.IntN(5)]
			l.tasks = append(l.tasks, task{d, app.Name, l.u.kube.Now.Add(takes)})
			l.u.note("  %s measures %s of %s, for %s", l.process.Name, d.Run, d.Release, takes)
		}
	}
}

func (t task) isFor(d strategies.Measure) bool {
	return t.Run == d.Run && t.Release == d.Release && t.Started.Equal(d.Started) && t.Metric.Name == d.Metric.Name
}

func isGoing(going []rollout.AnalysisRun, m strategies.Measure) bool {
	return slices.ContainsFunc(going, func(r rollout.AnalysisRun) bool {
		return r.Same(rollout.AnalysisRun{Name: m.Run, Release: m.Release, Started: m.Started})
	})
}

// Measured implements reconciler.Analyzer.
func (l *lab) Measured(app string) (all []strategies.Measured) {
	l.tasks = slices.DeleteFunc(l.tasks, func(t task) bool {
		over := t.app == app && !t.due.After(l.u.kube.Now)
		if over {
			all = append(all, t.Judge(strategies.Result{At: l.process.now(), Samples: -1, Phase: l.verdict(t.Measure)}))
		}
		return over
	})
	for _, m := range all {
		l.u.note("  %s has measured %s of %s: %s", l.process.Name, m.Run, m.Release, m.Phase)
		l.u.played["measured "+string(m.Phase)]++
		if m.Phase != rollout.AnalysisSuccessful {
			l.u.promises.bad = append(l.u.promises.bad, m)
		}
	}
	return all
}

func (l *lab) verdict(m strategies.Measure) rollout.AnalysisPhase {
	isBad := m.Release != "" && m.Release[len(m.Release)-1]%4 == 0
	if strings.HasSuffix(m.Run, "/watch") { // most releases are bad after their promotion
		isBad = m.Release[len(m.Release)-1]%4 < 3
	}
	switch n := l.u.rng.IntN(12); {
	case l.u.calm:
		return rollout.AnalysisSuccessful
	case isBad && n > 2:
		return rollout.AnalysisFailed
	case n == 0:
		return rollout.AnalysisInconclusive
	case n == 1:
		return rollout.AnalysisErrored
	default:
		return rollout.AnalysisSuccessful
	}
}

// checkVerdict checks each new rejection by an analysis: the release must have a bad measurement that started after the release began.
func (p *promises) checkVerdict(app string, was, is rollout.State) {
	if len(is.Rejected) == 0 || was.Release == nil || p.u.chaos.meddling {
		return
	}
	r := is.Rejected[0]
	// Rejected starts with the newest rejection. A retry may remove this rejection, so that a known rejection comes first.
	isKnown := func(k rollout.Rejection) bool { return k.At.Equal(r.At) && k.Hash == r.Hash }
	if slices.ContainsFunc(was.Rejected, isKnown) || !strings.HasPrefix(r.Reason, "analysis ") {
		return
	}
	if !slices.ContainsFunc(p.bad, func(m strategies.Measured) bool {
		return m.Release == r.Hash && !m.Started.Before(was.Release.Since) && strings.HasPrefix(r.Reason, "analysis "+m.Run+" ")
	}) {
		p.fail(lawOver, "%s: %s was rejected (%s), and nothing bad was measured of it since %s", app, r.Hash, r.Reason, was.Release.Since)
	}
}

// checkMeasuring checks, when no event is due, that only a release in progress is measured.
func (p *promises) checkMeasuring() {
	for _, a := range p.u.procs {
		l := p.u.labs[a.Name]
		if l == nil {
			continue
		}
		for _, t := range l.tasks {
			s := p.u.oracle.states[t.app]
			isOver := releaseOf(s) != t.Release || s.Release == nil || s.Phase == rollout.Aborting || t.Started.Before(s.Release.Since)
			if isOver && !isWatching(s, t.Measure) {
				p.fail(lawOver, "%s: %s of %s is being measured, which is over", t.app, t.Run, t.Release)
			}
		}
	}
}

// duringAnalysis pushes an abort during a watch, a retry after a rejection, or a version, an abort or a revert during an analysis.
func duringAnalysis(u *universe, i int) bool {
	name := u.head().apps[i].name
	s := u.oracle.states[name]
	if s.Watch != nil && s.Draining == nil && u.rng.IntN(3) == 0 {
		u.decide(i, "an abort of a watch", rollout.Abort, s.Stable.Hash)
		return true
	}
	isGoing := slices.ContainsFunc(s.Analyses, func(r rollout.AnalysisRun) bool { return !r.Phase.Done() })
	if s.Phase == rollout.Degraded && len(s.Rejected) > 0 {
		u.decide(i, "a retry of what was rejected", rollout.Retry, s.Rejected[0].Hash)
		return true
	}
	if !isGoing || s.Release == nil || s.Stable == nil {
		return false
	}
	switch u.rng.IntN(3) {
	case 0:
		u.editApp(i, "a version during an analysis", func(a *appSource) { a.workloads[0].version = u.nextVersion() })
	case 1:
		u.decide(i, "an abort during an analysis", rollout.Abort, s.Release.Hash)
	default:
		old := u.appIn(s.Stable.Commit, name)
		if old == nil || len(old.workloads) != len(u.head().apps[i].workloads) {
			return false
		}
		u.editApp(i, "a revert during an analysis", func(a *appSource) { a.workloads = slices.Clone(old.workloads) })
	}
	return true
}

// pastLab is a mutation of lab. It reports the failed measurements of earlier releases also for the current release.
type pastLab struct {
	*lab
	going map[string][]rollout.AnalysisRun // by app
	past  []strategies.Measured
}

func (l *pastLab) Measure(app rollout.App, going []rollout.AnalysisRun, due []strategies.Measure) {
	l.going[app.Name] = going
	l.lab.Measure(app, going, due)
}

func (l *pastLab) Measured(app string) []strategies.Measured {
	all := l.lab.Measured(app)
	past := slices.Clone(l.past)
	for _, m := range all {
		if m.Phase == rollout.AnalysisFailed {
			l.past = append(l.past, m)
		}
	}
	for _, m := range past {
		for _, r := range l.going[app] {
			if r.Name == m.Run && r.Release != m.Release {
				m.Release, m.Started = r.Release, r.Started
				all = append(all, m)
			}
		}
	}
	return all
}
