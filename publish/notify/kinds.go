package notify

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Kinds returns a transition's kinds of event, most important first.
func Kinds(before, after rollout.State) []rollout.EventKind {
	is := map[rollout.EventKind]bool{}
	releaseKinds(is, before, after)
	analysisKinds(is, before, after)
	b, a := before.Held, after.Held
	isNew := a != nil && (b == nil || b.Reason != a.Reason || b.Message != a.Message)
	is[rollout.EventHeld] = isNew && !a.Waits()
	// Many apps wait for a cohort or stage, so only an app that asks a user is an event.
	is[rollout.EventWaiting] = a.Waits() && !a.Is(rollout.HeldCohort, rollout.HeldStage) &&
		(!b.Waits() || b.Commit != a.Commit)
	is[rollout.EventDegraded] = before.Unhealthy == "" && after.Unhealthy != ""
	isOver := len(troubles("", before)) > 0 && len(troubles("", after)) == 0
	is[rollout.EventRecovered] = isOver && (before.Unhealthy == "" || after.Release == nil)
	return slices.DeleteFunc(rollout.EventKinds(), func(kind rollout.EventKind) bool { return !is[kind] })
}

func releaseKinds(is map[rollout.EventKind]bool, before, after rollout.State) {
	same := before.Release.Same(after.Release)
	stepped, opened := false, false // to a later step; by a promotion
	for _, p := range after.Progress {
		if was, found := before.ProgressOf(p.Workload); found && p.Step > was.Step {
			stepped, opened = same && after.Phase != rollout.Aborting, opened || p.Opened != ""
		}
	}
	turned := after.Phase != before.Phase
	aborts := turned && after.Phase == rollout.Aborting
	is[rollout.EventStarted] = !same && after.Release != nil && !aborts
	is[rollout.EventStepCompleted] = stepped
	is[rollout.EventPromoted] = stepped && opened
	is[rollout.EventPaused] = after.Phase == rollout.Paused && (turned || stepped || !same)
	is[rollout.EventCompleted] = after.Release == nil && before.Release != nil && before.Phase != rollout.Aborting &&
		after.Stable != nil && after.Stable.Hash == before.Release.Hash
	is[rollout.EventAborted] = aborts && after.Rollback != nil && after.Rollback.Reject
	is[rollout.EventRolledBack] = aborts && !is[rollout.EventAborted]
	is[rollout.EventRestored] = turned && before.Phase == rollout.Aborting
	is[rollout.EventStalled] = stalls(after) && !(same && stalls(before))
}

func stalls(s rollout.State) bool {
	return s.Phase == rollout.Stalled || (s.Rollback != nil && s.Rollback.Late)
}

var analysisEvents = map[rollout.AnalysisPhase]rollout.EventKind{
	rollout.AnalysisFailed: rollout.EventAnalysisFailed, rollout.AnalysisErrored: rollout.EventAnalysisError,
	rollout.AnalysisInconclusive: rollout.EventAnalysisInconclusive,
}

func analysisKinds(is map[rollout.EventKind]bool, before, after rollout.State) {
	for _, run := range after.Analyses {
		i := slices.IndexFunc(before.Analyses, run.Same)
		if i < 0 {
			is[rollout.EventAnalysisStarted] = true
		}
		if kind, bad := analysisEvents[run.Phase]; bad && (i < 0 || before.Analyses[i].Phase != run.Phase) {
			is[kind] = true
		}
	}
}

// unhealthy ends the id of a problem without a release in flight.
const unhealthy = "unhealthy"

// troubles returns the ids of at most three problems, the release's first. The release's id is constant from the stall
// until users revert.
func troubles(prefix string, s rollout.State) (all []string) {
	switch {
	case s.Phase == rollout.Degraded && len(s.Rejected) > 0:
		all = append(all, prefix+string(s.Rejected[0].Hash))
	case s.Release != nil && (stalls(s) || (s.Phase == rollout.Aborting && s.Rollback != nil && s.Rollback.Reject)):
		all = append(all, prefix+string(s.Release.Hash))
	}
	if s.Unhealthy != "" {
		all = append(all, prefix+unhealthy)
	}
	if s.Held != nil && !s.Held.Waits() {
		all = append(all, prefix+"held")
	}
	return all
}
