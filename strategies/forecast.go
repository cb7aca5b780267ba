package strategies

import (
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// Forecast predicts a release. Its times are lower bounds, as if pods started and users promoted immediately.
type Forecast struct {
	Workload rollout.Workload
	Strategy plan.Strategy
	Replicas int
	Full     int  // 100, or Traffic.MaxWeight
	Routed   bool // weights are shares of requests
	Stages   []ForecastStage
	Begins   time.Time     // lower bound; zero if the calendar never opens
	Ends     time.Time     // lower bound; zero if unknown
	AtLeast  time.Duration // least duration of all stages, without waits for the calendar
	Gates    int           // number of promotions by users
	Watch    time.Duration // how long after the release a failed analysis rolls the app back; 0: never
	WayBack  time.Duration // longest duration of this rollback, if each batch is ready within progressDeadlineSeconds
}

// ForecastStage is a stage of the release, or the promotion at its end.
type ForecastStage struct {
	Name      string // name from the user or the strategy, or ""
	Text      string
	Weight    int    // the new version's weight, out of Forecast.Full
	Canary    int    // new pods at the stage's end
	Stable    int    // old pods at the stage's end
	Wait      string // a constant, such as WaitPods
	AtLeast   time.Duration
	Enters    time.Time // lower bound; zero if unknown
	Shut      string    // the window or freeze that delays the stage, or ""
	Timeout   time.Duration
	OnTimeout string // what a gate does after Timeout
}

const (
	WaitPods      = "pods"
	WaitPromotion = "promotion"
	WaitTime      = "time"
	WaitAnalysis  = "analysis"
)

// Planned is the input of a forecast.
type Planned struct {
	Spec     rollout.Spec
	Replicas int
	Fast     bool // verified before, so pauses, weights and windows are skipped
	First    bool // no pod serves yet, so steps are skipped
	From     int  // index of the first stage to predict
	Calendar rollout.Calendar
	Now      time.Time // when the release is pushed
}

// Predict returns the forecast of a workload's release from Now on.
func Predict(in Planned) Forecast {
	p := plan.Compile(in.Spec)
	f := Forecast{
		Workload: in.Spec.Workload, Strategy: p.Strategy, Replicas: in.Replicas,
		Routed: p.Routing != nil && !p.SharesPods(), Full: p.Full(),
	}
	c := &forecaster{in: in, plan: p, step: in.From, at: in.Now, known: true, last: plan.Counts{Stable: in.Replicas}}
	switch {
	case in.First:
		c.step = len(p.Stages)
	case in.Fast:
		c.step = p.Passed
	}
	shut := c.open()
	f.Begins = c.moment()
	for ; c.step < len(p.Stages); c.step++ {
		s := c.stage()
		s.Shut, shut = shut, ""
		f.add(s)
		if c.step < p.PromotionStep() {
			shut = c.open()
		}
	}
	end := ForecastStage{
		Name: "promote", Text: "rolling update", Weight: f.Full, Canary: in.Replicas, Wait: WaitPods,
		Shut: shut, Enters: c.moment(),
	}
	needed := available(in.Spec, rollout.ObservedWorkload{Room: true}, in.Replicas)
	end.AtLeast = rollingUpdate(in.Spec, in.Replicas, needed-c.last.Canary, 0)
	c.at = c.at.Add(end.AtLeast)
	f.add(end)
	f.Ends = c.moment()
	if a := in.Spec.Watched(); a != nil && !in.First && !in.Fast {
		deadline := time.Duration(in.Spec.ProgressDeadlineSeconds) * time.Second
		f.Watch, f.WayBack = a.For, time.Duration(batches(in.Spec, in.Replicas, in.Replicas, 0))*deadline
	}
	return f
}

func (f *Forecast) add(s ForecastStage) {
	f.Stages = append(f.Stages, s)
	f.AtLeast += s.AtLeast
	if s.Wait == WaitPromotion {
		f.Gates++
	}
}

type forecaster struct {
	in    Planned
	plan  *plan.Compiled
	step  int
	last  plan.Counts // counts at the previous stage's end
	at    time.Time
	known bool // "at" is a lower bound; false: unknown
}

func (c *forecaster) moment() time.Time {
	if !c.known {
		return time.Time{}
	}
	return c.at
}

func (c *forecaster) open() string {
	if c.in.Fast || !c.known {
		return ""
	}
	shut, is := c.in.Calendar.ShutAt(c.at)
	if !is {
		return ""
	}
	if c.known = !shut.Until.IsZero(); c.known {
		c.at = shut.Until
	}
	return waitText(shut)
}

func (c *forecaster) stage() ForecastStage {
	s := c.plan.Stages[c.step]
	m := workloads.Staged{Compiled: c.plan, N: c.in.Replicas, Fresh: rollout.Revision{Desired: c.last.Canary}}
	m.Workload, m.Step = c.in.Spec.Workload, c.step
	n := m.Kind().Reached(m, m.Want()) // some kinds keep new pods of an earlier, larger step
	out := ForecastStage{
		Name: s.Name, Text: s.Text, Weight: s.Weight, Canary: n.Canary, Stable: n.Stable, Enters: c.moment(),
	}
	c.wait(s.Wait, &out)
	c.at = c.at.Add(out.AtLeast)
	c.last = n
	return out
}

func (c *forecaster) wait(w plan.Wait, s *ForecastStage) {
	switch w := w.(type) {
	case plan.PodsWait:
		c.waitForPods(s)
	case plan.PromotionWait:
		if !c.in.Fast {
			s.Wait, s.Timeout, s.OnTimeout = WaitPromotion, w.Timeout, w.OnTimeout
		}
	case plan.TimerWait:
		c.waitForTime(w, s)
	case plan.AnalysisWait:
		c.waitForAnalysis(w, s)
	case plan.DelayWait:
		s.Wait, s.AtLeast = WaitTime, w.Duration
	}
}

func (c *forecaster) waitForPods(s *ForecastStage) {
	s.Wait = WaitPods
	n, at := c.in.Replicas, rollout.Progress{Step: c.step}
	missing := enough(workloads.Staged{Compiled: c.plan, Progress: at, N: n}, s.Canary) - c.last.Canary
	switch spec := c.in.Spec; {
	case missing > 0 && spec.Scaling == rollout.InPlace:
		s.AtLeast = rollingUpdate(spec, n, missing, s.Canary+s.Stable-n)
	case missing > 0:
		s.AtLeast = plan.MinReady(spec)
	}
	before := workloads.Staged{Compiled: c.plan, Progress: at}
	if c.step > 0 {
		before.Routed = &rollout.Routing{Step: c.step - 1, Weight: c.plan.RoutedWeight(c.plan.Stages[c.step-1])}
	}
	if before.NeedsRouting() {
		if missing > 0 {
			s.AtLeast = max(s.AtLeast, workloads.Learnt(c.plan.Routing))
		}
		s.AtLeast += c.plan.Routing.Settle
	}
}

func (c *forecaster) waitForTime(w plan.TimerWait, s *ForecastStage) {
	s.Wait = WaitTime
	switch {
	case c.in.Fast:
	case w.Until == "":
		s.AtLeast = w.Duration
	case c.known:
		switch next, err := plan.NextOf(w.Until, w.Zone, c.at); {
		case err != nil: // package render refuses an invalid schedule
		case next.IsZero():
			c.known = false
		default:
			s.AtLeast = next.Sub(c.at)
		}
	}
}

// waitForAnalysis sets an analysis' least duration: 5 measurements at 1m take 4m, because the first is immediate.
func (c *forecaster) waitForAnalysis(w plan.AnalysisWait, s *ForecastStage) {
	s.Wait = WaitAnalysis
	for _, m := range w.Metrics {
		if !m.DryRun && !c.in.Fast {
			s.AtLeast = max(s.AtLeast, m.InitialDelay+time.Duration(max(0, analysis.Passing(m)-1))*m.Interval)
		}
	}
}

func rollingUpdate(spec rollout.Spec, n, missing, extra int) time.Duration {
	return time.Duration(batches(spec, n, missing, extra)) * plan.MinReady(spec)
}

// batches returns in how many batches a rolling update starts the missing pods. A batch has at most maxUnavailable +
// max(extra, maxSurge) pods. extra counts pods beyond the n replicas.
func batches(spec rollout.Spec, n, missing, extra int) int {
	turn := max(1, max(extra, spec.MaxSurge.RoundUp(n))+spec.Unavailable(rollout.ObservedWorkload{Room: true}, n))
	return (max(missing, 0) + turn - 1) / turn
}

// GoesOn returns each workload's progress if the release continues with the head's steps. If back is true, the release
// is rolled back and starts again.
func GoesOn(s rollout.State, source, head *rollout.Render, now time.Time) (at []rollout.Progress, back bool) {
	// adopt must not wait for the end of requests to experiments.
	s.Progress = rollout.Mapped(s.Progress, func(p rollout.Progress) rollout.Progress { p.Available = nil; return p })
	d := adopt(Input{Now: now, State: s, Source: source, Head: Head{Render: head}}.prepared())
	return d.State.Progress, d.Rollback
}

// IsFast reports whether the render's version was verified before (Planned.Fast).
func IsFast(s rollout.State, r *rollout.Render) bool {
	return isFast(Input{State: s, Head: Head{Render: r}}, r.Release())
}
