package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// roles counts the pods of the app by version, label `role` and annotation `note`.
func (w *world) roles() map[string]int {
	w.t.Helper()
	list, err := w.cluster.Kube.CoreV1().Pods(w.ns).List(context.Background(), metav1.ListOptions{LabelSelector: "app=shop"})
	must(w.t, err)
	all := map[string]int{}
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil {
			all[strings.TrimSpace(versionOf(p)+" "+p.Labels["role"]+" "+p.Annotations["note"])]++
		}
	}
	return all
}

func (w *world) awaitRoles(want map[string]int) {
	w.t.Helper()
	awaitEqual(w.t, "roles of the pods", want, w.roles)
}

// TestRoles releases a version of each kind of workload with metadata for each role, and kills gitrollout meanwhile. Running pods get the
// metadata of their new role, and lose the metadata of their former role. No pod is restarted.
func TestRoles(t *testing.T) {
	t.Parallel()
	const fields = "canaryMetadata: {labels: {role: canary}, annotations: {note: new}}\nstableMetadata: {labels: {role: stable}}"
	steps := []string{"setWeight: 50", "pause: {}"}
	withFields := func(app shop) shop { app.strategy = canary(fields, steps...); return app }
	halves := map[string]int{"v1 stable": 2, "v2 canary new": 2}
	for name, tc := range map[string]struct {
		app        shop
		n          int
		atGate     map[string]int
		first, end string
	}{
		"Deployment":  {withFields(newShop(4, "")), 4, halves, "v1 stable", "v2 stable"},
		"StatefulSet": {withFields(set("replicas: 4", "OrderedReady", "")), 4, halves, "v1 stable", "v2 stable"},
		"CloneSet":    {withFields(clones("replicas: 4")), 4, halves, "v1 stable", "v2 stable"},
		"DaemonSet":   {withFields(agents("")), 10, map[string]int{"v1 stable": 5, "v2 canary new": 5}, "v1 stable", "v2 stable"},
		"blue-green": {shop{version: "v1", replicas: "replicas: 2", strategy: blueGreen +
			"      previewMetadata: {labels: {role: preview}}\n      activeMetadata: {labels: {role: active}, annotations: {note: users}}\n"},
			2, map[string]int{"v1 active users": 2, "v2 preview": 2}, "v1 active users", "v2 active users"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newKruise(t, tc.app).start()
			w.awaitHealthy(w.repo.Head())
			w.awaitRoles(map[string]int{tc.first: tc.n})
			commit := w.stage("v2", tc.app.at("v2").files())
			w.awaitRoles(tc.atGate)
			w.promote()
			w.restartAfterKill()
			w.awaitHealthy(commit)
			w.awaitRoles(map[string]int{tc.end: tc.n})
			w.pods.wantStarted(t, map[string]int{"v1": tc.n, "v2": tc.n})
		})
	}
}

// TestRolesAfterAnAbort aborts a version. Until abortScaleDownDelaySeconds have passed, the version's pods exist and keep the canary's
// metadata. Stable pods keep the stable metadata.
func TestRolesAfterAnAbort(t *testing.T) {
	t.Parallel()
	app := newShop(2, "scaling: surge\nstableService: shop\ncanaryService: shop-preview\nabortScaleDownDelaySeconds: 5\n"+
		"canaryMetadata: {labels: {role: canary}}\nstableMetadata: {labels: {role: stable}}", "setWeight: 50", "pause: {}")
	w := running(t, app.files())
	w.stage("v2", app.at("v2").files())
	w.awaitRoles(map[string]int{"v1 stable": 2, "v2 canary": 1})
	w.ran("abort", w.app)
	w.await("the rollback", func(s rollout.State) bool { return s.Phase == rollout.Aborting })
	compare.Check(t, map[string]int{"v1 stable": 2, "v2 canary": 1}, w.roles())
	w.awaitRoles(map[string]int{"v1 stable": 2})
}

// TestRolesNeedTheRightToPatchPods checks a release without the right to patch pods. The release goes on, and the log and `get` name the
// missing right. With the right, the pods get the metadata of their roles.
func TestRolesNeedTheRightToPatchPods(t *testing.T) {
	t.Parallel()
	app := newShop(2, "canaryMetadata: {labels: {role: canary}}", "setWeight: 50", "pause: {}")
	w := newWorld(t, app.files())
	w.startWithoutEvictions("deployments.apps").awaitHealthy(w.repo.Head())
	w.push("v2", app.at("v2").files())
	w.awaitPause(1)
	w.awaitLog("cannot set labels and annotations of pods: ")
	w.awaitLog("allow the reconciler's user to patch this kind")
	w.awaitGet("cannot set labels and annotations of pods: ", "allow the reconciler's user to patch this kind")
	w.awaitRoles(map[string]int{"v1": 1, "v2": 1})
	w.kubectl("create", "role", "roles", "--verb=patch", "--resource=pods")
	w.kubectl("create", "rolebinding", "roles", "--role=roles", fmt.Sprintf("--serviceaccount=%s:gitrollout", w.ns))
	w.awaitRoles(map[string]int{"v1": 1, "v2 canary": 1})
}
