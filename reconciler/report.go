package reconciler

import (
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Report is what the loop has come to at one moment. Everybody who tells or shows reads this and nothing else:
// forge, notifications, metrics, Events, the dashboard and gitrollout once. Nothing in it is written to
// afterwards.
type Report struct {
	Config *rollout.Config   // in force; nil while none could be read
	Head   string            // of the state branch, where Config is told
	Commit *rollout.Recorded // that this process has just made on it; nil if none
	Forge  *Shown            // what a forge is to show; nil if nothing
	Apps   []App             // that were looked at
	Gone   []string          // apps that are no more
}

// App is what a visit knew of one app when it was over: enough to explain where it stands, with what was measured
// since the last record.
type App struct {
	Cluster   string
	Before    rollout.State       // the record before the visit
	Input     strategies.Input    // with the record after it
	Decision  strategies.Decision //
	Happened  bool                // the decision is a transition that was recorded, or a retreat that was applied, now
	Proposals map[string]string   // all of them, by branch
	Err       error               // what went wrong with this app
}

// report shows what a visit has come to.
func (r *Reconciler) report(s *visit) {
	in := s.input
	in.App, in.State, in.Runs = s.app.App, s.after, s.memory.runs
	happened := s.happened()
	if happened {
		r.Log.Info("transition", append(facts(r.Cluster, s.decision.State),
			"what", s.decision.Subject, "waiting", s.decision.Waiting)...)
	}
	r.tell(Report{Apps: []App{{
		Cluster: r.Cluster, Before: s.before, Input: in, Decision: s.decision, Happened: happened,
		Proposals: r.record.proposed(), Err: s.err,
	}}})
}

// happened reports whether a visit has brought what people are told of. A retreat is told of when it happens, not when
// Git hears of it.
func (s *visit) happened() bool {
	if !s.recorded && !s.decision.Retreat {
		return false
	}
	told := s.memory.told
	s.memory.told = !s.recorded
	return !told
}

// Note is the reason of an Event about a transition, one word for machines: why the app is held, or else its phase. It
// is a warning when somebody should look.
func (a App) Note() (reason string, warning bool) {
	s := a.Decision.State
	if s.Held != nil {
		return string(s.Held.Reason), !s.Held.Waits()
	}
	phase := s.Shown()
	return string(phase), a.Decision.Retreat || phase == rollout.Stalled || phase == rollout.Degraded
}

// facts are the fields of a transition's log line. Those that say nothing are left out, so that a query for a field
// finds what has it.
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

// stepAndWeight is how far a release has come: "2/5", and the share of its slowest workload in percent.
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
