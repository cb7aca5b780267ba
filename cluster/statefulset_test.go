package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// ordinals returns a StatefulSet with more fields of its spec, such as the strategy.
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

// awaitSet waits until each revision, the newest first, has so many ready pods.
func (w *world) awaitSet(pods ...int) (seen rollout.ObservedWorkload) {
	w.t.Helper()
	w.until(fmt.Sprintf("pods %v of the revisions", pods), func() (bool, string) {
		seen = w.observeSet()
		var ready, asked []int
		for _, r := range seen.Revisions {
			ready, asked = append(ready, r.Ready()), append(asked, r.Desired)
		}
		return seen.Synced && slices.Equal(ready, pods) && slices.Equal(asked, pods), fmt.Sprintf("%+v", seen)
	})
	return seen
}

func TestStatefulSetIsHeldByItsPartition(t *testing.T) {
	for name, policy := range map[string]string{"ordered": "OrderedReady", "parallel": "Parallel"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			rest := "podManagementPolicy: " + policy + "\n  ordinals: {start: 5}"
			w.apply("db", ordinals("db:v1", 3, "h1-one", rest))
			w.awaitSet(3)
			var one rollout.ObservedWorkload
			w.until("complete", func() (bool, string) { one = w.observeSet(); return one.Complete, fmt.Sprintf("%+v", one) })
			r := one.Revisions[0]
			pin := rollout.Pin{Label: "controller-revision-hash", Value: r.Name}
			if !r.Current || !r.Base || r.Hash != "h1-one" || r.Pin != pin || one.Hash != "h1-one" {
				t.Fatalf("at rest it is %+v", one)
			}
			w.apply("db", ordinals("db:v2", 3, "h1-two", rest+"\n  "+heldAt(2)))
			if seen := w.observeSet(); seen.Hash != "h1-two" || seen.Synced && len(seen.Revisions) < 2 {
				t.Errorf("right after the apply it is %+v", seen)
			}
			two := w.awaitSet(1, 2)
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
			w.awaitSet(3, 0)
			w.until("the new version is the base", func() (bool, string) {
				seen := w.observeSet()
				return seen.Complete && seen.Revisions[0].Base, fmt.Sprintf("%+v", seen)
			})
		})
	}
}

// TestAdoptedStatefulSetHasAVersion adopts a StatefulSet whose revision has no mark of gitrollout.
func TestAdoptedStatefulSetHasAVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var made appsv1.StatefulSet
	manifest := strings.ReplaceAll(ordinals("db:v1", 2, "", ""), "NS", w.ns)
	must(t, yaml.Unmarshal([]byte(manifest), &made))
	made.Annotations = nil
	sets := w.cluster.Kube.AppsV1().StatefulSets(w.ns)
	_, err := sets.Create(t.Context(), &made, metav1.CreateOptions{})
	must(t, err)
	// The controller copies annotations into a new revision, so the revision must exist before the adoption.
	w.until("the revision of the other writer", func() (bool, string) {
		set, err := sets.Get(t.Context(), made.Name, metav1.GetOptions{})
		return err == nil && set.Status.CurrentRevision != "", fmt.Sprintf("%+v, %v", set, err)
	})
	w.apply("db", ordinals("db:v1", 2, "h1-one", ""))
	one := w.awaitSet(2)
	if r := one.Revisions[0]; r.Hash != "h1-one" || !r.Current {
		t.Errorf("adopted, its revision is %+v", r)
	}
	w.apply("db", ordinals("db:v2", 2, "h1-two", heldAt(1)))
	two := w.awaitSet(1, 1)
	if stable := two.Revisions[1]; stable.Hash != "" || !stable.Base || stable.Current {
		t.Errorf("at a step, the adopted version is %+v", stable)
	}
}

// TestPodIsEvictedIfItIsTheSame is about kubernetes#67250: the controller does not replace a pod that never becomes
// ready, not even by the former version.
func TestPodIsEvictedIfItIsTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("db", ordinals("db:v1", 2, "h1-one", ""))
	w.awaitSet(2)
	w.apply("db", ordinals("db:v2-neverready", 2, "h1-two", heldAt(1)))
	w.until("the broken pod", func() (bool, string) {
		seen := w.observeSet()
		return len(seen.Revisions) == 2 && len(seen.Revisions[0].Members) == 1, fmt.Sprintf("%+v", seen)
	})
	w.apply("db", ordinals("db:v1", 2, "h1-one", ""))
	var broken rollout.Pod
	w.until("the controller asks for stable", func() (bool, string) {
		seen := w.observeSet()
		for _, r := range seen.Revisions {
			if !r.Current && len(r.Members) == 1 {
				broken = r.Members[0]
			}
		}
		return seen.Synced && broken.UID != "", fmt.Sprintf("%+v", seen)
	})
	other := broken
	other.UID = "another"
	for _, p := range []rollout.Pod{other, {Name: "db-9", UID: "none"}} {
		if err := w.Evict(t.Context(), w.ns, p); err != nil {
			t.Errorf("a pod that is not there any more: %v", err)
		}
	}
	if p, err := w.cluster.Kube.CoreV1().Pods(w.ns).Get(context.Background(), broken.Name, metav1.GetOptions{}); err != nil ||
		string(p.UID) != broken.UID || p.DeletionTimestamp != nil {
		t.Fatalf("another pod's uid has deleted it: %v", err)
	}
	must(t, w.Evict(t.Context(), w.ns, broken))
	w.until("stable alone", func() (bool, string) {
		seen := w.observeSet()
		r, _ := seen.Find("h1-one")
		return seen.Complete && r.Ready() == 2, fmt.Sprintf("%+v", seen)
	})
}

// TestConfigurationOfAStatefulSetsBaseStays checks that the configuration of stable pods stays even while none of
// them exists.
func TestConfigurationOfAStatefulSetsBaseStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.ref("", "ConfigMap", "of-v1")
	w.apply("db", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-v1, namespace: NS}\n---"+ordinals("v1", 1, "h1-one", ""))
	w.awaitSet(1)
	w.apply("db", ordinals("v2", 1, "h1-two", heldAt(1)))
	w.until("two revisions", func() (bool, string) {
		seen := w.observeSet()
		return seen.Synced && len(seen.Revisions) == 2, fmt.Sprintf("%+v", seen)
	})
	ctx, pods := context.Background(), w.cluster.Kube.CoreV1().Pods(w.ns)
	none := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("0")}}}
	quotas := w.cluster.Kube.CoreV1().ResourceQuotas(w.ns)
	_, err := quotas.Create(ctx, none, metav1.CreateOptions{})
	must(t, err)
	w.until("no pod", func() (bool, string) {
		_ = pods.Delete(ctx, "db-0", metav1.DeleteOptions{}) // again, until the quota is enforced
		seen := w.observeSet()
		return len(seen.Revisions) == 2 && len(seen.Revisions[1].Members) == 0 && seen.Revisions[1].Desired == 1, fmt.Sprintf("%+v", seen)
	})
	if gone, kept, err := w.Prune(ctx, "db", []rollout.Ref{config}); err != nil || len(gone) > 0 || len(kept) != 1 {
		t.Fatalf("while a pod of it may be made anew, gone is %v and kept %v, %v", gone, kept, err)
	}
	must(t, quotas.Delete(ctx, "none", metav1.DeleteOptions{}))
	w.apply("db", ordinals("v2", 1, "h1-two", ""))
	w.until("the old version is in use no more", func() (bool, string) {
		gone, _, err := w.Prune(ctx, "db", []rollout.Ref{config})
		return len(gone) == 1, fmt.Sprint(gone, err)
	})
}
