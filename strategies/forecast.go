package strategies

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Forecast is the release of one workload as it goes when nothing is in its way: pods start at once, everybody promotes
// at once, and each analysis passes at its first chance. All its times are lower bounds.
type Forecast struct {
	Workload rollout.Workload
	Strategy Strategy
	Replicas int
	Full     int  // the weight that is everything: 100, or Traffic.MaxWeight
	Routed   bool // weights are shares of requests, and not only of pods
	Stages   []ForecastStage
	Begins   time.Time     // not before; zero: nobody knows, because the calendar never opens
	Ends     time.Time     // likewise
	AtLeast  time.Duration // of all stages, without the times that the calendar is shut
	Gates    int           // how often somebody has to promote
}

// ForecastStage is one entry of a Forecast: a stage of the release, or the promotion that ends it.
type ForecastStage struct {
	Name      string // the user's or the strategy's name, "" if none
	Text      string // setWeight 20
	Weight    int    // of Forecast.Full, for the new version
	Canary    int    // pods of the new version when the stage is done
	Stable    int    // pods of the old one
	Wait      string // what ends it: one of the Wait constants
	AtLeast   time.Duration
	Enters    time.Time // not before; zero: nobody knows
	Shut      string    // what of the calendar it waits for before it begins, "" if nothing
	Timeout   time.Duration
	OnTimeout string // of a gate with a Timeout
}

// What ends a stage.
const (
	WaitPods      = "pods"
	WaitPromotion = "promotion"
	WaitTime      = "time"
	WaitAnalysis  = "analysis"
)

// Planned is what a forecast is made of.
type Planned struct {
	Spec     rollout.Spec
	Replicas int  // pods of the workload
	Fast     bool // it served before: no pauses, no weights, no windows
	First    bool // nothing of the workload serves yet, so nothing is staged
	From     int  // the stage that it goes on at, the first one unless told
	Calendar rollout.Calendar
	Now      time.Time // when the release is pushed
}

// Predict returns how a release of one workload goes from a moment on.
func Predict(in Planned) Forecast {
	p := compile(in.Spec)
	f := Forecast{
		Workload: in.Spec.Workload, Strategy: p.strategy, Replicas: in.Replicas,
		Routed: p.routing != nil && !p.sharesPods(), Full: p.full(),
	}
	c := &forecaster{in: in, plan: p, step: in.From, at: in.Now, known: true, last: counts{stable: in.Replicas}}
	switch {
	case in.First:
		c.step = len(p.stages)
	case in.Fast:
		c.step = p.passed
	}
	shut := c.open()
	f.Begins = c.moment()
	for ; c.step < len(p.stages); c.step++ {
		s := c.stage()
		s.Shut, shut = shut, ""
		f.add(s)
		if c.step < p.handover() {
			shut = c.open()
		}
	}
	end := ForecastStage{
		Name: "promote", Text: "rolling update", Weight: f.Full, Canary: in.Replicas, Wait: WaitPods,
		Shut: shut, Enters: c.moment(),
	}
	end.AtLeast = rollingUpdate(in.Spec, in.Replicas, available(in.Spec, in.Replicas)-c.last.canary, 0)
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
	plan  *plan
	step  int
	last  counts // of the stage before
	at    time.Time
	known bool // at is a lower bound; otherwise nobody knows one
}

func (c *forecaster) moment() time.Time {
	if !c.known {
		return time.Time{}
	}
	return c.at
}

func (c *forecaster) pass(d time.Duration) { c.at = c.at.Add(d) }

// open passes the time until the calendar lets a release advance, and says what that waits for.
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

// stage passes the time that a stage takes at least.
func (c *forecaster) stage() ForecastStage {
	s := c.plan.stages[c.step]
	m := moving{plan: c.plan, n: c.in.Replicas, fresh: rollout.Revision{Desired: c.last.canary}}
	m.Workload, m.Step = c.in.Spec.Workload, c.step
	n := m.kind().reached(m, m.want()) // some kinds keep the new pods of an earlier, larger step
	out := ForecastStage{
		Name: s.name, Text: s.text, Weight: s.weight, Canary: n.canary, Stable: n.stable, Enters: c.moment(),
	}
	s.wait.forecast(c, &out)
	c.pass(out.AtLeast)
	c.last = n
	return out
}

// rollingUpdate is how long the user's own rolling update takes at least for the pods that are missing, extra ones of
// which may be there in any case. No more than maxSurge + maxUnavailable of them are started before others have served
// for minReadySeconds: 10 pods with 2 and 1 take four turns.
func rollingUpdate(spec rollout.Spec, n, missing, extra int) time.Duration {
	if missing <= 0 {
		return 0
	}
	turn := max(1, max(extra, spec.MaxSurge.RoundUp(n))+spec.MaxUnavailable.RoundDown(n))
	return time.Duration((missing+turn-1)/turn) * minReady(spec)
}

// GoesOn returns where the release in flight is once Git's newest render of it, head, has taken the place of the one
// that the cluster follows: an entry for each of its workloads. Back says that it goes back to stable first, and begins
// again.
func GoesOn(s rollout.State, source, head *rollout.Render, now time.Time) (at []rollout.Progress, back bool) {
	d := adopt(Input{Now: now, State: s, Source: source, Head: Head{Render: head}}.prepared())
	return d.State.Progress, d.Retreat
}

// IsFast reports whether a release of a render would be rolled out without
// pauses and weights, because it served before.
func IsFast(s rollout.State, r *rollout.Render) bool {
	return isFast(Input{State: s, Head: Head{Render: r}}, r.Release())
}
