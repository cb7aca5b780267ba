package cluster

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestOnlyWhatWasSeenIsDeleted checks that the request of a deletion has the observed object's uid, so that a newer
// object of the same name stays.
func TestOnlyWhatWasSeenIsDeleted(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.Method + " " + r.URL.Path + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`)
	}))
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL}, Options{})
	must(t, err)
	k := &kind{resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, namespaced: true}
	seen := &live{stamp: stamp{key: key{"shop", "web"}, uid: "uid-of-the-first"}}
	must(t, c.server.delete(t.Context(), k, seen))
	compare.Contains(t, asked, "DELETE /api/v1/namespaces/shop/services/web", `"uid":"uid-of-the-first"`, `"Background"`)
}

// TestWhatHoldsDataIsKept checks that Prune keeps objects whose deletion would delete users' data.
func TestWhatHoldsDataIsKept(t *testing.T) {
	kept := map[rollout.Ref]bool{
		{Kind: "Namespace", Name: "a"}:                                                              true,
		{Kind: "PersistentVolume", Name: "a"}:                                                       true,
		{Kind: "PersistentVolumeClaim", Namespace: "a", Name: "a"}:                                  true,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "a"}:                true,
		{Kind: "Service", Namespace: "a", Name: "a"}:                                                false,
		{Group: "example.com", Kind: "PersistentVolume", Name: "another group's kind of that name"}: false,
		{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "a"}:                              false,
	}
	w := newWorkloads(func(string) {})
	for ref, want := range kept {
		if why := w.whyKept(&live{ref: ref}); (why != "") != want {
			t.Errorf("%s is kept because %q, want it kept: %v", ref, why, want)
		}
	}
}

// TestFinishedPods checks that a Succeeded or Failed pod counts as not ready, even if its Ready condition is true. Such
// a pod does not prevent Prune from deleting its ConfigMaps and Secrets.
func TestFinishedPods(t *testing.T) {
	configs := []configRef{{"ConfigMap", "settings"}}
	since := time.Unix(1_700_000_000, 0)
	done := &pod{stamp: stamp{key: key{"shop", "done"}, uid: "1", owner: "set"}, readySince: since, finished: true, configs: configs}
	runs := &pod{stamp: stamp{key: key{"shop", "runs"}, uid: "2", owner: "set"}, readySince: since, configs: configs}
	shown := (&revision{}).observe([]*pod{done, runs})
	if shown.Pods != 1 || shown.Ready() != 1 || len(shown.Members) != 2 {
		t.Errorf("one pod of two is finished: %+v", shown)
	}
	w := newWorkloads(func(string) {})
	settings := rollout.Ref{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
	w.pods.put(done)
	if user := w.userOf(settings); user != "" {
		t.Errorf("the ConfigMap of a finished pod is used by %s", user)
	}
	w.pods.put(runs)
	if user := w.userOf(settings); user != "Pod shop/runs" {
		t.Errorf("the ConfigMap of a pod that runs is used by %q", user)
	}
}

// TestFieldsOfAnotherVersion checks an adopted object with fields that a tool has applied in another API version. gitrollout ends the
// tool's ownership, but does not claim these fields, because their paths may mean other fields in the object's version.
func TestFieldsOfAnotherVersion(t *testing.T) {
	object := map[string]any{
		"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
		"metadata": map[string]any{"name": "shop", "namespace": "shop", "resourceVersion": "7", "managedFields": []any{
			map[string]any{"manager": "argocd-controller", "operation": "Apply", "apiVersion": "autoscaling/v1",
				"fieldsV1": tree(t, `{"f:spec": {"f:minReplicas": {}, "f:targetCPUUtilizationPercentage": {}}}`)},
			map[string]any{"manager": "kustomize-controller", "operation": "Apply", "apiVersion": "autoscaling/v2",
				"fieldsV1": tree(t, `{"f:spec": {"f:behavior": {}}}`)},
		}},
		"spec": map[string]any{"maxReplicas": int64(5), "minReplicas": int64(2), "behavior": map[string]any{}},
	}
	d := &desired{object: map[string]any{"spec": map[string]any{"maxReplicas": int64(5)}}}
	change, _ := ownershipChange(object, d, true)
	if len(change) != 2 {
		t.Fatalf("the change is %+v", change)
	}
	entries := change[0]["value"].([]any)
	if len(entries) != 1 {
		t.Fatalf("owners are %v", entries)
	}
	spec := childOf(childOf(entries[0].(map[string]any), "fieldsV1"), "f:spec")
	if _, claimed := spec["f:behavior"]; !claimed || len(spec) != 1 {
		t.Errorf("claimed are %v, want the field of this version alone", spec)
	}
}

// TestMemoryOfManyApps checks that apps can use the cache of applied objects concurrently.
func TestMemoryOfManyApps(t *testing.T) {
	m := &appliedCache{known: map[rollout.Ref]known{}}
	var all sync.WaitGroup
	for app := range 8 {
		all.Go(func() {
			for i := range 2000 {
				ref := rollout.Ref{Kind: "ConfigMap", Namespace: fmt.Sprint(app), Name: fmt.Sprint(i % 50)}
				m.note(&desired{ref: ref, digest: "d"}, &live{print: "p"}, "", time.Time{})
				if k, ok := m.of(ref); !ok || k.digest != "d" {
					t.Errorf("%s is not remembered", ref)
				}
				m.forget(ref)
			}
		})
	}
	all.Wait()
}
