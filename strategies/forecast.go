package strategies

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// Forecast is a workload's release where pods start, users promote and analyses pass at once: times are lower bounds.
type Forecast struct {
	Workload rollout.Workload
	Strategy plan.Strategy
	Replicas int
	Full     int  // the weight of all requests: 100, or Traffic.MaxWeight
	Routed   bool // weights are shares of requests, and not only of pods
	Stages   []ForecastStage
	Begins   time.Time     // lower bound; zero: unknown, because the calendar never opens
	Ends     time.Time     // likewise
	AtLeast  time.Duration // of all stages, without the times of a shut calendar
	Gates    int           // the number of promotions needed
}

// ForecastStage is one entry of a Forecast: a stage of the release, or the promotion that ends it.
type ForecastStage struct {
	Name      string // the user's or the strategy's name, "" if none
	Text      string // setWeight 20
	Weight    int    // of Forecast.Full, for the new version
	Canary    int    // pods of the new version when the stage is done
	Stable    int    // pods of the old one
	Wait      string // one of the Wait constants
	AtLeast   time.Duration
	Enters    time.Time // lower bound; zero: unknown
	Shut      string    // the window or freeze before it, "" if none
	Timeout   time.Duration
	OnTimeout string // of a gate with a Timeout
}

// The waits that end a stage.
const (
	WaitPods      = "pods"
	WaitPromotion = "promotion"
	WaitTime      = "time"
	WaitAnalysis  = "analysis"
)

// Planned is the input of a forecast.
type Planned struct {
	Spec     rollout.Spec
	Replicas int  // pods of the workload
	Fast     bool // verified before: no pauses, no weights, no windows
	First    bool // no pod of the workload serves yet, so nothing is staged
	From     int  // the first stage; 0 by default
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
	end.AtLeast = rollingUpdate(in.Spec, in.Replicas, available(in.Spec, in.Replicas)-c.last.Canary, 0)
	c.pass(end.AtLeast)
	f.add(end)
	f.Ends = c.moment()
	return f
}

func (f *Forecast) add(s ForecastStage) {
	f.Stages = append(f.Stages, s)
	f.AtLeast += s.AtLeast
	if s.Wait == WaitPromotion {
		f.Gates++
	}
}

// forecaster is the clock of a forecast.
type forecaster struct {
	in    Planned
	plan  *plan.Compiled
	step  int
	last  plan.Counts // of the stage before
	at    time.Time
	known bool // at is a lower bound; otherwise there is none
}

func (c *forecaster) moment() time.Time {
	if !c.known {
		return time.Time{}
	}
	return c.at
}

func (c *forecaster) pass(d time.Duration) { c.at = c.at.Add(d) }

// open advances the clock until the calendar lets a release advance, and returns the wait as text.
func (c *forecaster) open() string {
	if c.in.Fast || !c.known {
		return ""
	}
	shut, is := c.in.Calendar.ShutAt(c.at)
	if !is {
		return ""
	}
	if shut.Until.IsZero() {
		c.known = false
	} else {
		c.at = shut.Until
	}
	return waitText(shut)
}

// stage advances the clock by the least time of a stage.
func (c *forecaster) stage() ForecastStage {
	s := c.plan.Stages[c.step]
	m := workloads.Staged{Compiled: c.plan, N: c.in.Replicas, Fresh: rollout.Revision{Desired: c.last.Canary}}
	m.Workload, m.Step = c.in.Spec.Workload, c.step
	n := m.Kind().Reached(m, m.Want()) // some kinds keep the new pods of an earlier, larger step
	out := ForecastStage{
		Name: s.Name, Text: s.Text, Weight: s.Weight, Canary: n.Canary, Stable: n.Stable, Enters: c.moment(),
	}
	c.wait(s.Wait, &out)
	c.pass(out.AtLeast)
	c.last = n
	return out
}

// wait sets the kind of a stage's wait and its least time.
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
	n := c.in.Replicas
	missing := s.Canary - c.last.Canary
	switch spec := c.in.Spec; {
	case missing > 0 && spec.Scaling == rollout.InPlace:
		s.AtLeast = rollingUpdate(spec, n, missing, s.Canary+s.Stable-n)
	case missing > 0:
		s.AtLeast = plan.MinReady(spec)
	}
	before := workloads.Staged{Compiled: c.plan, Progress: rollout.Progress{Step: c.step}}
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
		case err != nil: // render refuses an invalid schedule
		case next.IsZero():
			c.known = false
		default:
			s.AtLeast = next.Sub(c.at)
		}
	}
}

// waitForAnalysis sets an analysis' least time: interval 1m and count 5 take 4m, as the first measurement is
// immediate. A start condition or a late start adds to that.
func (c *forecaster) waitForAnalysis(w plan.AnalysisWait, s *ForecastStage) {
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

// rollingUpdate returns the least time of the user's rolling update for the missing pods, with extra surge. At most
// maxSurge + maxUnavailable pods start per minReadySeconds: 10 pods with 2 and 1 take four turns.
func rollingUpdate(spec rollout.Spec, n, missing, extra int) time.Duration {
	if missing <= 0 {
		return 0
	}
	turn := max(1, max(extra, spec.MaxSurge.RoundUp(n))+spec.MaxUnavailable.RoundDown(n))
	return time.Duration((missing+turn-1)/turn) * plan.MinReady(spec)
}

// GoesOn returns each workload's progress once a release in flight follows head. back reports that the release first
// rolls back to stable and then begins again.
func GoesOn(s rollout.State, source, head *rollout.Render, now time.Time) (at []rollout.Progress, back bool) {
	d := adopt(Input{Now: now, State: s, Source: source, Head: Head{Render: head}}.prepared())
	return d.State.Progress, d.Rollback
}

// IsFast reports whether a release of a render skips pauses and weights because it is verified.
func IsFast(s rollout.State, r *rollout.Render) bool {
	return isFast(Input{State: s, Head: Head{Render: r}}, r.Release())
}
