package cluster

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gitrollout.dev/gitrollout/rollout"
)

// LabelApplied has the digest of the applied object. If the digest is equal and gitrollout owns the fields, no write is
// needed. This is a label, because the Deployment controller copies annotations to ReplicaSets.
const LabelApplied = "gitrollout.dev/applied"

type live struct {
	stamp
	ref          rollout.Ref
	apiVersion   string
	app          string // rollout.LabelApp
	cluster      string // rollout.AnnotationCluster
	once         bool   // rollout.Object.CreateOnly
	keep         string // the annotation that forbids pruning, with its value
	terminating  bool
	finalizers   string
	applied      string        // LabelApplied
	print        string        // of gitrollout's fields, or ""
	shared       bool          // another manager also owns gitrollout's fields, or a tool has applied the object
	writer       string        // last writer other than gitrollout
	ownsReplicas bool          // gitrollout owns spec.replicas
	replicas     int64         // -1 if not a number
	health       status.Status // "" if healthy
	why          string
	awaited      string // why a CRD is not established, or ""
	generation   int64
	status       string    // JSON, if a router may write it, or ""
	pending      string    // gitrollout's managed fields (JSON) until compared with Git, then ""
	workload     *workload // nil if the object runs no pods
}

func (c *Client) readLive(k *kind, u *unstructured.Unstructured) (*live, error) {
	o := rollout.Object(u.Object)
	ref := o.Ref()
	l := &live{
		stamp:       stamp{key: k.key(ref), uid: u.GetUID(), version: u.GetResourceVersion()},
		ref:         ref,
		apiVersion:  o.APIVersion(),
		app:         u.GetLabels()[rollout.LabelApp],
		cluster:     o.Annotation(rollout.AnnotationCluster),
		once:        o.CreateOnly(),
		keep:        o.Keeps(),
		terminating: u.GetDeletionTimestamp() != nil,
		finalizers:  strings.Join(u.GetFinalizers(), ", "),
		applied:     o.Label(LabelApplied),
		awaited:     awaitedOf(ref, o),
		generation:  u.GetGeneration(),
		status:      statusOf(ref, o),
	}
	owned := ownedFields(u.Object)
	l.health, l.why = healthOf(u)
	l.shared, l.writer = isShared(u.Object, owned), writerOf(u.Object)
	if owned != nil {
		l.print = fingerprint(owned, u.Object)
		_, l.ownsReplicas = child(childOf(owned, "f:spec"), "f:replicas")
	}
	l.replicas = -1
	if n, ok := o.Map("spec")["replicas"].(int64); ok {
		l.replicas = n
	}
	if _, known := c.applied.of(ref); owned != nil && l.applied != "" && !known {
		raw, _ := json.Marshal(owned)
		l.pending = string(raw)
	}
	var err error
	l.workload, err = readWorkload(c.workloads.kindOf(k.gvk), o)
	return l, err
}

func without(m map[string]any, fields ...string) map[string]any {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(name string, _ any) bool { return slices.Contains(fields, name) })
	return out
}

func (l *live) provenBy(d *desired) bool {
	if l.applied != d.digest || l.pending == "" {
		return false
	}
	var owned map[string]any
	return json.Unmarshal([]byte(l.pending), &owned) == nil && holds(owned, d.object)
}

func (l *live) same(o *live) bool {
	a := *l
	a.version, a.generation, a.status, a.why = o.version, o.generation, o.status, o.why
	a.shared, a.writer, a.pending, a.workload = o.shared, o.writer, o.pending, o.workload
	return a == *o && reflect.DeepEqual(l.workload, o.workload)
}

func (c *Client) liveChanged(was, is *live) {
	c.mu.Lock()
	c.troubles.note(was, is, c.opts.Cluster)
	c.mu.Unlock()
	if was != nil && is != nil && was.same(is) && (was.status == is.status || !c.isRoute(is.ref)) {
		return
	}
	told := ""
	for _, l := range []*live{was, is} {
		if l == nil {
			continue
		}
		if app := c.workloads.appOf(l); app != "" && app != told {
			told = app
			c.opts.OnChange(app)
		}
	}
}

func healthOf(u *unstructured.Unstructured) (health status.Status, why string) {
	if u.GetDeletionTimestamp() != nil {
		return status.TerminatingStatus, deleting(strings.Join(u.GetFinalizers(), ", "))
	}
	result, err := status.Compute(u)
	if err != nil || result.Status == status.CurrentStatus {
		return "", "" // the object is healthy, or its status is unknown
	}
	return result.Status, cut(rollout.OneLine(result.Message), 500)
}

func deleting(finalizers string) string {
	const waits = ", and waits for its finalizers: "
	return strings.TrimSuffix("is being deleted"+waits+finalizers, waits)
}

type troubles map[string]map[rollout.Ref]rollout.Trouble

// note ignores objects of other clusters, because another cluster's app may have the same name.
func (t troubles) note(was, is *live, cluster string) {
	if was != nil && was.health != "" {
		if delete(t[was.app], was.ref); len(t[was.app]) == 0 {
			delete(t, was.app)
		}
	}
	if is == nil || is.health == "" || is.app == "" || is.cluster != cluster {
		return
	}
	if t[is.app] == nil {
		t[is.app] = map[rollout.Ref]rollout.Trouble{}
	}
	t[is.app][is.ref] = rollout.Trouble{Ref: is.ref, Failed: is.health == status.FailedStatus, Message: is.why}
}

func (t troubles) of(app string) []rollout.Trouble {
	return slices.SortedFunc(maps.Values(t[app]), func(a, b rollout.Trouble) int { return a.Ref.Compare(b.Ref) })
}
