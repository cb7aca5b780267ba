package strategies

import (
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/schedule"
)

// timerWait waits for a duration, or for the next moment of a schedule, or for a promotion.
type timerWait struct {
	duration time.Duration
	until    string // cron, in the time zone; "": the duration
	zone     string
}

func (w timerWait) traits() traits {
	return traits{number: 2, duration: w.duration, pauses: true, early: true}
}

func (w timerWait) verdict(in Input, m moving) verdict {
	if v := waitForPromotion(in, m); v.done {
		return v
	}
	due := w.end(m)
	if due.IsZero() { // which render refuses
		return verdict{paused: true, text: "a promotion: " + m.stage().text + " never comes"}
	}
	if _, lacks := lacksPods(m, in.Now); lacks {
		return verdict{text: withProblem("a pod of the new version to serve", m.problem())}
	}
	if m.fresh.Ready() > 0 && m.want().canary > 0 {
		if anew := m.fresh.ReadySince[0].Add(w.duration); anew.After(due) { // none is left that was there
			due = rollout.Soonest(anew, due.Add(w.duration)) // where nodes come and go, no pod may be there for so long
		}
	}
	return waitUntil(in, m, due)
}

// end is when the clock ends a pause, zero if it never does.
func (w timerWait) end(m moving) time.Time {
	if w.until == "" {
		return m.Entered.Add(w.duration)
	}
	due, _ := nextOf(w.until, w.zone, m.Entered)
	return due
}

// recordedSoon is how much earlier than its record a pause may have begun: transitions wait for one push together.
// While the Git server is away it begins anew: people see the pause only when it is on record.
const recordedSoon = 5 * time.Second

// sinceHanded is when a stage is entered: a pause of a duration, whose pods are there by then, when it was decided on
// for the first time, however often it has been decided on again before its record. Any other stage is entered now.
func (in Input) sinceHanded(p *plan, next rollout.Progress) time.Time {
	s, _ := p.at(next.Step)
	w, timed := s.wait.(timerWait)
	if !timed || w.until != "" || in.Handed == nil || in.Handed.Release == nil || in.State.Release == nil ||
		in.Handed.Release.Hash != in.State.Release.Hash {
		return next.Entered
	}
	for _, was := range in.Handed.Progress {
		waited := next.Entered.Sub(was.Entered)
		same := was.Workload == next.Workload && was.Step == next.Step && was.Plan == next.Plan
		if same && waited > 0 && waited <= recordedSoon {
			return was.Entered
		}
	}
	return next.Entered
}

// lacksPods is since when a pause is over that does not end, because none of the pods serves that it is to show.
func lacksPods(m moving, now time.Time) (since time.Time, lacks bool) {
	w, is := m.stage().wait.(timerWait)
	if !is || m.n == 0 || m.want().canary == 0 || m.fresh.Ready() > 0 {
		return since, false
	}
	since = w.end(m)
	return since, !since.IsZero() && !now.Before(since)
}

func (w timerWait) forecast(c *forecaster, s *ForecastStage) {
	s.Wait = WaitTime
	switch {
	case c.in.Fast:
	case w.until == "":
		s.AtLeast = w.duration
	case c.known:
		switch next, err := nextOf(w.until, w.zone, c.at); {
		case err != nil: // render refuses what is no schedule
		case next.IsZero():
			c.known = false
		default:
			s.AtLeast = next.Sub(c.at)
		}
	}
}

func nextOf(expression, zone string, after time.Time) (time.Time, error) {
	moments, err := schedule.Parse(expression, zone)
	if err != nil {
		return time.Time{}, err
	}
	return moments.Next(after), nil
}

// delayWait waits for a duration, whatever anybody says.
type delayWait struct{ duration time.Duration }

func (w delayWait) traits() traits { return traits{number: 3, duration: w.duration, pauses: true} }

func (w delayWait) verdict(in Input, m moving) verdict {
	return waitUntil(in, m, m.Entered.Add(w.duration))
}

func (w delayWait) forecast(_ *forecaster, s *ForecastStage) {
	s.Wait, s.AtLeast = WaitTime, w.duration
}

// waitUntil waits for a moment that follows from what the state records, so that neither a restart nor another machine
// starts the clock again. A clock that was set back makes the wait longer by as much, never shorter than asked.
func waitUntil(in Input, m moving, due time.Time) verdict {
	if !in.Now.Before(due) {
		return verdict{done: true}
	}
	text := strings.TrimPrefix(m.stage().text, "wait for ")
	return verdict{paused: true, due: due, text: fmt.Sprintf("%s, until %s", text, due.Format(time.RFC3339))}
}
