package reconciler

import (
	"context"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// announce says what happened: one log line for each transition, and a note on
// each workload. A retreat is told of when it happens, not when Git hears of it.
func (r *Reconciler) announce(ctx context.Context, s *step) {
	told := s.app.told
	if s.app.told = !s.recorded; told {
		return
	}
	state := s.decision.State
	r.Log.Info("transition", append(facts(r.Cluster, state), "what", s.decision.Subject, "waiting", s.decision.Waiting)...)
	reason, warning := noteOf(state, s.decision.Retreat)
	for _, w := range workloads(s.app, state) {
		if _, exists := s.input.Observed.Workloads[w]; exists && r.Record != nil {
			r.Record(ctx, w.Ref(), warning, reason, s.decision.Subject)
		}
	}
}

// noteOf is the reason of an Event, one word for machines: why the app is held, or
// else its phase. It is a warning when somebody should look.
func noteOf(s rollout.State, retreats bool) (reason string, warning bool) {
	if s.Held != nil {
		return string(s.Held.Reason), !s.Held.Waits()
	}
	return string(s.Phase), retreats || s.Phase == rollout.Stalled || s.Phase == rollout.Degraded
}

// facts are the fields of a transition's log line. Those that say nothing are left
// out, so that a query for a field finds what has it.
func facts(cluster string, s rollout.State) []any {
	all := []any{"app", s.App, "cluster", cluster, "phase", string(s.Phase)}
	add := func(key, value string) {
		if value != "" {
			all = append(all, key, value)
		}
	}
	release := s.Release
	if release == nil && s.Phase == rollout.Healthy {
		release = s.Stable
	}
	switch {
	case release != nil:
		add("release", string(release.Hash))
		add("commit", release.Commit)
		add("author", release.Author)
	case s.Phase == rollout.Degraded && len(s.Rejected) > 0:
		add("release", string(s.Rejected[0].Hash))
		add("commit", s.Rejected[0].Commit)
	}
	if len(s.Progress) > 0 {
		var steps []string
		weight := s.Progress[0].Weight
		for _, p := range s.Progress {
			text := fmt.Sprintf("%d/%d", min(p.Step+1, p.Of), p.Of)
			if len(s.Progress) > 1 {
				text = p.Workload.String() + " " + text
			}
			steps, weight = append(steps, text), min(weight, p.Weight)
		}
		add("step", strings.Join(steps, ", "))
		all = append(all, "weight", weight)
	}
	add("reason", s.Reason)
	if s.Held != nil {
		add("held", string(s.Held.Reason))
		add("message", s.Held.Message)
	}
	return all
}
