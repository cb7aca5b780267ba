package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// release returns the app's manifest with the given image. The template hash is in the annotation that package strategies sets.
func release(image string, replicas int, hash rollout.Hash) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: NS, annotations: {%s: %s}}
spec:
  replicas: %d
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: shop, image: "%s"}]}
`, rollout.AnnotationHash, hash, replicas, image)
}

func TestObserveThroughARollingUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("shop", release("shop:v1", 4, "h1-one"))
	if seen := w.observe("shop", "shop"); seen.Synced && len(seen.Revisions) == 0 {
		t.Errorf("right after the apply: %+v", seen)
	}
	one := w.complete("shop", "shop")
	if len(one.Revisions) != 1 || one.Hash != "h1-one" || one.Replicas != 4 || one.Surge != 1 { // Surge is the default maxSurge: 25 % of 4
		t.Fatalf("observed %+v", one)
	}
	first := one.Revisions[0]
	if first.Hash != "h1-one" || !first.Current || first.Number != 1 || first.Pods != 4 || first.Ready() != 4 || first.Pin.Value == "" ||
		!strings.HasSuffix(first.Name, first.Pin.Value) || first.Problem != "" {
		t.Errorf("revision %+v", first)
	}
	for i, m := range first.Members {
		if !m.Ready || m.Status != "Running" || m.Created.IsZero() || i > 0 && m.Name <= first.Members[i-1].Name {
			t.Errorf("member %+v", m)
		}
	}

	changes := w.changes.of("shop")
	w.apply("shop", release("shop:v2", 4, "h1-two"))
	for {
		seen := w.observe("shop", "shop")
		if seen.Hash != "h1-two" {
			t.Fatalf("an observation after the apply shows %+v", seen)
		}
		if r, ok := seen.Find("h1-one"); ok && r.Current {
			t.Fatalf("the old revision is current: %+v", seen)
		}
		if seen.Complete && allCurrent(seen) {
			if r, ok := seen.Find("h1-two"); !ok || r.Ready() != 4 || !r.Current || len(seen.Revisions) != 2 || seen.Revisions[0].Name != r.Name {
				t.Errorf("complete: %+v", seen)
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	if w.changes.of("shop") < changes+4 {
		t.Errorf("OnChange was called %d times during a rollout", w.changes.of("shop")-changes)
	}

	// For a rollback to v1, the Deployment controller reuses the old ReplicaSet, with a new revision number.
	w.apply("shop", release("shop:v1", 4, "h1-one"))
	back := w.complete("shop", "shop")
	if r := back.Revisions[0]; r.Name != first.Name || r.Number != 3 || !r.Current || r.Hash != "h1-one" {
		t.Errorf("after the rollback: %+v", back)
	}
}

func TestObserveUnderTheHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("shop", release("shop:v1", 10, "h1-one"))
	w.complete("shop", "shop")
	w.apply("shop", held(release("shop:v2", 10, "h1-two")))
	look := func() rollout.ObservedWorkload { return w.observe("shop", "shop") }
	seen := w.await("10 old and 2 new pods", look, func(seen rollout.ObservedWorkload) bool {
		one, _ := seen.Find("h1-one")
		two, ok := seen.Find("h1-two")
		return ok && two.Ready() == 2 && one.Ready() == 10 && two.Current
	})
	for range 20 { // the fields from held() keep the Deployment in this state
		seen = look()
		one, _ := seen.Find("h1-one")
		two, _ := seen.Find("h1-two")
		if one.Pods != 10 || two.Pods != 2 || one.Desired != 10 || two.Desired != 2 || seen.Complete ||
			one.Available != 10 || two.Available != 0 || seen.Surge != 2 {
			t.Fatalf("held: %+v", seen)
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.apply("shop", release("shop:v2", 10, "h1-two"))
	done := w.complete("shop", "shop")
	two, _ := done.Find("h1-two")
	if two.Ready() != 10 || done.Surge != 3 { // 25 % of 10, rounded up
		t.Errorf("promoted: %+v", done)
	}
	// The promotion must keep the pods that v2 had before.
	before, _ := seen.Find("h1-two")
	for _, m := range before.Members {
		if !strings.Contains(fmt.Sprint(two.Members), m.Name) {
			t.Errorf("pod %s of the step was replaced", m.Name)
		}
	}
}

// problem waits until a revision's problem contains all given parts, and its first pod's status contains the given status.
func (w *world) problem(hash rollout.Hash, status string, parts ...string) (r rollout.Revision) {
	w.t.Helper()
	w.until("the problem", func() (bool, string) {
		r, _ = w.observe("shop", "shop").Find(hash)
		lacks := func(part string) bool { return !strings.Contains(r.Problem, part) }
		is := status == "" || len(r.Members) > 0 && strings.Contains(r.Members[0].Status, status)
		return is && !slices.ContainsFunc(parts, lacks), fmt.Sprintf("%+v", r)
	})
	return r
}

func TestProblemsArePlain(t *testing.T) {
	for name, c := range map[string]struct {
		image  string
		says   []string
		status string
	}{
		"crash loop":  {"shop:v2-crash", []string{"container shop: ", "restart", "last exit code 1"}, ""},
		"image":       {"shop:v2-badimage", []string{"container shop: ", "ImagePull", "shop:v2-badimage"}, "ImagePull"},
		"never ready": {"shop:v2-neverready", []string{"container shop: runs but is not Ready"}, "Running"},
		"config":      {"shop:v2-slow5x", []string{"CreateContainerConfigError"}, "CreateContainerConfigError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.apply("shop", release("shop:v1", 2, "h1-one"))
			w.complete("shop", "shop")
			w.apply("shop", release(c.image, 2, "h1-two"))
			if r := w.problem("h1-two", c.status, c.says...); strings.Contains(r.Problem, "\n") {
				t.Errorf("the problem has several lines: %q", r.Problem)
			}
			if r, _ := w.observe("shop", "shop").Find("h1-one"); r.Problem != "" {
				t.Errorf("the old revision has a problem: %q", r.Problem)
			}
		})
	}
	t.Run("quota", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.quota("pods")
		w.apply("shop", release("shop:v1", 2, "h1-one"))
		if r := w.problem("h1-one", "", "exceeded quota"); !strings.HasPrefix(r.Problem, "pods cannot be created: ") {
			t.Errorf("the problem is %q", r.Problem)
		}
	})
	t.Run("unschedulable", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.apply("shop",
			strings.Replace(release("shop:v1", 1, "h1-one"), "spec: {termination", "spec: {nodeSelector: {no: where}, termination", 1))
		w.problem("h1-one", "", "Unschedulable")
	})
}

func TestReplicaSetsOfATwinAreNotCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("shop", release("shop:v1", 1, "h1-one"))
	w.apply("twin", strings.Replace(release("shop:v1", 2, "h1-one"), "{name: shop, namespace", "{name: twin, namespace", 1))
	twin := w.complete("twin", "twin")
	seen := w.complete("shop", "shop")
	if len(seen.Revisions) != 1 || seen.Revisions[0].Pods != 1 || len(twin.Revisions) != 1 || twin.Revisions[0].Pods != 2 {
		t.Errorf("two Deployments with one selector: %+v and %+v", seen, twin)
	}
}

// TestTroubledObjects checks that Observe returns the unhealthy objects of an app, of any kind, and no objects of other apps.
func TestTroubledObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.ns // a unique name, because the client also sees the apps of other tests
	others := documents(coreManifest("ConfigMap", "c", ""), coreManifest("PersistentVolumeClaim", "data",
		"spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}"))
	w.apply(app, documents(others, release("shop:v1-neverready", 2, "h1-one")))
	w.apply(app+"-other", coreManifest("ConfigMap", "d", ""))
	troubled := func() (found []string) {
		for _, trouble := range w.Observe(app, nil, nil).Troubled {
			found = append(found, fmt.Sprintf("%s failed=%v", trouble.Ref.Kind, trouble.Failed))
			if trouble.Message == "" || strings.Contains(trouble.Message, "\n") {
				t.Errorf("%s: message %q", trouble.Ref, trouble.Message)
			}
		}
		return found
	}
	w.until("the troubles", func() (bool, string) {
		got := fmt.Sprint(troubled())
		return got == "[PersistentVolumeClaim failed=false Deployment failed=false]", got
	})
	if others := w.Observe(app+"-other", nil, nil).Troubled; len(others) > 0 {
		t.Errorf("another app's are %v", others)
	}
	before := w.changes.of(app)
	well := documents(others, release("shop:v2", 2, "h1-two"))
	w.apply(app, well)
	w.until("the Deployment being well", func() (bool, string) {
		got := fmt.Sprint(troubled())
		return got == "[PersistentVolumeClaim failed=false]" && w.changes.of(app) > before, got
	})
	w.restart()
	w.apply(app, well)
	if got := fmt.Sprint(troubled()); got != "[PersistentVolumeClaim failed=false]" {
		t.Errorf("a new process shows %s", got)
	}
}
