package e2e

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
)

// nextSecond waits for the next second, so that a restart is later than the pods' creation times, which have whole seconds.
func (w *world) nextSecond() {
	w.t.Helper()
	begun := time.Now().Truncate(time.Second)
	w.until("the next second", func() bool { return time.Now().Truncate(time.Second).After(begun) })
}

// TestRestart restarts the pods of each kind of workload with gitrollout restart, and kills gitrollout meanwhile. Each pod is replaced
// once. At most maxUnavailable pods are not ready, and the app's state in Git does not change.
func TestRestart(t *testing.T) {
	t.Parallel()
	steps := []string{"setWeight: 50", "pause: {}"}
	for name, tc := range map[string]struct {
		app     shop
		n, most int
	}{
		"Deployment":  {newShop(6, "maxUnavailable: 2", steps...), 6, 2},
		"StatefulSet": {set("replicas: 3", "OrderedReady", "", steps...), 3, 1},
		"DaemonSet":   {agents("", steps...), 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := running(t, tc.app.files())
			w.pods.awaitReady(t, map[string]int{"v1": tc.n})
			before, mark := w.state(), w.pods.mark()
			w.nextSecond()
			compare.Contains(t, w.ran("restart", w.app), "deletes the pods of "+w.app)
			w.until("a first new pod", func() bool { return w.pods.count("v1") > tc.n })
			w.restartAfterKill()
			w.until("all pods are new", func() bool { return w.pods.count("v1") >= 2*tc.n })
			w.pods.awaitReady(t, map[string]int{"v1": tc.n})
			w.pods.stays(t, 300*time.Millisecond)
			w.pods.wantStarted(t, map[string]int{"v1": 2 * tc.n})
			w.pods.wantReady(t, mark, tc.n-tc.most)
			if after := w.state(); !after.Equal(&before) {
				t.Errorf("the restart is on record: %+v, before %+v", after, before)
			}
		})
	}
}

// TestRestartNeedsTheRightToDeletePods checks that a restart without the right to delete pods logs the missing right. With the right, the
// restart completes.
func TestRestartNeedsTheRightToDeletePods(t *testing.T) {
	t.Parallel()
	app := newShop(2, "", "setWeight: 50", "pause: {}")
	w := newWorld(t, app.files())
	w.startWithoutEvictions("deployments.apps").awaitHealthy(w.repo.Head())
	w.nextSecond()
	w.ran("restart", w.app)
	w.awaitLog("cannot delete pods: ")
	w.awaitGet(fmt.Sprintf("the restart of %s/shop: 2 pods created before", w.ns))
	w.pods.wantStarted(t, map[string]int{"v1": 2})
	w.grantEvictions()
	w.until("all pods are new", func() bool { return w.pods.count("v1") == 4 })
}

// TestThreshold sets replicaProgressThreshold to 60 %, and releases a version whose last two pods never become ready. The second step
// completes when 3 of 4 pods are ready. The release completes when 3 of 5 pods are ready, because maxUnavailable is 2.
func TestThreshold(t *testing.T) {
	t.Parallel()
	app := newShop(5, "maxUnavailable: 2\nreplicaProgressThreshold: {type: Percent, value: 60}", "setWeight: 40", "pause: {}",
		"setWeight: 80", "pause: {}")
	w := running(t, app.files())
	mark := w.pods.mark()
	next := app.at("v2")
	next.pod = "      readinessGates: [{conditionType: example.com/lucky}]\n"
	commit := w.push("v2", next.files())
	w.awaitGet("pods of the new version: 0 of 2 serve")
	w.openGates("v2", 3)
	w.awaitPause(1)
	w.promote().awaitPause(3)
	w.awaitPods("3 of 4 pods of v2 are ready", func(s sample) bool { return s.ready["v2"] == 3 && s.all["v2"] == 4 })
	w.promote().awaitHealthy(commit)
	w.pods.wantReady(t, mark, 3)
}
