package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"gitrollout.dev/gitrollout/rollout"
)

// TestAggregatedAPIIsAway makes the server of an APIService unreachable while a commit removes an object of this API group. The object may
// still exist, so the running process and a new process keep it in the inventory. When the API group is served again, the object is pruned.
func TestAggregatedAPIIsAway(t *testing.T) {
	w := newLoopWorld(t, withExtra(version("v1", halfThenGate)))
	group := w.ns + ".example.com"
	w.createCRD(group, "Namespaced")
	client, err := dynamic.NewForConfig(w.kube.Config)
	must(t, err)
	odds := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "odds"}).Namespace(w.ns)
	services := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	await(w, "the kind is served", func() bool { return errorOf(odds.List(t.Context(), metav1.ListOptions{})) == nil })
	p := w.start()
	p.awaitHealthy(w.push("with an Odd", map[string]string{
		"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml, extra.yaml, odd.yaml]\n",
		"odd.yaml":           "apiVersion: " + group + "/v1\nkind: Odd\nmetadata: {name: APP}\n",
	}))
	listed := func(s rollout.State) bool {
		return slices.ContainsFunc(s.Inventory, func(ref rollout.Ref) bool { return ref.Kind == "Odd" })
	}
	p.await("in the inventory", listed)

	// Give the APIService a server that does not exist. Without the label automanaged, the API server does not restore the APIService.
	t.Cleanup(func() { _ = services.Delete(t.Context(), "v1."+group, metav1.DeleteOptions{}) })
	away := `{"metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": null}}, "spec": {
		"insecureSkipTLSVerify": true, "service": {"namespace": "` + w.ns + `", "name": "nobody", "port": 443}}}`
	must(t, errorOf(services.Patch(t.Context(), "v1."+group, types.MergePatchType, []byte(away), metav1.PatchOptions{})))
	await(w, "the group is away", func() bool {
		return apierrors.IsServiceUnavailable(errorOf(odds.List(t.Context(), metav1.ListOptions{})))
	})
	w.push("without the Odd", map[string]string{"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml]\n"})
	check := func(who string) {
		t.Helper()
		_ = p.passes(10)
		if s := w.state(); !listed(s) {
			t.Errorf("%s forgot the object: the inventory is %v", who, s.Inventory)
		}
	}
	check("the process that has seen the group")
	p = p.restart()
	check("the new process")
	if err := p.passes(1); err != nil && !strings.Contains(err.Error(), "Odd") {
		t.Errorf("the error names another object: %v", err)
	}

	must(t, services.Delete(t.Context(), "v1."+group, metav1.DeleteOptions{}))
	get := func() error { return errorOf(odds.Get(t.Context(), w.app, metav1.GetOptions{})) }
	await(w, "the object is there", func() bool { return get() == nil })
	w.skew += 2 * time.Minute
	p.await("pruned", func(s rollout.State) bool { return !listed(s) })
	if err := get(); !apierrors.IsNotFound(err) {
		t.Errorf("it left the inventory and is there: %v", err)
	}
}
