package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// ordinals returns a StatefulSet's manifest. The additional YAML has further fields of the spec, such as the update strategy.
func ordinals(image string, replicas int, hash rollout.Hash, more string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: NS, annotations: {%s: "%s"}}
spec:
  replicas: %d
  serviceName: db
  selector: {matchLabels: {app: db}}
  %s
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "%[5]s", envFrom: [{configMapRef: {name: "of-%[6]s"}}]}]
`, rollout.AnnotationHash, hash, replicas, more, image, strings.ReplaceAll(image, ":", "-"))
}

func heldAt(partition int) string {
	return fmt.Sprintf("updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: %d}}", partition)
}

func (w *world) observeSet() rollout.ObservedWorkload {
	name := rollout.Workload{Kind: "StatefulSet", Namespace: w.ns, Name: "db"}
	return w.Observe("db", []rollout.Workload{name}, nil).Workloads[name]
}

// awaitPods waits until the revisions, newest first, have the given numbers of pods, both desired and ready.
func (w *world) awaitPods(pods ...int) rollout.ObservedWorkload {
	w.t.Helper()
	return w.awaitSet(fmt.Sprintf("pods %v of the revisions", pods), func(seen rollout.ObservedWorkload) bool {
		var ready, asked []int
		for _, r := range seen.Revisions {
			ready, asked = append(ready, r.Ready()), append(asked, r.Desired)
		}
		return seen.Synced && slices.Equal(ready, pods) && slices.Equal(asked, pods)
	})
}

// awaitSet waits until the observed StatefulSet satisfies the condition.
func (w *world) awaitSet(what string, is func(rollout.ObservedWorkload) bool) rollout.ObservedWorkload {
	w.t.Helper()
	return w.await(what, w.observeSet, is)
}

func TestStatefulSetIsHeldByItsPartition(t *testing.T) {
	for name, policy := range map[string]string{"ordered": "OrderedReady", "parallel": "Parallel"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			rest := "podManagementPolicy: " + policy + "\n  ordinals: {start: 5}"
			w.apply("db", ordinals("db:v1", 3, "h1-one", rest))
			w.awaitPods(3)
			one := w.awaitSet("complete", func(seen rollout.ObservedWorkload) bool { return seen.Complete })
			r := one.Revisions[0]
			pin := rollout.Pin{Label: "controller-revision-hash", Value: r.Name}
			if !r.Current || !r.Base || r.Hash != "h1-one" || r.Pin != pin || one.Hash != "h1-one" {
				t.Fatalf("at rest it is %+v", one)
			}
			w.apply("db", ordinals("db:v2", 3, "h1-two", rest+"\n  "+heldAt(2)))
			if seen := w.observeSet(); seen.Hash != "h1-two" || seen.Synced && len(seen.Revisions) < 2 {
				t.Errorf("right after the apply it is %+v", seen)
			}
			two := w.awaitPods(1, 2)
			fresh, stable := two.Revisions[0], two.Revisions[1]
			if two.First != 5 || two.Floor != 7 {
				t.Errorf("of the pods from %d on those from %d on are of the new version, want 5 and 7", two.First, two.Floor)
			}
			if two.Complete || !fresh.Current || fresh.Base || fresh.Hash != "h1-two" || fresh.Members[0].Name != "db-7" {
				t.Errorf("the new version is %+v", fresh)
			}
			if stable.Current || !stable.Base || stable.Hash != "h1-one" || len(stable.Members) != 2 {
				t.Errorf("the stable version is %+v", stable)
			}
			if serves, err := w.Serves(t.Context(), w.ref("", "Service", "db"), fresh.Pin.Value); err != nil || serves {
				t.Errorf("without a Service it serves: %t, %v", serves, err)
			}
			w.apply("db", ordinals("db:v2", 3, "h1-two", rest))
			w.awaitPods(3, 0)
			w.awaitSet("the new version is the base", func(seen rollout.ObservedWorkload) bool {
				return seen.Complete && seen.Revisions[0].Base
			})
		})
	}
}

// TestAdoptedStatefulSetHasAVersion checks the adoption of a StatefulSet whose current revision lacks gitrollout's
// annotation. Observe must return the StatefulSet's template hash for this revision.
func TestAdoptedStatefulSetHasAVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unmarked := strings.Replace(ordinals("db:v1", 2, "", ""), ", annotations: {"+rollout.AnnotationHash+`: ""}`, "", 1)
	w.kubectl(unmarked, "create", "--field-manager=provisioner", "-f", "-")
	// The controller copies annotations only to a new revision. A revision from before the adoption lacks the annotation.
	w.until("the revision of the other writer", func() (bool, string) {
		set, err := w.cluster.Kube.AppsV1().StatefulSets(w.ns).Get(t.Context(), "db", metav1.GetOptions{})
		return err == nil && set.Status.CurrentRevision != "", fmt.Sprintf("%+v, %v", set, err)
	})
	w.apply("db", ordinals("db:v1", 2, "h1-one", ""))
	one := w.awaitPods(2)
	if r := one.Revisions[0]; r.Hash != "h1-one" || !r.Current {
		t.Errorf("adopted, its revision is %+v", r)
	}
	w.apply("db", ordinals("db:v2", 2, "h1-two", heldAt(1)))
	two := w.awaitPods(1, 1)
	if stable := two.Revisions[1]; stable.Hash != "" || !stable.Base || stable.Current {
		t.Errorf("at a step, the adopted version is %+v", stable)
	}
}

// TestPodIsEvictedIfItIsTheSame checks that Evict deletes only a pod with the given uid. Evict is needed because of kubernetes#67250: the
// StatefulSet controller never replaces a pod that is not ready, even after a rollback.
func TestPodIsEvictedIfItIsTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("db", ordinals("db:v1", 2, "h1-one", ""))
	w.awaitPods(2)
	w.apply("db", ordinals("db:v2-neverready", 2, "h1-two", heldAt(1)))
	w.awaitSet("the broken pod", func(seen rollout.ObservedWorkload) bool {
		return len(seen.Revisions) == 2 && len(seen.Revisions[0].Members) == 1
	})
	w.apply("db", ordinals("db:v1", 2, "h1-one", ""))
	var broken rollout.Pod
	w.awaitSet("the controller asks for stable", func(seen rollout.ObservedWorkload) bool {
		for _, r := range seen.Revisions {
			if !r.Current && len(r.Members) == 1 {
				broken = r.Members[0]
			}
		}
		return seen.Synced && broken.UID != ""
	})
	other := broken
	other.UID = "another"
	for _, p := range []rollout.Pod{other, {Name: "db-9", UID: "none"}} {
		must(t, w.Evict(t.Context(), w.ns, p)) // the pod is gone, which is no error
	}
	p, err := w.cluster.Kube.CoreV1().Pods(w.ns).Get(t.Context(), broken.Name, metav1.GetOptions{})
	if err != nil || string(p.UID) != broken.UID || p.DeletionTimestamp != nil {
		t.Fatalf("another pod's uid has deleted it: %v", err)
	}
	must(t, w.Evict(t.Context(), w.ns, broken))
	w.awaitSet("stable alone", func(seen rollout.ObservedWorkload) bool {
		r, _ := seen.Find("h1-one")
		return seen.Complete && r.Ready() == 2
	})
}

// TestConfigurationOfAStatefulSetsBaseStays checks that Prune keeps the base revision's ConfigMap even while the base revision has no pod.
func TestConfigurationOfAStatefulSetsBaseStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.ref("", "ConfigMap", "of-v1")
	w.apply("db", documents(coreManifest("ConfigMap", "of-v1", ""), ordinals("v1", 1, "h1-one", "")))
	w.awaitPods(1)
	w.apply("db", ordinals("v2", 1, "h1-two", heldAt(1)))
	w.awaitSet("two revisions", func(seen rollout.ObservedWorkload) bool { return seen.Synced && len(seen.Revisions) == 2 })
	w.quota("pods")
	ctx, kube := context.Background(), w.cluster.Kube.CoreV1()
	w.awaitSet("no pod", func(seen rollout.ObservedWorkload) bool {
		_ = kube.Pods(w.ns).Delete(ctx, "db-0", metav1.DeleteOptions{}) // again and again, until the quota is enforced
		return len(seen.Revisions) == 2 && len(seen.Revisions[1].Members) == 0 && seen.Revisions[1].Desired == 1
	})
	if gone, kept, err := w.Prune(ctx, "db", []rollout.Ref{config}); err != nil || len(gone) > 0 || len(kept) != 1 {
		t.Fatalf("while a pod of it may be made anew, gone is %v and kept %v, %v", gone, kept, err)
	}
	must(t, kube.ResourceQuotas(w.ns).Delete(ctx, "none", metav1.DeleteOptions{}))
	w.apply("db", ordinals("v2", 1, "h1-two", ""))
	w.until("the old version is in use no more", func() (bool, string) {
		gone, _, err := w.Prune(ctx, "db", []rollout.Ref{config})
		return len(gone) == 1, fmt.Sprint(gone, err)
	})
}
