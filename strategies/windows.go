package strategies

import (
	"cmp"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// gateWindow keeps a release at its step while its calendar is shut. Steps and promotions in progress finish. A
// version that served before is not delayed: a rollback must not wait.
func gateWindow(in Input, m workload) verdict {
	if in.State.Release.Fast || m.Step >= m.PromotionStep() {
		return verdict{done: true}
	}
	shut, is := in.Calendar.ShutAt(in.Now)
	if !is {
		return verdict{done: true}
	}
	return verdict{paused: true, due: shut.Until, text: waitText(shut)}
}

func waitText(s rollout.Shut) string { return s.Cause() + s.When() }

// waitForWindow keeps an app while its calendar is shut, or its release held, and its head has an advance. The record
// names the end of the last consecutive window, if known.
func waitForWindow(in Input, what string) (Decision, bool) {
	shut, is := in.Calendar.ShutAt(in.Now)
	by := keptBack(in)
	if !is && by == "" {
		return Decision{}, false
	}
	s, head := in.State, in.Head.Commit
	beforeRelease(&s)
	until := "for the release windows to open"
	waits := waitText(shut)
	switch {
	case by != "":
		until, waits = "for the end of "+by, "the end of "+by+reasonOf(in, by)
	case shut.Exact:
		until = shut.When()[len(", "):]
	case shut.Freeze != nil:
		until = "for " + shut.Cause()
	}
	message := fmt.Sprintf("%s of %s by %s waits %s", what, head.Short(), head.Author, until)
	d := hold(s, rollout.HeldClosed, message, head.ID)
	d.Subject = fmt.Sprintf("%s: %s", s.App, d.Waiting)
	d.Waiting, d.Requeue = waits, shut.Until
	return d, true
}

// beforeRelease sets the phase of an app that waits before a release.
func beforeRelease(s *rollout.State) {
	s.Phase = cmp.Or(s.Phase, rollout.Pending)
	if s.Phase == rollout.Aborting && s.Rollback == nil { // the rollback has ended
		s.Phase, s.Reason, s.Analyses = rollout.Healthy, "", nil
	}
}

// untilOnly returns a hold's message without the commit, which a new process may not know.
func untilOnly(message string) string {
	what, rest, _ := strings.Cut(message, " of ")
	_, until, _ := strings.Cut(rest, " waits ")
	return what + " waits " + until
}

// finishFirst continues a first deployment while its successor waits: there is no stable version to roll back to.
func finishFirst(in Input, wait Decision) Decision {
	if in.Source == nil {
		return wait
	}
	in.Head.Render = in.Source
	d := decidePromoting(in)
	d.State.Held, d.Requeue = wait.State.Held, rollout.Soonest(d.Requeue, wait.Requeue)
	d.Subject, d.Waiting = cmp.Or(d.Subject, wait.Subject), wait.Waiting
	return d
}
