package reconciler

import (
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestOnlyRollbacks runs a process that may only roll back, as abort --now does. It pushes nothing, although Git answers. A promotion in
// Git, and a request about another app, make it write nothing. A request about its app makes it roll back, and the next full process
// records the abort.
func TestOnlyRollbacks(t *testing.T) {
	w := paused(t, nil)
	all, isBack := w.r.Options, false
	w.commit("promoted", promotion(w, "full"))
	start := func(apps ...string) {
		o := all
		o.Only = apps
		telling(func(a report.App) { isBack = strategies.IsRolledBack(a.Input, a.Decision) })(&o)
		w.r, w.cluster.applied, w.cluster.pruned = New(o), nil, nil
		w.passes(10)
	}
	request := func() {
		for _, d := range w.cluster.Deployments {
			s := w.state()
			d.BreakGlass = rollout.BreakGlass{Release: s.Release.Hash, Serial: s.Serial, Reason: "v2 burns", At: w.now}.Encode()
		}
	}

	writesNothing := func(app string) {
		t.Helper()
		start(app)
		w.want(rollout.Paused, 2)
		compare.CheckNamed(t, "applied and pruned", "[] []", fmt.Sprint(w.cluster.applied, w.cluster.pruned))
	}

	writesNothing("shop")
	request()
	writesNothing("cart")
	start("shop")
	w.want(rollout.Paused, 0)
	w.wantBackPods()
	compare.CheckNamed(t, "seen as rolled back", true, isBack)
	start("shop")
	w.wantBackPods()
	compare.CheckNamed(t, "seen as rolled back by the next user", true, isBack)

	w.r = New(all)
	w.pass()
	w.want(rollout.Aborting, 0)
	compare.CheckNamed(t, "recorded reason", "aborted by break glass: v2 burns", w.state().Reason)
}
