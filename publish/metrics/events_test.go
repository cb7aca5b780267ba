package metrics_test

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/publish/metrics"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	old   = rollout.Hash("h1-0000000001")
	fresh = rollout.Hash("h1-0000000002")
	other = rollout.Hash("h1-0000000003")
)

func release(h rollout.Hash, since time.Duration) *rollout.Release {
	return &rollout.Release{Hash: h, Commit: string(h), Since: noon.Add(since)}
}

// atRest returns the state of an app without a release in flight. Its stable version (old) was released an hour ago.
func atRest() rollout.State {
	return rollout.State{App: "shop", Phase: rollout.Healthy, Serial: 3, Stable: release(old, -time.Hour), Source: "a"}
}

func with(s rollout.State, change func(*rollout.State)) rollout.State {
	s.Serial++
	change(&s)
	return s
}

// flying returns the same app's state while a newer version's release is in flight.
func flying() rollout.State {
	return with(atRest(), func(s *rollout.State) { s.Phase, s.Release = rollout.Progressing, release(fresh, 0) })
}

// serving returns the same app's state after the newer version has become stable.
func serving(since time.Duration) rollout.State {
	return with(flying(), func(s *rollout.State) { s.Phase, s.Release, s.Stable = rollout.Healthy, nil, release(fresh, since) })
}

func minutes(n int) *time.Duration {
	d := time.Duration(n) * time.Minute
	return &d
}

func TestBetween(t *testing.T) {
	inFlight := flying()
	back := func(reject bool) rollout.State {
		return with(inFlight, func(s *rollout.State) {
			s.Phase = rollout.Aborting
			s.Rollback = &rollout.Rollback{Reject: reject, Routed: noon.Add(5 * time.Minute)}
			if reject {
				s.Rejected = []rollout.Rejection{{Hash: fresh, At: noon.Add(5 * time.Minute)}}
			}
		})
	}
	run := func(phase rollout.AnalysisPhase) rollout.AnalysisRun {
		return rollout.AnalysisRun{Name: "step-1", Started: noon, Phase: phase}
	}
	analysed := func(runs ...rollout.AnalysisRun) rollout.State {
		return with(inFlight, func(s *rollout.State) { s.Analyses = runs })
	}
	gone := with(back(true), func(s *rollout.State) { s.Phase, s.Release, s.Rollback = rollout.Degraded, nil, nil })
	first := rollout.State{Serial: 1, Phase: rollout.Progressing, Release: release(fresh, 0)}
	done := run(rollout.AnalysisSuccessful)
	again, another, stopped, running := done, run(rollout.AnalysisErrored), run(rollout.AnalysisStopped), run(rollout.AnalysisRunning)
	again.Started, another.Name, stopped.Name, running.Name = noon.Add(time.Minute), "step-2", "step-3", "step-4"
	for name, tc := range map[string]struct {
		before, after rollout.State
		asked         rollout.Hash
		want          metrics.Change
	}{
		"nothing": {atRest(), atRest(), old, metrics.Change{}},
		"held is no transition": {atRest(),
			func() rollout.State { s := atRest(); s.Held = &rollout.Held{Reason: "InvalidInput"}; return s }(), old, metrics.Change{}},
		"a release begins": {atRest(), inFlight, fresh, metrics.Change{Phase: rollout.Progressing, Started: true}},
		"first deployment": {rollout.State{}, first, fresh, metrics.Change{Phase: rollout.Progressing, Started: true}},
		"first deployment serves": {first, rollout.State{Serial: 2, Phase: rollout.Healthy, Stable: release(fresh, 2*time.Minute)}, fresh,
			metrics.Change{Phase: rollout.Healthy, Outcome: metrics.Promoted, Lead: minutes(2)}},
		"promoted": {inFlight, serving(9 * time.Minute), fresh,
			metrics.Change{Phase: rollout.Healthy, Outcome: metrics.Promoted, Lead: minutes(9)}},
		"rejected":          {inFlight, back(true), fresh, metrics.Change{Phase: rollout.Aborting, Outcome: metrics.Rejected, Until: minutes(5)}},
		"all pods are back": {back(true), gone, fresh, metrics.Change{Phase: rollout.Degraded, Retreat: minutes(5)}},
		"reverted in Git":   {inFlight, back(false), old, metrics.Change{Phase: rollout.Aborting, Outcome: metrics.Reverted}},
		"superseded":        {inFlight, back(false), other, metrics.Change{Phase: rollout.Aborting, Outcome: metrics.Superseded}},
		"the next one begins where the rollback ends": {back(false), with(back(false), func(s *rollout.State) {
			s.Phase, s.Release, s.Rollback = rollout.Progressing, release(other, 10*time.Minute), nil
		}), other, metrics.Change{Phase: rollout.Progressing, Started: true, Retreat: minutes(5)}},
		"a first deployment is replaced": {first, rollout.State{Serial: 2, Phase: rollout.Progressing, Release: release(other, 0)}, other,
			metrics.Change{Phase: rollout.Progressing, Started: true, Outcome: metrics.Superseded}},
		"a rejection and its end at once": {inFlight, gone, fresh,
			metrics.Change{Phase: rollout.Degraded, Outcome: metrics.Rejected, Until: minutes(5)}},
		"an analysis is through": {analysed(run(rollout.AnalysisRunning)), analysed(done), fresh,
			metrics.Change{Verdicts: []rollout.AnalysisPhase{rollout.AnalysisSuccessful}}},
		"analyses that say nothing new": {analysed(done), analysed(done, again, another, stopped, running), fresh,
			metrics.Change{Verdicts: []rollout.AnalysisPhase{rollout.AnalysisSuccessful, rollout.AnalysisErrored}}},
		"nothing is rolling back": {with(inFlight, func(s *rollout.State) { s.Phase = rollout.Aborting }), atRest(), fresh,
			metrics.Change{Phase: rollout.Healthy}},
		"a rollback that goes on": {back(true), back(true), fresh, metrics.Change{}},
		"a rejection of another version": {inFlight, with(back(true), func(s *rollout.State) { s.Rejected[0].Hash = other }), other,
			metrics.Change{Phase: rollout.Aborting, Outcome: metrics.Superseded}},
		"a watch goes back": {with(serving(9*time.Minute), func(s *rollout.State) { s.Watch = &rollout.Watch{Began: noon} }), back(true), fresh,
			metrics.Change{Phase: rollout.Aborting, Outcome: metrics.Rejected, Until: minutes(10)}},
		"the clock was ahead": {inFlight, serving(-time.Second), fresh,
			metrics.Change{Phase: rollout.Healthy, Outcome: metrics.Promoted, Lead: minutes(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			compare.Check(t, tc.want, metrics.Between(tc.before, tc.after, tc.asked, noon.Add(10*time.Minute)))
		})
	}
}

// TestWaitOf checks that the wait for a promotion starts when the last workload reaches its gate.
func TestWaitOf(t *testing.T) {
	in := strategies.Input{Now: noon.Add(time.Hour), App: rollout.App{Name: "shop"}}
	head := &rollout.Render{Commit: rollout.Commit{ID: "c2"}, Templates: map[rollout.Workload]rollout.Hash{}}
	stable := &rollout.Release{Hash: old, Commit: "c1", Templates: map[rollout.Workload]rollout.Hash{}}
	in.Observed.Workloads = map[rollout.Workload]rollout.ObservedWorkload{}
	for i, name := range []string{"api", "web", "worker"} {
		w := rollout.Workload{Namespace: "shop", Name: name}
		head.Templates[w], stable.Templates[w] = fresh, old
		head.Specs = append(head.Specs, rollout.Spec{
			Name: name, Workload: w, Replicas: new(5), MaxSurge: rollout.Amount{Value: 1}, ProgressDeadlineSeconds: 600, Scaling: rollout.Surge,
			Canary: &rollout.Canary{Steps: []rollout.Step{{Pause: &rollout.Pause{}}, {SetWeight: new(60)}}},
		})
		in.State.Progress = append(in.State.Progress, rollout.Progress{
			Workload: w, Of: 2, Name: "pause", Entered: noon.Add([]time.Duration{1, 7, 3}[i] * time.Minute),
		})
		in.Observed.Workloads[w] = rollout.ObservedWorkload{Replicas: 5, Synced: true, Revisions: []rollout.Revision{
			{Name: name, Hash: old, Desired: 5, Pods: 5, ReadySince: []time.Time{noon, noon, noon, noon, noon}},
		}}
	}
	in.Head, in.Source = strategies.Head{Commit: head.Commit, Render: head}, head
	in.State.App, in.State.Phase, in.State.Stable = "shop", rollout.Paused, stable
	in.State.Release = &rollout.Release{Hash: head.Release(), Commit: "c2", Since: noon, Templates: head.Templates}
	compare.Check(t, metrics.Wait{metrics.OnPromotion, noon.Add(7 * time.Minute)}, metrics.WaitOf(in))
	in.State.Progress[1].Step, in.State.Progress[1].Weight = 1, 60
	m := newTest(t)
	m.Tell(report.Report{Apps: []report.App{{Input: in, Before: in.State}}})
	wants(t, served(t, m), `gitrollout_app_release_weight_ratio{app="shop",workload="shop/web"} 0.6`,
		`gitrollout_app_release_weight_ratio{app="shop",workload="shop/api"} 0`)
	opened := in
	opened.State.Phase, opened.Now = rollout.Progressing, noon.Add(8*time.Minute)
	opened.State.Progress = []rollout.Progress{{Workload: head.Specs[1].Workload, Step: 1, Of: 2}}
	m.Tell(report.Report{Apps: []report.App{{Input: opened, Before: in.State}}})
	wants(t, served(t, m), `gitrollout_waiting_for_people_seconds_count{on="promotion"} 1`)
}
