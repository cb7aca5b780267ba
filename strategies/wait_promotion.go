package strategies

import (
	"cmp"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// promotionOrTimeout waits for a promotion, or for the timeout of the step.
func promotionOrTimeout(w plan.PromotionWait, in Input, m workload) verdict {
	v := waitForPromotion(in, m)
	if v.done || w.Timeout == 0 {
		return v
	}
	v.due = m.Entered.Add(w.Timeout)
	if w.OnTimeout == rollout.TimeoutPromote && !in.Now.Before(v.due) {
		return verdict{done: true, by: fmt.Sprintf("its timeout of %s", w.Timeout)}
	}
	v.text += fmt.Sprintf(", until %s (then: %s)", v.due.Format(time.RFC3339), w.OnTimeout)
	return v
}

// hasTimedOut reports whether a timeout with onTimeout: abort ended without a promotion.
func hasTimedOut(w plan.PromotionWait, in Input, m workload) bool {
	late := w.Timeout > 0 && w.OnTimeout == rollout.TimeoutAbort && !in.Now.Before(m.Entered.Add(w.Timeout))
	kept := m.Suspended || m.isSuspended() || holder(in, in.State.Release.Hash, m.Spec.Paused) != ""
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
	if w, is := m.stage().Wait.(plan.PromotionWait); is {
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
		if w, is := m.stage().Wait.(plan.PromotionWait); is && in.State.Stable != nil && hasTimedOut(w, in, m) {
			return fmt.Sprintf("no promotion within %s at step %d/%d", w.Timeout, m.Step+1, m.Of)
		}
	}
	return ""
}
