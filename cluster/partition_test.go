package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/internal/kruisetest"
	"gitrollout.dev/gitrollout/rollout"
)

const cloneManifest = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web, namespace: NS, annotations: {"gitrollout.dev/template-hash": "h1-HASH"}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  updateStrategy: {type: ReCreate, maxUnavailable: 1}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "web:HASH"}]
`

func (w *world) clone() rollout.Workload {
	return rollout.Workload{Kind: "CloneSet.apps.kruise.io", Namespace: w.ns, Name: "web"}
}

func (w *world) know(apiVersion, kind string) {
	w.t.Helper()
	p, _ := rollout.FindPartitioned(nil, apiVersion, kind)
	w.Know([]rollout.Partitioned{*p})
}

// TestCloneSetsAreKnownWhenTheyAreNamed checks that, after a call of Know, Observe returns the objects of the kind,
// even before their adoption. A kind that the API server does not serve has no objects.
func TestCloneSetsAreKnownWhenTheyAreNamed(t *testing.T) {
	w := newWorld(t)
	kruisetest.Start(t, w.cluster, w.ns)
	v1 := strings.ReplaceAll(cloneManifest, "HASH", "v1")
	w.apply("other", v1) // watches the kind, but only objects with the app label
	see := func() (rollout.ObservedWorkload, bool) {
		seen := w.Observe("web", []rollout.Workload{w.clone()}, nil)
		if seen.Unseen != "" {
			t.Error(seen.Unseen)
		}
		live, exists := seen.Workloads[w.clone()]
		return live, exists
	}
	if live, exists := see(); exists {
		t.Errorf("before its kind is named it is %+v", live)
	}
	w.know("apps.kruise.io/v1alpha1", "CloneSet")
	w.until("complete", func() (bool, string) {
		live, _ := see()
		return live.Complete && live.Available == 3, fmt.Sprintf("%+v", live)
	})
	if result := w.apply("other", v1); len(result.Unchanged) != 1 {
		t.Errorf("applied once more it is %+v", result)
	}
	served := w.Client
	w.restart()
	w.know("apps.kruise.io/v1beta1", "CloneSet") // Kruise v1.8 does not serve this version
	if live, exists := see(); exists {
		t.Errorf("in a version that the cluster does not serve it is %+v", live)
	}
	w.know("apps.kruise.io/v1alpha1", "CloneSet") // another description of the kind, as after a change of the configuration
	if live, exists := see(); !exists || live.Available != 3 {
		t.Errorf("in the version that it serves it is %t %+v", exists, live)
	}
	w.Client = served
}

// TestKindThatCannotBeWatchedIsUnseen checks a workload whose kind the client may not watch. The workload may exist, so
// Observe must set Unseen.
func TestKindThatCannotBeWatchedIsUnseen(t *testing.T) {
	w := newWorld(t)
	kruisetest.Start(t, w.cluster, w.ns)
	w.connect(w.withoutKruise())
	w.know("apps.kruise.io/v1alpha1", "CloneSet")
	seen := w.Observe("web", []rollout.Workload{w.clone()}, nil)
	if !strings.Contains(seen.Unseen, "clonesets.apps.kruise.io") {
		t.Errorf("it is seen as %+v", seen)
	}
	shop := rollout.Workload{Namespace: w.ns, Name: "shop"}
	if seen := w.Observe("shop", []rollout.Workload{shop}, nil); seen.Unseen != "" {
		t.Errorf("an app without CloneSets: %s", seen.Unseen)
	}
}

// TestReplicasOfACloneSetAreHandedOver checks that spec.replicas keeps its live value when Git leaves the field to an autoscaler.
func TestReplicasOfACloneSetAreHandedOver(t *testing.T) {
	w := newWorld(t)
	kruisetest.Start(t, w.cluster, w.ns)
	w.know("apps.kruise.io/v1alpha1", "CloneSet")
	v1 := strings.ReplaceAll(cloneManifest, "HASH", "v1")
	w.apply("web", v1)
	w.apply("web", strings.Replace(v1, "  replicas: 3\n", "", 1))
	w.until("3 replicas", func() (bool, string) {
		live := w.Observe("web", []rollout.Workload{w.clone()}, nil).Workloads[w.clone()]
		return live.Replicas == 3, fmt.Sprintf("%+v", live)
	})
}

// withoutKruise returns the configuration of an account that may only read kinds of the groups core and apps.
func (w *world) withoutKruise() *rest.Config {
	w.t.Helper()
	account := w.account("plain")
	w.permitEverywhere(account, rule("get list watch", " apps", "*"))
	config := w.login(account)
	w.until("its rights are known", func() (bool, string) {
		typed, err := kubernetes.NewForConfig(config)
		if err != nil {
			return false, err.Error()
		}
		_, err = typed.AppsV1().Deployments("").List(w.t.Context(), metav1.ListOptions{Limit: 1})
		return err == nil, fmt.Sprint(err)
	})
	return config
}
