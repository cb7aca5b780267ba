package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

// Cluster models an API server. Its only field manager forces each apply. Kube models the controllers.
type Cluster struct {
	Kube *kube.Cluster
	Ends func(job string) rollout.JobState // a Job's state at each check until the Job ends

	jobs    map[string]*job // by namespace/name
	made    map[string]int  // number of created Jobs, by the hook run's annotation
	objects map[rollout.Ref]*object
	foreign map[rollout.Ref]string // owners of other controllers' objects
	version int                    // increases with each visible change
	writes  int                    // writes and deletions by reconcilers
	writing func(by *View, app string, object rollout.Object)
	wrote   func(by *View, o rollout.Object, digest string)
	changed func(what string)
}

type object struct {
	app    string
	digest string
	body   rollout.Object
}

// NewCluster returns an empty cluster.
func NewCluster(rng *rand.Rand, now time.Time) *Cluster {
	c := &Cluster{Kube: kube.New(rng, now), objects: map[rollout.Ref]*object{},
		jobs: map[string]*job{}, made: map[string]int{}, Ends: ends{}.of}
	c.writing, c.wrote = func(*View, string, rollout.Object) {}, func(*View, rollout.Object, string) {}
	c.changed = func(string) {}
	c.Kube.OnChange = func(what string) {
		c.version++
		c.changed(what)
	}
	return c
}

func (c *Cluster) apply(app string, o rollout.Object, digest string) error {
	if err := c.Kube.Apply(o); err != nil {
		return err
	}
	c.objects[o.Ref()] = &object{app: app, digest: digest, body: o}
	c.version++
	c.writes++
	c.changed(o.Kind() + " " + o.Name() + " applied")
	return nil
}

// Delete deletes an object and its dependents.
func (c *Cluster) Delete(ref rollout.Ref) {
	delete(c.objects, ref)
	delete(c.Kube.Pins, ref)
	delete(c.Kube.Routes, ref)
	if w, is := c.Kube.WorkloadOf(ref); is {
		delete(c.Kube.Deployments, w)
	}
	c.version++
	c.changed(ref.Kind + " " + ref.Name + " deleted")
}

func digestOf(app string, o rollout.Object) (string, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", o.Ref(), err)
	}
	return rollout.Digest(append(raw, app...), 8), nil
}

func (c *Cluster) digest(ref rollout.Ref) string {
	o := c.objects[ref]
	if o == nil {
		return ""
	}
	w, is := c.Kube.WorkloadOf(ref)
	n, named := o.body.Map("spec")["replicas"].(int64)
	if d := c.Kube.Deployments[w]; is && d != nil && named && int(n) != d.Replicas {
		return ""
	}
	return o.digest
}

// Objects lists the objects, sorted.
func (c *Cluster) Objects() []rollout.Ref {
	return slices.SortedFunc(maps.Keys(c.objects), rollout.Ref.Compare)
}
