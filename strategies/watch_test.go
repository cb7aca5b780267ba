package strategies_test

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// TestWatchMeasures checks the measurements of a watch. The new version is measured now. The former version has no pods, so it is measured
// at the time when the release began. A good measurement changes no record. The end of the watch changes only the record.
func TestWatchMeasures(t *testing.T) {
	s := scriptOf(t, "replicas: 3\nwatch: {metrics: [errors], for: 1h}")
	s.serials = true
	s.git.commits[0].workloads[0].spec.Canary.Watch.Metrics[0].Compare = &rollout.Compare{Before: true}
	s.play(t, "start\n+1m\npush v2\n")
	began := s.state.Watch.Began
	s.play(t, "+5m\n")
	d := strategies.Decide(s.input(s.state, true))
	if len(d.Measure) != 1 {
		t.Fatalf("%d measurements are due: %s", len(d.Measure), dump(s.state))
	}
	m, pods := d.Measure[0], map[string]string{}
	for _, r := range s.input(s.state, true).Observed.Workloads[s.git.workload()].Revisions {
		pods[string(r.Hash)] = r.Pin.Value
	}
	stable, former := s.state.Stable.Templates[s.git.workload()], s.state.Watch.Former.Templates[s.git.workload()]
	compare.CheckNamed(t, "measured", []any{"web/watch", pods[string(stable)], pods[string(former)], began, true},
		[]any{m.Run, m.Latest, m.Stable, m.Before, m.IsSteady})
	compare.CheckNamed(t, "still measured", 1, len(strategies.Going(s.state)))
	was := s.state
	s.play(t, "measure web/watch/errors Successful\n+5m\n")
	compare.CheckNamed(t, "after a good measurement", was.Serial, s.state.Serial)
	mark := s.state.Mark()
	s.play(t, "+1h\n")
	if s.state.Watch != nil || s.state.Serial == was.Serial || s.state.Mark() != mark {
		t.Errorf("watch %v, serial %d, mark %d; before: serial %d, mark %d", s.state.Watch, s.state.Serial, s.state.Mark(), was.Serial, mark)
	}
	compare.CheckNamed(t, "the end", time.Duration(0), s.state.Analyses[0].Started.Sub(s.state.Stable.Since))
}

// TestWatchWhileANewerVersionWaits checks a watch while a newer version waits for its cohort. The version that serves is still watched, and
// a failure takes the app back to the former version. The watch ends when the newer version begins.
func TestWatchWhileANewerVersionWaits(t *testing.T) {
	s := scriptOf(t, "replicas: 3\nwatch: {metrics: [errors], for: 1h}")
	s.play(t, "start\n+1m\npush v2\n+5m\n")
	former := s.state.Watch.Former
	s.git.push(func(s *source) { s.workloads[0].version = "v3" })
	in := s.input(s.state, true)
	in.Head, in.Entry = s.git.headInput(), &cohort.Entry{Waits: "cohort 2 of 3: x", Hold: "cohort 2 of 3",
		Release: s.git.at(s.git.headID()).Release(), Commit: rollout.Commit{ID: s.git.headID(), Author: "Ann"}}
	d := strategies.Decide(in)
	if d.State.Watch == nil || !d.State.Held.Is(rollout.HeldCohort) || len(d.Measure) != 1 {
		t.Fatalf("watch %v, held %v, measured %d", d.State.Watch, d.State.Held, len(d.Measure))
	}
	in.State = d.State
	failed := d.Measure[0].Judge(strategies.Result{At: in.Now, Phase: rollout.AnalysisFailed, Samples: -1})
	bad := in
	bad.Runs = strategies.Record(bad, failed)
	d = strategies.Decide(bad)
	if !d.Rollback || d.State.Rollback.To != former.Commit || d.State.Watch != nil {
		t.Fatalf("after a failure: %s, %+v", d.Subject, d.State.Rollback)
	}
	in.Entry.Open = true
	in.Answers.Accepted = map[string]error{s.git.headID(): nil}
	if d = strategies.Decide(in); d.State.Watch != nil || d.State.Release == nil {
		t.Errorf("after the newer version began: watch %+v, release %+v", d.State.Watch, d.State.Release)
	}
}
