package reconciler

import (
	"errors"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
)

func (r *Reconciler) report(s recorded, m *appCache) {
	in := s.input
	in.App, in.State, in.Runs = s.app.App, s.after, m.runs
	happened := m.happened(s.commit != "", s.decision.Rollback)
	if happened {
		r.Log.Info("transition", append(facts(r.Cluster, s.decision.State),
			"what", s.decision.Subject, "waiting", s.decision.Waiting)...)
	}
	r.Tell(report.Report{Apps: []report.App{{
		Cluster: r.Cluster, Before: s.before, Input: in, Decision: s.decision, Happened: happened,
		Proposals: r.states.proposed(), Err: errors.Join(s.err, s.unpushed),
	}}})
}

// happened reports whether to report a transition now: a rollback after its apply, any other transition after its push.
func (m *appCache) happened(isRecorded, isRollback bool) bool {
	if !isRecorded && !isRollback {
		return false
	}
	told := m.told
	m.told = !isRecorded
	return !told
}

// facts omits empty fields, so that a query for a field finds only values.
func facts(cluster string, s rollout.State) []any {
	all := []any{"app", s.App, "cluster", cluster, "phase", string(s.Shown())}
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
		step, weight := stepAndWeight(s.Progress)
		add("step", step)
		all = append(all, "weight", weight)
	}
	add("reason", s.Reason)
	add("unhealthy", s.Unhealthy)
	if s.Held != nil {
		add("held", string(s.Held.Reason))
		add("message", s.Held.Message)
	}
	return all
}

func stepAndWeight(progress []rollout.Progress) (step string, weight int) {
	var steps []string
	weight = progress[0].Weight
	for _, p := range progress {
		text := fmt.Sprintf("%d/%d", min(p.Step+1, p.Of), p.Of)
		if len(progress) > 1 {
			text = p.Workload.String() + " " + text
		}
		steps, weight = append(steps, text), min(weight, p.Weight)
	}
	return strings.Join(steps, ", "), weight
}
