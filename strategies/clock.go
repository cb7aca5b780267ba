package strategies

import (
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// skew is how far apart the clocks of two processes may be that write one record, one after the other. What lies
// further ahead was written by a clock that was wrong.
const skew = time.Minute

// Future is the latest time on record that this clock is yet to reach, zero if there is none. A look that began
// before the record was written sees one, too, and the next one does not: so it counts when two looks have seen it.
func Future(s rollout.State, now time.Time) (latest time.Time) {
	s = reopened(s)
	all := make([]time.Time, 0, 2*len(s.Progress)+len(s.Analyses)+1)
	for _, p := range s.Progress {
		all = append(all, p.Entered)
		if p.Routed != nil {
			all = append(all, p.Routed.At)
		}
		if p.Available != nil {
			all = append(all, *p.Available)
		}
	}
	if s.Retreat != nil {
		all = append(all, s.Retreat.Routed)
	}
	for _, r := range s.Analyses {
		if !r.Phase.Done() {
			all = append(all, r.Started)
		}
	}
	for _, t := range all {
		if t.After(now.Add(skew)) && t.After(latest) {
			latest = t
		}
	}
	return latest
}

// withClockBack begins what a clock has begun that was ahead: a step that was entered an hour from now with a pause
// of 5m would wait for 1h5m. So its clock begins now, once and on record. Of an analysis that goes on nothing is kept.
func withClockBack(in Input) (Decision, bool) {
	ahead := Future(in.State, in.Now)
	if ahead.IsZero() || !ahead.Equal(in.Future) {
		return Decision{}, false
	}
	back := func(t *time.Time) bool {
		is := t.After(in.Now)
		if is {
			*t = rollout.NextTenth(in.Now)
		}
		return is
	}
	s := in.State
	s.Progress = slices.Clone(s.Progress)
	for i := range s.Progress {
		p := &s.Progress[i]
		back(&p.Entered)
		if p.Routed != nil {
			routed := *p.Routed
			back(&routed.At)
			p.Routed = &routed
		}
		if p.Available != nil {
			available := *p.Available
			back(&available)
			p.Available = &available
		}
	}
	if s.Retreat != nil {
		r := *s.Retreat
		delay := r.Drain.Sub(r.Routed)
		if back(&r.Routed) {
			r.Drain = r.Routed.Add(delay)
		}
		s.Retreat = &r
	}
	s.Analyses = slices.DeleteFunc(slices.Clone(s.Analyses), func(r rollout.AnalysisRun) bool {
		return !r.Phase.Done() && back(&r.Started)
	})
	return Decision{State: s, Subject: fmt.Sprintf(
		"%s goes on from now: its record says %s, which a clock wrote that was ahead",
		s.App, ahead.UTC().Format(time.RFC3339))}, true
}

// withSecondLook looks again at a record that seems to be ahead.
func withSecondLook(in Input, d Decision) Decision {
	if ahead := Future(in.State, in.Now); !ahead.IsZero() && !ahead.Equal(in.Future) {
		d.Requeue = soonest(d.Requeue, in.Now.Add(skew))
	}
	return d
}
