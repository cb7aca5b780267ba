package contract

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// Cluster is one client process's access to an API server with running controllers. Pods of the cluster become ready.
type Cluster interface {
	reconciler.Observer
	reconciler.Applier
	// Nodes returns the labels of each node by the node's name.
	Nodes(ctx context.Context) (map[string]map[string]string, error)
	Namespace() string
	// Await waits, in real or simulated time, until ok returns true. After a timeout, it fails the test.
	Await(t *testing.T, what string, ok func() bool)
	// Writes returns the number of objects that the client process has written.
	Writes(t *testing.T) int
	// Scale sets a Deployment's replicas as a user would.
	Scale(t *testing.T, deployment string, replicas int)
	// Delete deletes an object as a user would.
	Delete(t *testing.T, ref rollout.Ref)
	// Share applies data to a ConfigMap as another field manager.
	Share(t *testing.T, ref rollout.Ref, data map[string]string)
	Data(t *testing.T, ref rollout.Ref) map[string]string
	// Exists reports whether the API server has an object.
	Exists(t *testing.T, ref rollout.Ref) bool
}

// hold is a minReadySeconds so large that no new pod becomes available. The Deployment controller then never completes a rollout.
const hold = 2147483646

// clusterTest is one test case with its namespace.
type clusterTest struct {
	*testing.T
	Cluster
	app string
}

// ClusterCases runs every case in a separate namespace of a cluster.
func ClusterCases(t *testing.T, open func(t *testing.T) Cluster) {
	for name, run := range map[string]func(*clusterTest){
		"an applied object is shown at once":                appliedIsShown,
		"an object without a change is not written":         idempotent,
		"the hold stops a release at the requested pods":    holdStops,
		"the hold goes back to fewer new pods":              holdGoesBack,
		"a foreign change is put back":                      driftIsUndone,
		"a field that left Git leaves the cluster":          fieldLeaves,
		"a deleted object is made again":                    deletedComesBack,
		"a refused object is an error, and changes nothing": refused,
		"pruning deletes only the app's objects":            prunes,
		"a create-only object is never changed":             madeOnce,
		"a running template is compared with the new":       templates,
		"a generated object replaces no app's object":       takesNothing,
		"a version serves once it has an endpoint":          serves,
		"a Deployment has the sizes of its moves":           sizes,
		"a partition splits a StatefulSet, in order":        partitions("OrderedReady"),
		"a partition splits a StatefulSet, parallel":        partitions("Parallel"),
		"evictions split a DaemonSet":                       evictions,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t)
			run(&clusterTest{T: t, Cluster: c, app: "contract-" + c.Namespace()})
		})
	}
}

// deployment returns a Deployment with the given name and version, and n replicas.
func (c *clusterTest) deployment(name, version string, n int) rollout.Object {
	labels := map[string]any{"app": name}
	return rollout.Object{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": name, "namespace": c.Namespace(),
			"annotations": map[string]any{rollout.AnnotationHash: "h1-" + version}, "labels": map[string]any{rollout.LabelSerial: "7"},
		},
		"spec": map[string]any{
			"replicas": int64(n),
			"selector": map[string]any{"matchLabels": labels},
			"strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": "25%", "maxUnavailable": "25%"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": name + ":" + version}}},
			},
		},
	}
}

// held returns a Deployment whose rollout cannot complete, because its minReadySeconds is too large.
func (c *clusterTest) held(name, version string, n int, surge, unavailable string, paused bool) rollout.Object {
	o := c.deployment(name, version, n)
	spec := o.Map("spec")
	spec["minReadySeconds"], spec["progressDeadlineSeconds"], spec["paused"] = int64(hold), int64(hold+1), paused
	spec["strategy"] = map[string]any{"type": "RollingUpdate",
		"rollingUpdate": map[string]any{"maxSurge": surge, "maxUnavailable": unavailable}}
	return o
}

func (c *clusterTest) config(name, value string) rollout.Object {
	return rollout.Object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": c.Namespace()}, "data": map[string]any{"value": value},
	}
}

func (c *clusterTest) apply(objects ...rollout.Object) {
	c.Helper()
	if err := c.Apply(c.Context(), c.app, objects); err != nil {
		c.Fatalf("Apply: %v", err)
	}
}

// observe returns the Observer's view of a workload. The kind is "" for a Deployment.
func (c *clusterTest) observe(kind, name string) rollout.ObservedWorkload {
	w := rollout.Workload{Kind: kind, Namespace: c.Namespace(), Name: name}
	return c.Observe(c.app, []rollout.Workload{w}, nil).Workloads[w]
}

func (c *clusterTest) see(deployment string) rollout.ObservedWorkload {
	return c.observe("", deployment)
}

// evict evicts a pod. First, it calls Evict with a wrong UID, which must have no effect.
func (c *clusterTest) evict(p rollout.Pod) {
	c.Helper()
	other := p
	other.UID = "another"
	for _, p := range []rollout.Pod{other, p} {
		if err := c.Evict(c.Context(), c.Namespace(), p); err != nil {
			c.Error(err)
		}
	}
}

func (c *clusterTest) complete(name string) {
	c.Helper()
	c.Await(c.T, name+" is complete", func() bool { return c.see(name).Complete })
}

func appliedIsShown(c *clusterTest) {
	c.see("web") // this call starts the watch
	c.apply(c.deployment("web", "v1", 3))
	live := c.see("web")
	if live.Replicas != 3 || live.Hash != "h1-v1" || live.Serial != 7 || live.Complete {
		c.Errorf("right after Apply it is %+v", live)
	}
	c.Await(c.T, "web is complete, and the cache has its ready pods", func() bool {
		live = c.see("web")
		return live.Complete && live.Synced && len(live.Revisions) == 1 && live.Revisions[0].Ready() == 3
	})
	r := live.Revisions[0]
	if r.Hash != "h1-v1" || !r.Current || r.Desired != 3 || r.Pods != 3 || r.Ready() != 3 || r.Pin.Value == "" {
		c.Errorf("its revision is %+v", r)
	}
	if live := c.see("other"); live.Replicas != 0 || live.Revisions != nil {
		c.Errorf("a workload that does not exist is %+v", live)
	}
}

func idempotent(c *clusterTest) {
	objects := []rollout.Object{c.config("web", "1"), c.deployment("web", "v1", 2)}
	c.apply(objects...)
	c.complete("web")
	before := c.Writes(c.T)
	for range 3 {
		c.apply(objects...)
	}
	if n := c.Writes(c.T); n != before {
		c.Errorf("%d objects were written for nothing", n-before)
	}
	c.apply(c.config("web", "2"), objects[1])
	if n := c.Writes(c.T); n != before+1 {
		c.Errorf("%d objects were written for one change", n-before)
	}
}

func holdStops(c *clusterTest) {
	c.apply(c.deployment("web", "v1", 4))
	c.complete("web")
	c.apply(c.held("web", "v2", 4, "50%", "0%", false))
	if live := c.see("web"); live.Hash != "h1-v2" || live.Complete {
		c.Errorf("right after Apply it is %+v", live)
	}
	var live rollout.ObservedWorkload
	c.Await(c.T, "two new pods are ready", func() bool {
		live = c.see("web")
		r, _ := live.Find("h1-v2")
		return live.Synced && r.Ready() == 2
	})
	old, _ := live.Find("h1-v1")
	fresh, _ := live.Find("h1-v2")
	if live.Complete || len(old.ReadySince) != 4 || old.Current || !fresh.Current || fresh.Desired != 2 || live.Revisions[0].Hash != "h1-v2" {
		c.Errorf("in the hold it is %+v", live)
	}
	back := c.deployment("web", "v1", 4)
	c.apply(back)
	c.complete("web")
	if r, _ := c.see("web").Find("h1-v1"); r.Pin.Value != old.Pin.Value || r.ReadySince[3].After(old.ReadySince[3].Add(time.Second)) {
		c.Errorf("back at v1 the revision is %+v, before the release it was %+v: pods were replaced", r, old)
	}
}

// holdGoesBack checks four writes that lead from 10 old and 4 new pods to 10 old pods and 1 new pod. The
// writes remove one old pod, set the old template in a paused Deployment, unpause the Deployment, and set the
// new template again. Meanwhile, at least 9 old pods and 1 new pod stay desired.
func holdGoesBack(c *clusterTest) {
	const n = 10
	c.apply(c.deployment("web", "v1", n))
	c.complete("web")
	fewest := [2]int{n, 4}
	rest := func(what string, old, fresh int, more func(rollout.ObservedWorkload) bool) {
		c.Helper()
		c.Await(c.T, what, func() bool {
			live := c.see("web")
			v1, _ := live.Find("h1-v1")
			v2, _ := live.Find("h1-v2")
			fewest = [2]int{min(fewest[0], v1.Desired), min(fewest[1], v2.Desired)}
			return live.Synced && v1.Ready() == old && v2.Ready() == fresh && v1.Desired == old && v2.Desired == fresh && more(live)
		})
	}
	whatever := func(rollout.ObservedWorkload) bool { return true }
	c.apply(c.held("web", "v2", n, "40%", "0%", false))
	rest("10 old and 4 new", n, 4, whatever)
	fewest = [2]int{n, 4}
	c.apply(c.held("web", "v2", n, "30%", "10%", false))
	rest("one old pod less", n-1, 4, whatever)
	c.apply(c.held("web", "v1", n, "30%", "0%", true))
	rest("no pod is available", n-1, 4, func(live rollout.ObservedWorkload) bool { return live.Available == 0 })
	c.apply(c.held("web", "v1", n, "10%", "90%", false))
	rest("10 old and 1 new", n, 1, whatever)
	c.apply(c.held("web", "v2", n, "10%", "0%", false))
	rest("the new template, and no pod moves", n, 1, func(live rollout.ObservedWorkload) bool { return live.Hash == "h1-v2" })
	if fewest != [2]int{n - 1, 1} {
		c.Errorf("there were as few as %v pods", fewest)
	}
	c.apply(c.deployment("web", "v1", n))
	c.complete("web")
}

func driftIsUndone(c *clusterTest) {
	d := c.deployment("web", "v1", 2)
	c.apply(d)
	c.complete("web")
	c.Scale(c.T, "web", 5)
	c.Await(c.T, "the change is seen", func() bool { return c.see("web").Replicas == 5 })
	c.apply(d)
	if live := c.see("web"); live.Replicas != 2 {
		c.Errorf("replicas are %d, want 2 again", live.Replicas)
	}
	loose := c.deployment("loose", "v1", 2)
	c.apply(loose)
	loose = loose.Copy()
	delete(loose.Map("spec"), "replicas")
	c.apply(loose)
	c.Scale(c.T, "loose", 3)
	c.Await(c.T, "the change is seen", func() bool { return c.see("loose").Replicas == 3 })
	c.apply(loose)
	if live := c.see("loose"); live.Replicas != 3 {
		c.Errorf("replicas are %d, and Git leaves them to others", live.Replicas)
	}
}

// fieldLeaves checks that a field removed from Git is also removed from the cluster, even if another field manager also
// owns the field. gitrollout must first observe the other manager. A field that was never in Git stays.
func fieldLeaves(c *clusterTest) {
	with, without := c.config("web", "1"), c.config("web", "2")
	with.Map("data")["extra"] = "1"
	c.apply(with)
	c.Share(c.T, with.Ref(), map[string]string{"value": "1", "extra": "1", "injected": "1"})
	c.Await(c.T, "the field is gone", func() bool {
		c.apply(with)
		c.apply(without)
		return maps.Equal(c.Data(c.T, without.Ref()), map[string]string{"value": "2", "injected": "1"})
	})
}

func deletedComesBack(c *clusterTest) {
	o := c.config("web", "1")
	c.apply(o)
	c.Delete(c.T, o.Ref())
	c.Await(c.T, "it is made again", func() bool {
		c.apply(o)
		return c.Exists(c.T, o.Ref())
	})
}

func refused(c *clusterTest) {
	bad := c.deployment("web", "v1", 2)
	bad.Map("spec")["minReadySeconds"] = int64(1000) // invalid, because it exceeds the default progressDeadlineSeconds (600)
	var invalid *rollout.InvalidError
	if err := c.Check(c.Context(), c.app, []rollout.Object{c.config("web", "1"), bad}); !errors.As(err, &invalid) {
		c.Errorf("Check says %v, want an InvalidError", err)
	}
	if c.Exists(c.T, c.config("web", "1").Ref()) {
		c.Error("Check applied something")
	}
	if err := c.Check(c.Context(), c.app, []rollout.Object{c.deployment("web", "v1", 2)}); err != nil {
		c.Errorf("Check of a valid object says %v", err)
	}
	if err := c.Apply(c.Context(), c.app, []rollout.Object{c.config("web", "1"), bad, c.config("late", "1")}); err == nil {
		c.Error("Apply returns no error for an object that the server refuses")
	}
	if !c.Exists(c.T, c.config("web", "1").Ref()) || c.Exists(c.T, c.config("late", "1").Ref()) {
		c.Error("want the object before the refused object applied, and the object after the refused object not applied")
	}
}

func prunes(c *clusterTest) {
	mine, kept, others := c.config("mine", "1"), c.config("kept", "1"), c.config("others", "1")
	kept.Map("metadata")["annotations"] = map[string]any{rollout.AnnotationPrune: "disabled"}
	c.apply(mine, kept)
	if err := c.Apply(c.Context(), "other-"+c.app, []rollout.Object{others}); err != nil {
		c.Fatal(err)
	}
	gone, err := c.Prune(c.Context(), c.app, []rollout.Ref{mine.Ref(), kept.Ref(), others.Ref()})
	slices.SortFunc(gone, rollout.Ref.Compare)
	if err != nil || len(gone) != 2 || gone[0] != mine.Ref() || gone[1] != others.Ref() {
		c.Errorf("Prune returns %v, %v", gone, err)
	}
	c.Await(c.T, "it is deleted", func() bool { return !c.Exists(c.T, mine.Ref()) })
	if !c.Exists(c.T, kept.Ref()) || !c.Exists(c.T, others.Ref()) {
		c.Error("an object that pruning must keep is deleted")
	}
}

// madeOnce checks that a missing create-only object is created, never written again, and not pruned.
func madeOnce(c *clusterTest) {
	secret := func(value string) rollout.Object {
		return rollout.Object{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "auth", "namespace": c.Namespace(),
			"annotations": map[string]any{rollout.AnnotationCreateOnly: "true"}}, "stringData": map[string]any{"key": value}}
	}
	before := c.Writes(c.T)
	for _, value := range []string{"a", "b", "a"} {
		c.apply(secret(value))
		if err := c.Check(c.Context(), c.app, []rollout.Object{secret(value + value)}); err != nil {
			c.Errorf("Check says %v", err)
		}
	}
	if n := c.Writes(c.T) - before; n != 1 {
		c.Errorf("it is written %d times", n)
	}
	if gone, err := c.Prune(c.Context(), c.app, []rollout.Ref{secret("").Ref()}); err != nil || len(gone) != 0 {
		c.Errorf("Prune returns %v, %v", gone, err)
	}
	c.Delete(c.T, secret("").Ref())
	c.Await(c.T, "it is made again", func() bool {
		c.apply(secret("c"))
		return c.Exists(c.T, secret("").Ref()) && c.Writes(c.T)-before == 2
	})
}

// takesNothing checks that a generated object does not replace another app's object of the same name.
func takesNothing(c *clusterTest) {
	const other = "another-app"
	theirs, made := c.config("web-canary", "theirs"), c.config("web-canary", "ours")
	made.Map("metadata")["annotations"] = map[string]any{rollout.AnnotationGenerated: "web"}
	if err := c.Apply(c.Context(), other, []rollout.Object{theirs}); err != nil {
		c.Fatal(err)
	}
	var invalid *rollout.InvalidError
	if err := c.Check(c.Context(), c.app, []rollout.Object{made}); !errors.As(err, &invalid) || !strings.Contains(invalid.Msg, other) {
		c.Errorf("Check says %v, want an InvalidError that names %s", err, other)
	}
	before := c.Writes(c.T)
	if err := c.Apply(c.Context(), c.app, []rollout.Object{made}); !errors.As(err, &invalid) || c.Writes(c.T) != before {
		c.Errorf("Apply says %v and has written %d objects", err, c.Writes(c.T)-before)
	}
	if err := c.Check(c.Context(), other, []rollout.Object{made}); err != nil {
		c.Errorf("the owner may make the object again, and Check says %v", err)
	}
	made.Map("metadata")["name"] = "web-free"
	for range 2 {
		if err := c.Check(c.Context(), c.app, []rollout.Object{made}); err != nil {
			c.Errorf("Check of a name that is free, or the app's own: %v", err)
		}
		c.apply(made)
	}
}

// serves checks that Serves is true only if the Service has an endpoint of the given version.
func serves(c *clusterTest) {
	service := rollout.Object{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web", "namespace": c.Namespace()},
		"spec": map[string]any{"selector": map[string]any{"app": "web"}, "ports": []any{map[string]any{"port": int64(80)}}},
	}
	ask := func(service rollout.Ref, podHash string) bool {
		c.Helper()
		yes, err := c.Serves(c.Context(), service, podHash)
		if err != nil {
			c.Fatal(err)
		}
		return yes
	}
	c.see("web")
	c.apply(service, c.deployment("web", "v1", 0))
	c.complete("web")
	c.Await(c.T, "its ReplicaSet is seen", func() bool { return len(c.see("web").Revisions) > 0 })
	v1 := c.see("web").Revisions[0].Pin.Value
	if ask(service.Ref(), v1) {
		c.Error("it serves without a pod")
	}
	c.apply(c.deployment("web", "v1", 2))
	c.Await(c.T, "v1 serves", func() bool { return ask(service.Ref(), v1) })
	c.Await(c.T, "a pod of v1 is ready, as it serves", func() bool { return c.see("web").Revisions[0].Ready() > 0 })
	if ask(rollout.Ref{Kind: "Service", Namespace: c.Namespace(), Name: "gone"}, v1) {
		c.Error("a Service that does not exist serves")
	}
	if ask(service.Ref(), "other") {
		c.Error("a version that does not exist serves")
	}
	c.apply(service, c.deployment("web", "v2", 2))
	c.complete("web")
	v2, _ := c.see("web").Find("h1-v2")
	c.Await(c.T, "only v2 serves", func() bool { return ask(service.Ref(), v2.Pin.Value) && !ask(service.Ref(), v1) })
	pinned := service.Copy()
	pinned.Map("spec", "selector")[rollout.LabelPodHash] = v1
	c.apply(pinned)
	c.Await(c.T, "a Service that selects the old version's pods does not serve the new version", func() bool { return !ask(service.Ref(), v2.Pin.Value) })
	pinned = pinned.Copy()
	pinned.Map("spec", "selector")[rollout.LabelPodHash] = v2.Pin.Value
	c.apply(pinned)
	c.Await(c.T, "a Service that selects the new version's pods serves the new version", func() bool { return ask(service.Ref(), v2.Pin.Value) })
}

func templates(c *clusterTest) {
	v1 := c.deployment("web", "v1", 1)
	for want, o := range map[bool]rollout.Object{true: v1, false: c.deployment("web", "v2", 1)} {
		if same, err := c.SameTemplate(c.Context(), o); err != nil || same {
			c.Errorf("SameTemplate returns %t, %v without a Deployment; want false", same, err)
		}
		defer func() {
			if same, err := c.SameTemplate(c.Context(), o); err != nil || same != want {
				c.Errorf("SameTemplate returns %t, %v; want %t", same, err, want)
			}
		}()
	}
	c.apply(v1)
	c.complete("web")
}
