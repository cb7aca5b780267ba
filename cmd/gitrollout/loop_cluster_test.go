package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"gitrollout.dev/gitrollout/rollout"
)

func (w *loopWorld) configMaps() []string {
	w.Helper()
	ofApps := metav1.ListOptions{LabelSelector: rollout.LabelApp}
	list, err := w.kube.Kube.CoreV1().ConfigMaps(w.ns).List(context.Background(), ofApps)
	must(w, err)
	var names []string
	for _, c := range list.Items {
		names = append(names, strings.ReplaceAll(c.Name, w.app, "APP"))
	}
	return names
}

// TestPrune checks objects that leave Git with a new version. When the version is healthy, one commit removes the ConfigMaps a and b from
// the inventory. The old version's generated ConfigMap stays until that version's last pod is gone. An object with "prune: disabled" stays
// in the cluster.
func TestPrune(t *testing.T) {
	files := func(tag string, more ...string) map[string]string {
		files := version(tag, halfThenGate)
		slow := `:` + tag + `-stop10s", envFrom: [{configMapRef: {name: env}}]}`
		files["app.yaml"] = strings.Replace(files["app.yaml"], `:`+tag+`"}`, slow, 1)
		resources := append([]string{"app.yaml", "service.yaml", "rollout.yaml"}, more...)
		files["kustomization.yaml"] = "resources: [" + strings.Join(resources, ", ") + "]\n" +
			"configMapGenerator:\n- {name: env, literals: [tag=" + tag + "]}\n"
		for _, name := range []string{"a.yaml", "b.yaml", "kept.yaml"} {
			files[name] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + strings.TrimSuffix(name, ".yaml") + "\n"
		}
		files["kept.yaml"] += "  annotations: {gitrollout.dev/prune: disabled}\n"
		return files
	}
	w, p := newHealthyWorld(t, files("v1", "a.yaml", "b.yaml", "kept.yaml"))
	first, all := w.state(), w.configMaps()
	if len(all) != 5 || len(first.Inventory) != 7 {
		t.Fatalf("ConfigMaps %v, inventory %v", all, first.Inventory)
	}
	second := w.push("v2", files("v2"))
	p.awaitPaused(second)
	_ = p.passes(5)
	if now := w.configMaps(); len(now) != 6 || !slices.Contains(now, "a") {
		t.Errorf("at the gate the ConfigMaps are %v", now)
	}
	w.repo.Merge(w.promotion())
	p.awaitHealthy(second)
	recorded := w.repo.Ref(stateBranch)
	if now := w.configMaps(); len(now) != 6 {
		t.Errorf("as it becomes healthy the ConfigMaps are %v", now)
	}
	old := slices.IndexFunc(all, func(name string) bool { return strings.HasPrefix(name, "env-") })
	s := p.await("a and b gone", func(s rollout.State) bool { return len(s.Inventory) < 8 })
	if now := w.configMaps(); slices.Contains(now, "a") || slices.Contains(now, "b") || !slices.Contains(now, "kept") {
		t.Errorf("ConfigMaps %v", now)
	}
	stopping := func() bool {
		list, err := w.kube.Kube.CoreV1().Pods(w.ns).List(context.Background(), metav1.ListOptions{})
		must(t, err)
		return slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool {
			return strings.Contains(pod.Spec.Containers[0].Image, ":v1")
		})
	}
	if there := slices.Contains(w.configMaps(), all[old]); !there && stopping() {
		t.Errorf("%s is gone while pods use it", all[old])
	}
	s = p.await("the old version's ConfigMap gone", func(s rollout.State) bool { return len(s.Inventory) == 5 })
	if now := w.configMaps(); !slices.Contains(now, "kept") || slices.Contains(now, all[old]) || stopping() {
		t.Errorf("ConfigMaps %v, inventory %v", now, s.Inventory)
	}
	log := w.repo.Log(recorded + ".." + stateBranch)
	if len(log) > 2 || !strings.HasSuffix(log[len(log)-1], "pruned ConfigMap/a, ConfigMap/b") {
		t.Errorf("recorded %q, want one commit for a and b and one for the pods' configuration", log)
	}
	p.wantUnmoved(stateBranch, 5)
}

// TestRefusedByTheCluster checks an app with an object whose CRD does not exist. The app is held before anything is
// applied. gitrollout repeats the dry run at growing intervals. Once the CRD exists, the hold ends and the release starts.
func TestRefusedByTheCluster(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	group := w.ns + ".example.com"
	files := with(version("v2", halfThenGate), map[string]string{
		"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml, odd.yaml]\n",
		"odd.yaml":           "apiVersion: " + group + "/v1\nkind: Odd\nmetadata: {name: APP}\n",
	})
	first, second := w.state(), w.push("v2", files)
	writes := w.api.count()
	s := p.wantHeld("", "the cluster refuses", "Odd")
	if s.Source != first.Source || s.Held.Commit != second {
		t.Errorf("held %+v at %s", s.Held, s.Source)
	}
	recorded := w.repo.Ref(stateBranch)
	decided := p.Stats().Decided
	p.passWell(300)
	if n := p.Stats().Decided - decided; n < 5 || n > 20 {
		t.Errorf("asked %d times in five minutes, want 1, 2, 4 … 60 seconds apart", n)
	}
	w.wantNoWritesSince(writes)
	w.wantRecorded(recorded)
	w.createCRD(group, "Namespaced")
	w.skew += time.Minute
	p.awaitPaused(second)
	if p.end(); w.state().Held != nil {
		t.Error("still held")
	}
}

// TestForeignObject creates another owner's Ingress with the name of the canary Ingress. Until this Ingress is deleted, the app is held and
// nothing is applied. If such an Ingress appears during a release, gitrollout reports and keeps it, and pods still roll back.
func TestForeignObject(t *testing.T) {
	const routed = `    canary:
      stableService: APP
      canaryService: APP-canary
      trafficRouting: {nginx: {stableIngress: APP}, settle: 0s}
      steps: [{setWeight: 50}, {pause: {}}]
`
	files := func(tag string) map[string]string { return withIngress(version(tag, routed), "number: 80") }
	w, p := newHealthyWorld(t, files("v1"))
	first := w.state()
	ingresses := w.kube.Kube.NetworkingV1().Ingresses(w.ns)
	name := w.app + "-" + w.app + "-canary"
	foreign := func() *networkingv1.Ingress {
		theirs := &networkingv1.IngressServiceBackend{Name: "theirs", Port: networkingv1.ServiceBackendPort{Number: 80}}
		made, err := ingresses.Create(t.Context(), &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: theirs}},
		}, metav1.CreateOptions{})
		must(t, err)
		return made
	}
	untouched := func(was *networkingv1.Ingress) {
		t.Helper()
		if is, err := ingresses.Get(t.Context(), name, metav1.GetOptions{}); err != nil || is.ResourceVersion != was.ResourceVersion {
			t.Errorf("the foreign Ingress is %v, %v", is, err)
		}
	}
	theirs := foreign()
	second := w.push("v2", files("v2"))
	writes := w.api.count()
	s := p.wantHeld("", "Ingress "+w.ns+"/"+name+": exists and is not in this app")
	if s.Source != first.Source || s.Held.Commit != second {
		t.Errorf("held %+v at %s", s.Held, s.Source)
	}
	_ = p.passes(20)
	w.wantNoWritesSince(writes)
	untouched(theirs)
	must(t, ingresses.Delete(t.Context(), name, metav1.DeleteOptions{}))
	w.skew += 2 * time.Minute
	p.awaitPaused(second)
	if made, err := ingresses.Get(t.Context(), name, metav1.GetOptions{}); err != nil || made.Labels[rollout.LabelApp] != w.app {
		t.Fatalf("the canary Ingress is %v, %v", made, err)
	}

	must(t, ingresses.Delete(t.Context(), name, metav1.DeleteOptions{}))
	theirs = foreign()
	third := w.push("v1 again", files("v1"))
	s = p.await("going back", func(s rollout.State) bool {
		isThere := s.Phase == rollout.Healthy && s.Source == third // the rollback may already be complete
		return (s.Phase == rollout.Aborting || isThere) && w.image() == "v1" && len(w.pods()["v2"]) == 0
	})
	w.skew += 2 * time.Minute
	if err := p.passes(3); s.Phase == rollout.Aborting {
		w.wantError(err, name+": exists and is not in this app")
	}
	untouched(theirs)
	must(t, ingresses.Delete(t.Context(), name, metav1.DeleteOptions{}))
	w.skew += 2 * time.Minute
	if s := p.awaitPhase(rollout.Healthy); s.Source != third {
		t.Errorf("it is at %s, want %s", s.Source, third)
	}
}

// withIngress adds a canary Service, and an Ingress with one path to the given port of the Service APP.
func withIngress(files map[string]string, port string) map[string]string {
	return with(files, map[string]string{
		"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml, ingress.yaml]\n",
		"ingress.yaml": `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: APP}
spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: APP, port: {` + port + `}}}}]}}]}
---
apiVersion: v1
kind: Service
metadata: {name: APP-canary}
spec: {selector: {app: APP}, ports: [{port: 80}]}
`})
}

// createCRD creates the CRD of the kind Odd in an API group, and deletes the CRD when the test ends. scope is Namespaced or Cluster.
func (w *loopWorld) createCRD(group, scope string) {
	w.Helper()
	client, err := dynamic.NewForConfig(w.kube.Config)
	must(w, err)
	crds := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "odds." + group},
		"spec": map[string]any{
			"group": group, "scope": scope, "names": map[string]any{"kind": "Odd", "plural": "odds"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		},
	}}
	must(w, errorOf(crds.Create(context.Background(), crd, metav1.CreateOptions{})))
	w.Cleanup(func() { _ = crds.Delete(context.Background(), "odds."+group, metav1.DeleteOptions{}) })
}

// TestReasonsInAnyOrder checks that a refusal by the API server is recorded only once, although the order of its reasons varies.
func TestReasonsInAnyOrder(t *testing.T) {
	files := version("v1", halfThenGate)
	files["app.yaml"] = strings.Replace(files["app.yaml"], "metadata: {", "metadata: {labels: {a: no good, b: not good, c: bad one}, ", 1)
	w := newLoopWorld(t, files)
	p := w.start()
	p.wantHeld("", `"bad one"`, "more)") // the API server refuses three labels
	for range 12 {
		w.skew += time.Minute
		_ = p.passes(2) // each pass sends the request again
	}
	if told := w.history(); len(told) != 1 {
		t.Errorf("recorded %d times: %q", len(told), told)
	}
}

// TestApplyFails checks that failing writes of one app are repeated after pauses of 1, 2, 4 … 60 seconds. Meanwhile,
// a push to another app must be applied.
func TestApplyFails(t *testing.T) {
	w := newLoopWorld(t, settings("1"))
	other := w.app + "-other"
	w.pushAs(other, "another app", settings("1"))
	p := w.start()
	p.awaitPhase(rollout.Healthy)
	w.api.refuse("/configmaps/" + w.app + "$")
	must(t, w.kube.Kube.CoreV1().ConfigMaps(w.ns).Delete(t.Context(), w.app, metav1.DeleteOptions{}))
	began := w.skew
	var at []time.Duration
	for w.skew < began+5*time.Minute {
		err := p.passes(1)
		if err != nil {
			at = append(at, w.skew-began)
			if !strings.Contains(err.Error(), "app "+w.app+": ") || strings.Contains(err.Error(), other) {
				t.Errorf("the error is %v", err)
			}
		}
		if len(at) == 3 && err != nil {
			p.awaitSource(other, w.pushAs(other, "meanwhile", settings("2"))) // the other app is not delayed
		}
	}
	var gaps []string
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, fmt.Sprint(at[i]-at[i-1]))
	}
	t.Logf("tried again after %v", gaps)
	if len(at) < 6 || len(at) > 13 || at[len(at)-1]-at[len(at)-2] < 50*time.Second {
		t.Errorf("tried at %v, want longer and longer pauses up to a minute", at)
	}
	w.api.refuse()
	w.skew += 2 * time.Minute // the last delay is at most one minute plus one pass
	p.passWell(2)
	if _, err := w.kube.Kube.CoreV1().ConfigMaps(w.ns).Get(t.Context(), w.app, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		t.Error("it is not there again")
	}
}
