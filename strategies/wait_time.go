package strategies

import (
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout/schedule"
)

// timerWait waits for a duration, or for the next moment of a schedule, or until
// somebody promotes.
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
	if w.until == "" {
		return waitUntil(in, m, m.Entered.Add(w.duration))
	}
	due, err := nextOf(w.until, w.zone, m.Entered)
	if err != nil || due.IsZero() { // render refuses both
		return verdict{paused: true, text: "a promotion: " + m.stage().text + " never comes"}
	}
	return waitUntil(in, m, due)
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

// waitUntil waits for a moment that follows from what the state records, so that
// neither a restart nor another machine starts the clock again. A clock that was
// set back makes the wait longer by as much, never shorter than asked.
func waitUntil(in Input, m moving, due time.Time) verdict {
	if !in.Now.Before(due) {
		return verdict{done: true}
	}
	text := strings.TrimPrefix(m.stage().text, "wait for ")
	return verdict{paused: true, due: due, text: fmt.Sprintf("%s, until %s", text, due.Format(time.RFC3339))}
}
