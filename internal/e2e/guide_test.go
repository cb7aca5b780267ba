package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestGettingStarted releases the manifests of Argo Rollouts' getting-started guide. The first step, setWeight 20,
// updates one of five pods. The second step pauses the release without a time limit.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	files := map[string]string{"kustomization.yaml": "resources: [rollout.yaml, service.yaml]\n"}
	for _, name := range []string{"rollout.yaml", "service.yaml"} {
		files[name] = readText(t, filepath.Join("..", "..", "render", "testdata", "getting-started", name))
	}
	w := running(t, files)
	w.pods.awaitReady(t, map[string]int{"blue": 5})
	commit := w.push("yellow",
		map[string]string{"rollout.yaml": strings.Replace(files["rollout.yaml"], "rollouts-demo:blue", "rollouts-demo:yellow", 1)})
	w.awaitPause(1)
	w.pods.awaitReady(t, map[string]int{"blue": 4, "yellow": 1})
	w.ran("promote", w.app, "--full")
	w.awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"yellow": 5})
	w.pods.wantStarted(t, map[string]int{"yellow": 5})
}

// TestChangesInFlight changes fields other than the pod template while a release is paused. No pod starts or stops
// when the steps change, or when the Rollout document is removed and restored. More replicas scale both versions.
func TestChangesInFlight(t *testing.T) {
	t.Parallel()
	app := newShop(5, "scaling: surge", "setWeight: 40", "pause: {}", "setWeight: 80", "pause: {}")
	w := running(t, app.files())
	next := app.at("v2")
	commit := w.stage("v2", next.files())
	w.pods.awaitReady(t, map[string]int{"v1": 5, "v2": 2})

	mark := w.pods.mark()
	next.strategy = canary("scaling: surge", "setWeight: 40", "pause: {}", "setWeight: 60", "pause: {duration: 1}",
		"setWeight: 90", "pause: {}")
	w.push("other steps", next.files())
	w.await("other steps", func(s rollout.State) bool { return len(s.Progress) == 1 && s.Progress[0].Of == 6 })
	w.awaitPause(1)
	for _, s := range w.pods.since(mark) {
		if total(s.all) != 7 {
			t.Fatalf("a change of steps moved pods: %v", s.all)
		}
	}

	next.replicas = "replicas: 10"
	w.push("more replicas", next.files())
	w.pods.awaitReady(t, map[string]int{"v1": 10, "v2": 4})
	w.awaitPause(1)

	mark = w.pods.mark()
	w.push("no document", map[string]string{"kustomization.yaml": "resources: [shop.yaml, services.yaml]\n"})
	held := w.await("held", func(s rollout.State) bool { return s.Held != nil })
	compare.Check(t, rollout.HeldRolloutRemoved, held.Held.Reason)
	compare.Contains(t, held.Held.Message, "restore the document")
	w.pods.stays(t, time.Second)
	w.push("the document is back", next.files())
	w.await("no longer held", func(s rollout.State) bool { return s.Held == nil })
	if moved := w.pods.since(mark); len(moved) > 0 {
		t.Errorf("%d pod events while the document was gone", len(moved))
	}

	w.promote().awaitPause(5)
	w.pods.awaitReady(t, map[string]int{"v1": 10, "v2": 9})
	w.promote().awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"v2": 10})
}

// TestWhatPeopleSee checks what gitrollout's commands, kubectl and the cluster's Events show about a paused release.
func TestWhatPeopleSee(t *testing.T) {
	t.Parallel()
	app := newShop(5, "", "setWeight: 20", "pause: {}")
	w := running(t, app.files())
	commit := w.stage("shop: v2", app.at("v2").files())
	w.pods.awaitReady(t, map[string]int{"v1": 4, "v2": 1})
	for _, tc := range []struct{ args, want []string }{
		{[]string{"get", w.app, "--no-color"},
			[]string{"Paused", "setWeight 20", rollout.ShortID(commit), "canary", "stable", "gitrollout/promote/test/" + w.app, "Dev"}},
		{[]string{"get", w.app, "-o", "json"}, []string{`"phase": "Paused"`}},
		{[]string{"list", "--no-color"}, []string{w.app, "Paused", "20%"}},
		{[]string{"list", "-o", "yaml"}, []string{"phase: Paused"}},
		{[]string{"render", w.app, "--with-state"}, []string{"minReadySeconds: 2147483646", "gitrollout.dev/template-hash"}},
		{[]string{"diff", w.app}, nil},
		{[]string{"once", "--namespaces", w.ns}, nil},
	} {
		compare.Contains(t, w.ran(tc.args...), tc.want...)
	}
	compare.Contains(t, w.kubectl("describe", "deployment/shop"), "held between the steps of release ",
		"gitrollout.dev/commit: "+commit, "gitrollout get "+w.app)
	events, err := w.cluster.Kube.EventsV1().Events(w.ns).List(context.Background(), metav1.ListOptions{})
	must(t, err)
	told := false
	for _, e := range events.Items {
		told = told || (strings.HasPrefix(e.ReportingController, "gitrollout") && e.Reason == "Paused" && e.Regarding.Name == "shop")
	}
	if !told {
		t.Errorf("none of the %d events tells of the pause", len(events.Items))
	}
}
