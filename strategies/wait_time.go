package strategies

import (
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// waitForTime waits for a duration or for the next time of a schedule, unless a promotion comes first.
func waitForTime(w plan.TimerWait, in Input, m workload) verdict {
	if v := waitForPromotion(in, m); v.done {
		return v
	}
	due := w.End(m.Entered)
	if due.IsZero() { // render refuses such a schedule
		return verdict{paused: true, text: "a promotion: " + m.stage().Text + " never comes"}
	}
	if _, lacks := lacksPods(m, in.Now); lacks {
		return verdict{text: withProblem("a pod of the new version to serve", m.problem())}
	}
	if m.fresh.Ready() > 0 && m.want().Canary > 0 {
		if anew := m.fresh.ReadySince[0].Add(w.Duration); anew.After(due) { // all pods of the pause's start are gone
			due = rollout.Soonest(anew, due.Add(w.Duration)) // with frequent node changes no pod may last for the whole pause
		}
	}
	return waitUntil(in, m, due)
}

// recordedSoon is how long before its record a pause may begin, as pushes are shared. A longer push restarts it.
const recordedSoon = 5 * time.Second

// sinceHanded returns when a stage is entered: now, or a timed pause's first decision, whose pods are ready by then.
func (in Input) sinceHanded(p *plan.Compiled, next rollout.Progress) time.Time {
	s, _ := p.At(next.Step)
	w, timed := s.Wait.(plan.TimerWait)
	if !timed || w.Until != "" || in.Handed == nil || in.Handed.Release == nil || in.State.Release == nil ||
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

// lacksPods returns since when a pause is over but cannot end, because no new pod serves.
func lacksPods(m workload, now time.Time) (since time.Time, lacks bool) {
	w, is := m.stage().Wait.(plan.TimerWait)
	if !is || m.n == 0 || m.want().Canary == 0 || m.fresh.Ready() > 0 {
		return since, false
	}
	since = w.End(m.Entered)
	return since, !since.IsZero() && !now.Before(since)
}

// waitUntil waits for a recorded time: a restart or another machine changes nothing. A clock set back only delays it.
func waitUntil(in Input, m workload, due time.Time) verdict {
	if !in.Now.Before(due) {
		return verdict{done: true}
	}
	text := strings.TrimPrefix(m.stage().Text, "wait for ")
	return verdict{paused: true, due: due, text: fmt.Sprintf("%s, until %s", text, due.Format(time.RFC3339))}
}
