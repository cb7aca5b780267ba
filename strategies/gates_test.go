package strategies_test

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// TestEarly checks which waits a promotion may end early.
func TestEarly(t *testing.T) {
	at := func(step int) strategies.Input {
		_, in := atStep(nil, step)
		in.Now = in.Now.Add(time.Second)
		return in
	}
	cases := map[string]struct {
		reason  string
		in      strategies.Input
		change  func(*strategies.Input)
		through string
	}{
		"Timer":    {"a pause by the clock", at(2), nil, "3"},
		"Over":     {"one that is over has no time left", at(2), func(in *strategies.Input) { in.Now = in.Now.Add(time.Hour) }, ""},
		"Gate":     {"a gate is not a timed pause", at(1), nil, ""},
		"Pods":     {"nor is a weight", at(0), nil, ""},
		"Through":  {"nor the end of the steps", at(3), nil, ""},
		"Aborting": {"nor a rollback", at(2), func(in *strategies.Input) { in.State.Phase = rollout.Aborting }, ""},
		"AtRest":   {"nor an app at rest", world(twoVersions(nil)), nil, ""},
	}
	for name, tc := range cases {
		if tc.change != nil {
			tc.change(&tc.in)
		}
		through := ""
		if key := strategies.Early(tc.in); key != nil {
			through = key.Through
		}
		compare.CheckNamed(t, name+", "+tc.reason, tc.through, through)
	}
}

// TestWaitsOfAFastRelease checks that the release of an earlier verified version waits only for pods and delays.
func TestWaitsOfAFastRelease(t *testing.T) {
	h := twoVersions(nil)
	in := inFlight(h, 0, set(h, commitID(1), 0, 0), set(h, commitID(0), 10, 10))
	in.State.Release.Fast = true
	m := workloads.All(in.State, in.Head.Render.Specs, in.Observed, plan.Cache{})[0]
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
		if v := strategies.WaitVerdict(tc.wait, in, m); v.Done != tc.done {
			t.Errorf("%s: done is %t: %s", name, v.Done, v.Text)
		}
	}
}
