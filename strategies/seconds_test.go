package strategies_test

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// TestWaitsAreNotCutShort checks that a wait that begins late in a second lasts its full time. If recorded times had no fractions of
// seconds, a settle time of 1s could end milliseconds after its start.
func TestWaitsAreNotCutShort(t *testing.T) {
	h := routedWeb(func(s *rollout.Spec) { s.Canary.AbortScaleDownDelaySeconds = 0 })
	h.push(version("v2"))
	begin := func(step int) (in, soon strategies.Input, p *plan.Compiled) {
		in = inFlight(h, step, set(h, commitID(1), 5, 5), set(h, commitID(0), 10, 10))
		in.Now = in.Now.Add(900 * time.Millisecond)
		soon = in
		soon.Now = in.Now.Add(3*time.Second - time.Millisecond)
		return in, soon, plan.Compile(in.Head.Render.Specs[0])
	}

	in, soon, p := begin(0)
	d := strategies.Decide(in)
	if d.State.Progress[0].Routed == nil {
		t.Fatalf("nothing is routed: %s", d.Waiting)
	}
	routed := d.State.Progress[0]
	if strategies.Gates(soon, workloads.New(in.State, p, routed, in.Observed), "routers").Done {
		t.Errorf("routes of %s are taken to be settled at %s, before 3s have passed", in.Now, soon.Now)
	}
	if routed.Routed.Weight = 0; !workloads.New(in.State, p, routed, in.Observed).StillRouted(workloads.View{Now: soon.Now}) {
		t.Errorf("proxies are taken to know of the weight 0 of %s at %s, before 3s have passed", in.Now, soon.Now)
	}

	in, soon, p = begin(0)
	ready := in.Observed.Workloads[web].Revisions[0].ReadySince
	for i := range ready {
		ready[i] = rollout.Second(in.Now) // in whole seconds, as in Kubernetes
	}
	if strategies.WaitVerdict(plan.PodsWait{}, soon, workloads.New(in.State, p, in.State.Progress[0], in.Observed)).Route {
		t.Errorf("pods that became ready at %s are routed to at %s, before 3s have passed", in.Now, soon.Now)
	}

	in, soon, p = begin(4)
	if at := p.Enter(3, in.Now); strategies.Gates(soon, workloads.New(in.State, p, at, in.Observed), "wait").Done {
		t.Errorf("%s, begun at %s, is over at %s", at.Name, in.Now, soon.Now)
	}

	in, _, _ = begin(1)
	in.State.Progress[0].Routed = &rollout.Routing{Weight: 50, At: in.Now.Add(-time.Hour)}
	if back := strategies.Rollback(in, commitID(0), "aborted", false).State.Rollback; back.Drain.Before(in.Now.Add(3 * time.Second)) {
		t.Errorf("pods that proxies know of at %s may go at %s, before 3s have passed", in.Now, back.Drain)
	}
}
