package strategies

import (
	"cmp"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// promotionOrTimeout waits for a promotion, or for the timeout of the step.
func promotionOrTimeout(w promotionWait, in Input, m workload) verdict {
	v := waitForPromotion(in, m)
	if v.done || w.timeout == 0 {
		return v
	}
	v.due = m.Entered.Add(w.timeout)
	if w.onTimeout == rollout.TimeoutPromote && !in.Now.Before(v.due) {
		return verdict{done: true, by: fmt.Sprintf("its timeout of %s", w.timeout)}
	}
	v.text += fmt.Sprintf(", until %s (then: %s)", v.due.Format(time.RFC3339), w.onTimeout)
	return v
}

// hasTimedOut reports whether a timeout with onTimeout: abort ended without a promotion.
func hasTimedOut(w promotionWait, in Input, m workload) bool {
	late := w.timeout > 0 && w.onTimeout == rollout.TimeoutAbort && !in.Now.Before(m.Entered.Add(w.timeout))
	kept := m.Suspended || m.isSuspended() || holder(in, in.State.Release.Hash, m.spec.Paused) != ""
	return late && !kept && !waitForPromotion(in, m).done
}

// waitForPromotion waits until a promotion opens the step.
func waitForPromotion(in Input, m workload) verdict {
	release := in.State.Release
	switch {
	case release.Fast:
		return verdict{done: true}
	case m.isOpen(in):
		return verdict{done: true, by: promoter(in)}
	default:
		return verdict{paused: true, text: fmt.Sprintf("promotion of %s at step %d/%d", release.Hash, m.Step+1, m.Of)}
	}
}

// waitForPeople waits for a promotion of the step, or for the step's own timeout.
func waitForPeople(in Input, m workload) verdict {
	if w, is := m.stage().wait.(promotionWait); is {
		return promotionOrTimeout(w, in, m)
	}
	return waitForPromotion(in, m)
}

// promoter returns the promotion file's author, or a word for none.
func promoter(in Input) string {
	if in.Promotion == nil {
		return "nobody"
	}
	return cmp.Or(in.Promotion.Author, "a promotion file")
}

// timedOut returns why a pause with onTimeout: abort has failed, "" if none has.
func timedOut(in Input) string {
	for _, m := range workloads(in) {
		if w, is := m.stage().wait.(promotionWait); is && in.State.Stable != nil && hasTimedOut(w, in, m) {
			return fmt.Sprintf("no promotion within %s at step %d/%d", w.timeout, m.Step+1, m.Of)
		}
	}
	return ""
}
