package strategies

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/schedule"
)

// Forecast is the release of one workload as it goes when nothing is in its way:
// pods start at once, everybody promotes at once, and each analysis passes at
// its first chance. All its times are lower bounds.
type Forecast struct {
	Workload rollout.Workload
	Strategy string // "canary", "blueGreen", or "rollingUpdate" for no steps
	Replicas int
	Full     int  // the weight that is everything: 100, or Traffic.MaxWeight
	Routed   bool // weights are shares of requests, and not only of pods
	Stages   []ForecastStage
	Begins   time.Time     // not before; zero: nobody knows, because the calendar never opens
	Ends     time.Time     // likewise
	AtLeast  time.Duration // of all stages, without the times that the calendar is shut
	Gates    int           // how often somebody has to promote
}

// ForecastStage is one entry of a Forecast: a stage of the release, or the
// promotion that ends it.
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
	Calendar rollout.Calendar
	Now      time.Time // when the release is pushed
}

// Predict returns how a release of one workload goes from a moment on.
func Predict(in Planned) Forecast {
	f := Forecast{Workload: in.Spec.Workload, Strategy: strategyName(in.Spec), Replicas: in.Replicas, Full: 100}
	if c := in.Spec.Canary; c != nil && c.Traffic != nil {
		f.Routed, f.Full = true, c.Traffic.MaxWeight
	}
	p := planOf(in.Spec)
	from := 0
	switch {
	case in.First || in.Replicas == 0:
		from = len(p.stages)
	case in.Fast && in.Spec.Canary != nil:
		from = len(in.Spec.Canary.Steps)
	}
	clock := &forecaster{in: in, at: in.Now, known: true}
	shut := clock.open(in.Fast)
	f.Begins = clock.moment()
	last := counts{stable: in.Replicas}
	for i := from; i < len(p.stages); i++ {
		s := clock.stage(p, i, last)
		s.Shut, shut = shut, ""
		f.add(s)
		last = counts{canary: s.Canary, stable: s.Stable}
		if i < p.handover() {
			shut = clock.open(in.Fast)
		}
	}
	end := ForecastStage{Name: "promote", Text: "rolling update", Weight: f.Full, Canary: in.Replicas, Wait: WaitPods, Shut: shut, Enters: clock.moment()}
	end.AtLeast = rollingUpdate(in.Spec, in.Replicas, in.Replicas-last.canary, 0)
	clock.pass(end.AtLeast)
	f.add(end)
	f.Ends = clock.moment()
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

// open passes the time until the calendar lets a release advance, and says what
// that waits for.
func (c *forecaster) open(fast bool) string {
	if fast || !c.known {
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
func (c *forecaster) stage(p plan, i int, last counts) ForecastStage {
	s := p.stages[i]
	n := countsAt(p, i, c.in.Replicas)
	out := ForecastStage{Name: s.name, Text: s.text, Weight: s.weight, Canary: n.canary, Stable: n.stable, Enters: c.moment()}
	switch s.wait {
	case waitPods:
		out.Wait, out.AtLeast = WaitPods, c.podsTake(p, i, n, n.canary-last.canary)
	case waitGate:
		if !c.in.Fast {
			out.Wait, out.Timeout, out.OnTimeout = WaitPromotion, s.timeout, s.onTimeout
		}
	case waitTimer, waitDelay:
		out.Wait = WaitTime
		if s.wait == waitDelay || !c.in.Fast {
			out.AtLeast = c.timer(s)
		}
	case waitAnalysis:
		out.Wait = WaitAnalysis
		if !c.in.Fast {
			out.AtLeast = shortest(s.analysis)
		}
	}
	c.pass(out.AtLeast)
	return out
}

// podsTake is how long so many new pods take to serve, and proxies to learn of a
// new route.
func (c *forecaster) podsTake(p plan, i int, to counts, missing int) (d time.Duration) {
	switch grows := missing > 0; {
	case grows && c.in.Spec.Scaling == rollout.InPlace:
		d = rollingUpdate(c.in.Spec, c.in.Replicas, missing, to.canary+to.stable-c.in.Replicas)
	case grows:
		d = minReady(c.in.Spec)
	}
	if !isRouted(c.in.Spec) {
		return d
	}
	before := rollout.Progress{Step: i}
	if i > 0 {
		before.Routed = &rollout.Routing{Step: i - 1, Weight: p.stages[i-1].weight}
	}
	if needsRouting(p, before) {
		t := c.in.Spec.Canary.Traffic
		if missing > 0 {
			d = max(d, learnt(t))
		}
		d += t.Settle
	}
	return d
}

// rollingUpdate is how long the user's own rolling update takes at least for the
// pods that are missing, extra ones of which may be there in any case. No more than maxSurge + maxUnavailable of them are
// started before others have served for minReadySeconds: 10 pods with 2 and 1
// take four turns.
func rollingUpdate(spec rollout.Spec, n, missing, extra int) time.Duration {
	if missing <= 0 {
		return 0
	}
	turn := max(1, max(extra, spec.MaxSurge.RoundUp(n))+spec.MaxUnavailable.RoundDown(n))
	return time.Duration((missing+turn-1)/turn) * minReady(spec)
}

// timer is the duration of a timed wait that begins now.
func (c *forecaster) timer(s stage) time.Duration {
	if s.until == "" {
		return s.duration
	}
	moments, err := schedule.Parse(s.until, s.zone)
	if err != nil || !c.known { // render refuses what is no schedule
		return 0
	}
	next := moments.Next(c.at)
	if next.IsZero() {
		c.known = false
		return 0
	}
	return next.Sub(c.at)
}

// shortest is how long an analysis takes that passes at its first chance: with
// interval 1m and count 5 that is 4m, because the first measurement is made at
// once. What only begins at a condition, or starts late, takes longer.
func shortest(a *rollout.Analysis) (longest time.Duration) {
	for _, m := range a.Metrics {
		measurements := m.Count
		if k := m.ConsecutiveSuccessLimit; k > 0 && (measurements == 0 || k < measurements) {
			measurements = k
		}
		if !m.DryRun {
			longest = max(longest, m.InitialDelay+time.Duration(max(0, measurements-1))*m.Interval)
		}
	}
	return longest
}

// IsFast reports whether a release of a render would be rolled out without
// pauses and weights, because it served before.
func IsFast(s rollout.State, r *rollout.Render) bool {
	return isFast(Input{State: s, Head: Head{Render: r}}, r.Release())
}
