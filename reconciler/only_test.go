package reconciler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestOnlyRollbacks runs a process as `abort --now` does: it may only roll back one app. The process never pushes. It ignores a promotion
// in Git, and an abort of another app. After an abort of its app, the process rolls back, and the next full process records the abort. Its
// reports contain only the cluster's errors.
func TestOnlyRollbacks(t *testing.T) {
	roles := &roleWriter{}
	w := newWorld(t, func(o *reconciler.Options) { o.Annotations = roles })
	for _, v := range []string{"v1", "v2"} {
		w.follow(v+" with a role", map[string]string{"apps/shop/app.yaml": strings.Replace(version(v),
			"{canary: {", "{canary: {canaryMetadata: {labels: {role: canary}}, ", 1)})
	}
	w.want(rollout.Paused, 2)
	compare.CheckNamed(t, "a full process patches pods", true, roles.asked > 0)
	all, isBack, problem := w.r.Options, false, error(nil)
	w.commit("promoted", promotion(w, "full"))
	start := func(apps ...string) {
		o := all
		o.Only = apps
		telling(func(a report.App) { isBack, problem = strategies.IsRolledBack(a.Input, a.Decision), a.Err })(&o)
		w.r, w.cluster.applied, w.cluster.pruned, roles.asked = reconciler.New(o), nil, nil, 0
		w.passes(10)
		compare.CheckNamed(t, "patched pods", 0, roles.asked)
	}

	writesNothing := func(app string) {
		t.Helper()
		start(app)
		w.want(rollout.Paused, 2)
		compare.CheckNamed(t, "applied and pruned", "[] []", fmt.Sprint(w.cluster.applied, w.cluster.pruned))
	}

	writesNothing("shop")
	w.breakGlass()
	writesNothing("cart")
	start("shop")
	w.want(rollout.Paused, 0)
	w.wantBackPods()
	compare.CheckNamed(t, "seen as rolled back", true, isBack)
	start("shop")
	w.wantBackPods()
	compare.CheckNamed(t, "seen as rolled back by the next user", true, isBack)
	compare.CheckNamed(t, "the error, although nothing is pushed", "<nil>", fmt.Sprint(problem))
	w.cluster.refuses = func(o rollout.Object) error {
		if o.Kind() == "ConfigMap" {
			return errors.New("denied")
		}
		return nil
	}
	start("shop")
	compare.CheckNamed(t, "the error of a refused object", "denied", fmt.Sprint(problem))
	w.cluster.refuses = nil

	w.r = reconciler.New(all)
	w.pass()
	w.want(rollout.Aborting, 0)
	compare.CheckNamed(t, "recorded reason", "aborted by break glass: v2 burns", w.state().Reason)
}

// TestAbortDuringAPush requests an abort in the cluster while the process pushes a promotion. The process must not apply the promotion, and
// its next pass rolls back.
func TestAbortDuringAPush(t *testing.T) {
	w := paused(t, nil)
	w.commit("promoted", promotion(w, "full"))
	w.git.refuse = func(rollout.Update) error {
		w.breakGlass()
		return nil
	}
	w.pass()
	w.git.refuse = nil
	w.want(rollout.Promoting, 2)
	w.settle()
	w.want(rollout.Degraded, 0)
}

// breakGlass requests the abort of the app shop's release by an annotation of each Deployment.
func (w *world) breakGlass() {
	for _, d := range w.cluster.Deployments {
		s := w.state()
		d.BreakGlass = rollout.BreakGlass{Release: s.Release.Hash, Serial: s.Serial, Reason: "v2 burns", At: w.now}.Encode()
	}
}
