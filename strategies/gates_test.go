package strategies

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// TestGatesOfAFullPromotion checks which gates a full promotion opens. A new gate needs an entry here.
func TestGatesOfAFullPromotion(t *testing.T) {
	names := func(all gateList) []string { return rollout.Mapped(all, func(g gate) string { return g.name }) }
	all := []string{"hold", "base", "healed", "suspended", "routers", "inconclusive", "wait", "window"}
	compare.CheckNamed(t, "the gates", all, names(gates))
	compare.CheckNamed(t, "those that a promotion of everything does not open", []string{"hold", "healed", "window"}, names(fullGates))
}

// TestGatesAskInOrder checks lists of open and shut gates. The first shut gate decides. If all gates are open, the verdict names the first
// promoter.
func TestGatesAskInOrder(t *testing.T) {
	shut := func(name string) gate {
		return gate{name, func(Input, workloads.Staged) verdict { return verdict{text: name} }}
	}
	open := gate{"open", func(Input, workloads.Staged) verdict { return verdict{done: true} }}
	by := gate{"by", func(Input, workloads.Staged) verdict { return verdict{done: true, by: "Ann"} }}
	cases := map[string]struct {
		gates gateList
		want  verdict
	}{
		"None":      {nil, verdict{done: true}},
		"Open":      {gateList{open, open}, verdict{done: true}},
		"Somebody":  {gateList{open, by, open}, verdict{done: true, by: "Ann"}},
		"First":     {gateList{open, shut("a"), shut("b")}, verdict{text: "a"}},
		"AfterBy":   {gateList{by, shut("b")}, verdict{text: "b"}},
		"Except":    {gateList{shut("a"), shut("b"), by}.except("a", "b"), verdict{done: true, by: "Ann"}},
		"ExceptOne": {gateList{shut("a"), shut("b")}.except("a"), verdict{text: "b"}},
	}
	for name, tc := range cases {
		compare.CheckNamed(t, name, tc.want, tc.gates.verdict(Input{}, workloads.Staged{}))
	}
}

// TestEarly checks which waits a promotion may end early.
func TestEarly(t *testing.T) {
	at := func(step int) Input {
		_, in := atStep(nil, step)
		in.Now = in.Now.Add(time.Second)
		return in
	}
	cases := map[string]struct {
		reason  string
		in      Input
		change  func(*Input)
		through string
	}{
		"Timer":    {"a pause by the clock", at(2), nil, "3"},
		"Over":     {"one that is over has no time left", at(2), func(in *Input) { in.Now = in.Now.Add(time.Hour) }, ""},
		"Gate":     {"a gate is not a timed pause", at(1), nil, ""},
		"Pods":     {"nor is a weight", at(0), nil, ""},
		"Through":  {"nor the end of the steps", at(3), nil, ""},
		"Aborting": {"nor a rollback", at(2), func(in *Input) { in.State.Phase = rollout.Aborting }, ""},
		"AtRest":   {"nor an app at rest", world(twoVersions(nil)), nil, ""},
	}
	for name, tc := range cases {
		if tc.change != nil {
			tc.change(&tc.in)
		}
		through := ""
		if key := Early(tc.in); key != nil {
			through = key.Through
		}
		compare.CheckNamed(t, name+", "+tc.reason, tc.through, through)
	}
}

// TestWaits checks the properties of each wait. The number of a wait is part of recorded digests, so it must not change.
func TestWaits(t *testing.T) {
	cases := map[string]struct {
		wait   plan.Wait
		number int
		pauses bool
		ends   string
	}{
		"Pods":       {plan.PodsWait{}, 0, false, WaitPods},
		"Promotion":  {plan.PromotionWait{}, 1, true, WaitPromotion},
		"Timer":      {plan.TimerWait{Duration: time.Minute}, 2, true, WaitTime},
		"Delay":      {plan.DelayWait{Duration: time.Minute}, 3, true, WaitTime},
		"Nothing":    {plan.NoWait{}, 4, false, ""},
		"Analysis":   {plan.AnalysisWait{Analysis: &rollout.Analysis{}}, 5, false, WaitAnalysis},
		"Experiment": {plan.ExperimentWait{Experiment: &rollout.Experiment{}}, 6, false, ""},
	}
	for name, tc := range cases {
		got := tc.wait.Traits()
		if got.Number != tc.number || got.Pauses != tc.pauses {
			t.Errorf("%s: the traits are %+v, want %d, %t", name, got, tc.number, tc.pauses)
		}
		p := plan.Compiled{Stages: []plan.Stage{{Counts: plan.FullSets, Wait: tc.wait}}}
		c := &forecaster{in: Planned{Replicas: 3, Now: noon}, plan: &p, at: noon, known: true}
		compare.CheckNamed(t, name+": it is ended by", tc.ends, c.stage().Wait)
	}
}

// TestWaitsOfAFastRelease checks that a version that was verified before waits only for pods and delays.
func TestWaitsOfAFastRelease(t *testing.T) {
	h := twoVersions(nil)
	in := inFlight(h, 0, set(h, commitID(1), 0, 0), set(h, commitID(0), 10, 10))
	in.State.Release.Fast = true
	m := stagedIn(in)[0]
	metrics := &rollout.Analysis{Metrics: []rollout.Metric{{Name: "errors"}}}
	for name, tc := range map[string]struct {
		wait plan.Wait
		done bool
	}{
		"Pods":       {plan.PodsWait{}, false},
		"Promotion":  {plan.PromotionWait{}, true},
		"Timeout":    {plan.PromotionWait{Timeout: time.Minute, OnTimeout: rollout.TimeoutAbort}, true},
		"Timer":      {plan.TimerWait{Duration: time.Minute}, true},
		"Schedule":   {plan.TimerWait{Until: "0 9 * * *"}, true},
		"Delay":      {plan.DelayWait{Duration: time.Minute}, false},
		"Nothing":    {plan.NoWait{}, true},
		"Analysis":   {plan.AnalysisWait{Analysis: metrics}, true},
		"Experiment": {plan.ExperimentWait{Experiment: &rollout.Experiment{}}, true},
	} {
		if v := verdictOf(tc.wait, in, m); v.done != tc.done {
			t.Errorf("%s: done is %t: %s", name, v.done, v.text)
		}
	}
}

// TestStateBeforeARelease checks that the recorded state is valid while the next release of an app cannot start yet.
func TestStateBeforeARelease(t *testing.T) {
	release := rollout.Release{Commit: commitID(1), Hash: "h1-two", Since: noon}
	stable := rollout.Release{Commit: commitID(0), Hash: "h1-one", Since: noon}
	cases := map[string]struct{ was, want rollout.State }{
		"New":         {rollout.State{}, rollout.State{Phase: rollout.Pending}},
		"Progressing": {rollout.State{Phase: rollout.Progressing}, rollout.State{Phase: rollout.Healthy}},
		"Promoting":   {rollout.State{Phase: rollout.Promoting}, rollout.State{Phase: rollout.Healthy}},
		"Stalled":     {rollout.State{Phase: rollout.Stalled, Reason: "no progress"}, rollout.State{Phase: rollout.Healthy}},
		"RolledBack":  {rollout.State{Phase: rollout.Aborting, Reason: "reverted"}, rollout.State{Phase: rollout.Healthy}},
		"Degraded":    {rollout.State{Phase: rollout.Degraded, Reason: "rejected"}, rollout.State{Phase: rollout.Degraded, Reason: "rejected"}},
		"InFlight": {rollout.State{Phase: rollout.Progressing, Release: &release},
			rollout.State{Phase: rollout.Progressing, Release: &release}},
	}
	for name, tc := range cases {
		got := tc.was
		beforeRelease(&got)
		got.App, tc.want.App = "shop", "shop"
		got.Stable, tc.want.Stable = &stable, &stable
		got.Source, tc.want.Source = commitID(0), commitID(0)
		compare.CheckNamed(t, name, tc.want, got)
		file, err := got.Encode()
		if err == nil {
			_, err = rollout.ParseState("state", file)
		}
		if err != nil {
			t.Errorf("%s: no process can read the record: %v", name, err)
		}
	}
}
