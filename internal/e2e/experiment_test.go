package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// tried returns the test app with an experiment as its first canary step. The first argument has fields of the experiment, such as
// "duration: 25s".
func tried(lasts string, more ...string) shop {
	e := fmt.Sprintf("experiment: {%s, templates: [{name: baseline, specRef: stable, service: {}}, "+
		"{name: canary, specRef: canary, replicas: 2, service: {name: shop-try}}]}", lasts)
	fields := "scaling: surge\nstableService: shop\ncanaryService: shop-preview\nabortScaleDownDelaySeconds: 1\nscaleDownDelaySeconds: 1"
	return newShop(2, fields, append([]string{e}, more...)...)
}

// experiments returns the experiments' Deployments, by template.
func (w *world) experiments() map[string]appsv1.Deployment {
	w.t.Helper()
	list, err := w.cluster.Kube.AppsV1().Deployments(w.ns).List(context.Background(),
		metav1.ListOptions{LabelSelector: rollout.LabelExperiment})
	must(w.t, err)
	found := map[string]appsv1.Deployment{}
	for _, d := range list.Items {
		found[d.Name[strings.LastIndex(d.Name, "-")+1:]] = d
	}
	return found
}

// awaitNone waits until an experiment has no Deployments, Services and pods left.
func (w *world) awaitNone() {
	w.t.Helper()
	options := metav1.ListOptions{LabelSelector: rollout.LabelExperiment}
	awaitEqual(w.t, "objects of an experiment", 0, func() int {
		services, err := w.cluster.Kube.CoreV1().Services(w.ns).List(w.t.Context(), options)
		must(w.t, err)
		pods, err := w.cluster.Kube.CoreV1().Pods(w.ns).List(w.t.Context(), options)
		must(w.t, err)
		return len(w.experiments()) + len(services.Items) + len(pods.Items)
	})
}

// behind returns the numbers of ready pods that a Service selects, by Deployment.
func (w *world) behind(service string) map[string]int {
	w.t.Helper()
	found := map[string]int{}
	for _, pod := range readyPods(w.endpoints(service)) {
		parts := strings.Split(pod, "-")
		found[strings.Join(parts[:len(parts)-2], "-")]++
	}
	return found
}

func (w *world) awaitBehind(service, deployment string, n int) {
	w.t.Helper()
	awaitEqual(w.t, "pods behind Service "+service, map[string]int{deployment: n}, func() map[string]int { return w.behind(service) })
}

func (w *world) awaitExperiment(step int) rollout.State {
	w.t.Helper()
	return w.await("the experiment's pods are available", func(s rollout.State) bool {
		return len(s.Progress) == 1 && s.Progress[0].Step == step && s.Progress[0].Available != nil && s.Phase != rollout.Aborting
	})
}

// awaitExperimentOf waits until the release of the commit with this subject runs its experiment.
func (w *world) awaitExperimentOf(subject string) {
	w.t.Helper()
	w.await(subject+" takes over", func(s rollout.State) bool {
		return s.Release != nil && s.Release.Subject == subject && len(s.Progress) == 1 && s.Progress[0].Available != nil
	})
}

// awaitUnlisted waits until the inventory has no objects of an experiment.
func (w *world) awaitUnlisted() rollout.State {
	w.t.Helper()
	return w.await("the inventory has no experiment", func(s rollout.State) bool {
		return !slices.ContainsFunc(s.Inventory, func(r rollout.Ref) bool { return strings.HasSuffix(r.Name, "-canary") })
	})
}

// TestExperiment runs pods of the stable and of the new version beside the release. Each version has its own Service. The app's Services do
// not select these pods. The experiment continues after a kill of gitrollout, and lasts at least as long as configured.
func TestExperiment(t *testing.T) {
	t.Parallel()
	app := tried("duration: 25s", "pause: {}")
	w := running(t, app.files())
	second := w.push("v2", app.at("v2").files())
	begun := w.awaitExperiment(0)

	found := w.experiments()
	for template, image := range map[string]string{"baseline": "shop:v1", "canary": "shop:v2"} {
		d := found[template]
		if len(d.Spec.Template.Spec.Containers) != 1 || d.Spec.Template.Spec.Containers[0].Image != image || d.Spec.Template.Labels["app"] != "" {
			t.Errorf("the template of %s is %+v", template, d.Spec.Template)
		}
	}
	if len(found) != 2 || w.image() != "shop:v1" {
		t.Errorf("there are %d experiments, and the app itself runs %s", len(found), w.image())
	}
	baseline, canary := found["baseline"], found["canary"]
	w.awaitBehind(baseline.Name, baseline.Name, 1)
	w.awaitBehind("shop-try", canary.Name, 2)
	w.awaitBehind("shop", "shop", 2)
	w.awaitBehind("shop-preview", "shop", 2)

	compare.Contains(t, w.ran("get", w.app), canary.Name+"  experiment")

	w.restartAfterKill()
	after := w.awaitPause(1)
	if lasted := after.Progress[0].Entered.Sub(*begun.Progress[0].Available); lasted < 25*time.Second {
		t.Errorf("it lasted %s, want 25s at least", lasted)
	}
	w.pods.wantStarted(t, map[string]int{"v1": 3, "v2": 2})
	w.awaitNone()
	w.promote().awaitHealthy(second)
	if s := w.awaitUnlisted(); len(s.Generated) > 0 {
		t.Errorf("still listed as generated: %v", s.Generated)
	}
}

// TestExperimentGoesWithItsRelease checks that an experiment ends when its release is superseded, aborted or
// reverted. A kill of gitrollout does not restart the experiment. A retry of the release starts a new experiment.
func TestExperimentGoesWithItsRelease(t *testing.T) {
	t.Parallel()
	app := tried("duration: 1h", "setWeight: 50")
	w := running(t, app.files())

	w.push("v2", app.at("v2").files())
	w.awaitExperiment(0)
	before := w.experiments()
	w.push("v3", app.at("v3").files())
	w.awaitExperimentOf("v3")
	after := w.experiments()
	if len(after) != 2 || after["canary"].Name == before["canary"].Name ||
		after["canary"].Spec.Template.Spec.Containers[0].Image != "shop:v3" {
		t.Errorf("the experiments of v3 are %v", after)
	}

	w.restartAfterKill()
	time.Sleep(2 * time.Second)
	if again := w.experiments()["canary"]; again.UID != after["canary"].UID || w.pods.count("v3") != 2 {
		t.Errorf("after a kill the experiment is %s, before it was %s; %d pods were started", again.UID, after["canary"].UID, w.pods.count("v3"))
	}
	w.abort()
	w.awaitNone()

	w.ran("retry", w.app)
	w.awaitExperiment(0)
	if again := w.experiments()["canary"]; again.Name != after["canary"].Name || again.UID == after["canary"].UID {
		t.Errorf("tried again, the experiment is %s %s, before it was %s %s", again.Name, again.UID, after["canary"].Name, after["canary"].UID)
	}

	w.push("v4", app.at("v4").files())
	w.awaitExperimentOf("v4")
	w.push("v1 again", app.files())
	w.await("reverted", func(s rollout.State) bool { return s.Release == nil })
	w.awaitNone()
}

// TestExperimentThatFails checks that the release is rolled back if the experiment's pods do not become ready, or if an
// analysis of these pods fails.
func TestExperimentThatFails(t *testing.T) {
	t.Parallel()
	t.Run("no pods", func(t *testing.T) {
		t.Parallel()
		app := tried("duration: 1h, progressDeadlineSeconds: 3", "setWeight: 50")
		w := running(t, app.files())
		w.push("v2", app.at("v2-neverready").files())
		s := w.await("rejected", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
		compare.Contains(t, s.Rejected[0].Reason, "0 of 2 pods of the experiment's canary are available")
		w.awaitNone()
	})
	t.Run("analysis", func(t *testing.T) {
		t.Parallel()
		var mu sync.Mutex
		var asked []string
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, r.URL.RawQuery)
			fmt.Fprint(rw, `{"worse": true}`)
		}))
		defer server.Close()
		app := tried(`analyses: [{name: quality, templateName: quality, requiredForCompletion: true, args: [{name: canary, `+
			`value: "{{templates.canary.podTemplateHash}}"}, {name: baseline, value: "{{templates.baseline.replicaset.name}}"}]}]`, "setWeight: 50")
		app.more = map[string]string{"quality.yaml": fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: quality}
spec:
  args: [{name: canary}, {name: baseline}]
  metrics:
  - name: worse
    failureCondition: result.worse
    provider: {web: {url: "%s/?canary={{args.canary}}&baseline={{args.baseline}}"}}
`, server.URL)}
		w := running(t, app.files())
		w.push("v2", app.at("v2").files())
		sets := map[string]string{}
		s := w.await("rejected", func(s rollout.State) bool {
			list, err := w.cluster.Kube.AppsV1().ReplicaSets(w.ns).List(t.Context(), metav1.ListOptions{LabelSelector: rollout.LabelExperiment})
			must(t, err)
			for _, rs := range list.Items {
				sets[rs.Name] = rs.Labels[rollout.LabelPodHash]
			}
			return s.Phase == rollout.Degraded
		})
		compare.Contains(t, s.Rejected[0].Reason, "shop/step-1/quality failed: metric worse")
		mu.Lock()
		defer mu.Unlock()
		var canary, baseline string
		for name, hash := range sets {
			if strings.Contains(name, "-1-canary-") {
				canary = hash
			} else {
				baseline = name
			}
		}
		if want := fmt.Sprintf("canary=%s&baseline=%s", canary, baseline); len(asked) == 0 || asked[0] != want {
			t.Errorf("the analysis asked %v, want %s; ReplicaSets %v", asked, want, sets)
		}
		w.awaitNone()
	})
}
