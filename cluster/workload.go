package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/rollout"
)

type workloadKind struct {
	gvk          schema.GroupVersionKind
	described    rollout.Partitioned                     // description of a kind that is not built in
	read         func(rollout.Object) (*workload, error) // does not read gitrollout's annotations and labels
	readRevision func(obj any) (*revision, error)
	// watchRevisions starts the watch of revisions. It is nil for a kind that shares the revisions of the previous kind
	// in workloadKinds.
	watchRevisions func(*background, typed, *table[*revision])
	// current returns the current template's revision, or nil. synced means that the controller has seen the spec. The
	// revisions are sorted, newest first.
	current func(w *workload, synced bool, revisions []*revision) *revision
	// pods returns a revision's unsorted pods.
	pods func(all *table[*pod], l *live, r *revision) []*pod
	// finish sets fields that depend on several revisions. It may be nil.
	finish func(w *workload, out *rollout.ObservedWorkload)
	// inUse reports whether a revision has pods or may get some.
	inUse func(objects *kind, r *revision) bool
	// onNodes means one pod per node. readPod ignores the API group, so pods of Kruise's DaemonSets also get a node.
	onNodes bool
}

var workloadKinds = []*workloadKind{&deployments, &statefulSets, &daemonSets}

func (w *workloads) kindOf(gvk schema.GroupVersionKind) *workloadKind {
	if k, is := rollout.Find(w.all(), func(k *workloadTable) bool { return k.gvk == gvk }); is {
		return k.workloadKind
	}
	return nil
}

type workload struct {
	hash           rollout.Hash
	serial         int
	commit, status string // rollout.AnnotationCommit and rollout.AnnotationStatus
	breakGlass     string // rollout.AnnotationBreakGlass
	generated      bool

	number               int    // newest revision; 0 if unknown
	template             string // digest of the pod template
	generation, observed int64  // newest generation, and the generation that the controller has seen
	replicas             int    // desired pods: spec.replicas or the number of nodes
	surge                int    // a Deployment's maxSurge, in pods
	total                int    // status: number of pods of all revisions
	updated              int    // status: number of pods of the current template
	available            int
	failure              string
	revised              bool // not paused, so a new template gets a ReplicaSet

	// A Deployment has none of these fields.
	base, update     string // status.currentRevision and .updateRevision
	partition, first int    // number of pods that keep the base revision, and spec.ordinals.start
	unordered        bool   // see rollout.ObservedWorkload
	strays           int    // see rollout.ObservedWorkload
	room             bool   // maxUnavailable is set; without the feature gate, the API server drops the field
	updatedReady     int    // status: ready pods of the current template, or -1
	unsaid           string // a required, missing status field, or ""
}

func readWorkload(kind *workloadKind, o rollout.Object) (*workload, error) {
	if kind == nil {
		return nil, nil
	}
	w, err := kind.read(o)
	if err != nil {
		return nil, err
	}
	w.hash, w.serial = rollout.Hash(o.Annotation(rollout.AnnotationHash)), number(o.Label(rollout.LabelSerial))
	w.breakGlass, w.generated = o.Annotation(rollout.AnnotationBreakGlass), o.Annotation(rollout.AnnotationGenerated) != ""
	w.commit, w.status = o.Annotation(rollout.AnnotationCommit), o.Annotation(rollout.AnnotationStatus)
	return w, nil
}

type workloads struct {
	pods  *table[*pod]
	kinds []*workloadTable
	tell  func(app string)

	mu     sync.Mutex
	owners map[rollout.Workload]string // app of each workload in Git, for live objects without an app label
	more   []*workloadTable
}

type workloadTable struct {
	*workloadKind
	objects   atomic.Pointer[kind] // nil before the first list
	revisions *table[*revision]
	unseen    error
}

func newWorkloads(tell func(app string), namespaces ...string) *workloads {
	w := &workloads{tell: tell, owners: map[rollout.Workload]string{}}
	w.pods = newTable(reading(readPod), changedOf[pod](w), namespaces...)
	for i, k := range workloadKinds {
		t := &workloadTable{workloadKind: k}
		if k.watchRevisions == nil {
			t.revisions = w.kinds[i-1].revisions
		} else {
			t.revisions = newTable(k.readRevision, changedOf[revision](w), namespaces...)
		}
		w.kinds = append(w.kinds, t)
	}
	return w
}

func (w *workloads) start(ctx context.Context, all *kinds, kube typed) error {
	watchTyped(all.background, w.pods, "pods", &corev1.Pod{}, kube.core.Pods)
	for _, k := range w.kinds {
		if k.watchRevisions != nil {
			k.watchRevisions(all.background, kube, k.revisions)
		}
	}
	seen := make([]*kind, len(w.kinds))
	for i, k := range w.kinds {
		objects, err := all.watching(ctx, k.gvk)
		if err != nil {
			return err
		}
		if err := objects.live.await(ctx, syncWithin); err != nil {
			return fmt.Errorf("watch %s: %w", objects.resource.GroupResource(), err)
		}
		if err := k.revisions.await(ctx, syncWithin); err != nil {
			return fmt.Errorf("watch the revisions of %s: %w", objects.resource.GroupResource(), err)
		}
		seen[i] = objects
	}
	if err := w.pods.await(ctx, syncWithin); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	for i, k := range w.kinds {
		k.objects.Store(seen[i])
	}
	return nil
}

// unseen returns why the state of these workloads may be outdated, or "". It checks the watches of pods, of built-in
// kinds and of the workloads' kinds, and returns the earliest failure.
func (w *workloads) unseen(of []rollout.Workload) string {
	var first time.Time
	text := ""
	note := func(since time.Time, why error) {
		if why != nil && (text == "" || since.Before(first)) {
			first, text = since, why.Error()
		}
	}
	note(w.pods.blind())
	for _, k := range w.all() {
		isOf := func(name rollout.Workload) bool { return k.is(name.Ref()) }
		if k.described != (rollout.Partitioned{}) && !slices.ContainsFunc(of, isOf) {
			continue
		}
		w.mu.Lock()
		note(time.Time{}, k.unseen)
		w.mu.Unlock()
		note(k.revisions.blind())
		if objects := k.objects.Load(); objects != nil {
			note(objects.live.blind())
		}
	}
	return text
}

func (w *workloads) appOf(l *live) string {
	if l.app != "" || l.workload == nil {
		return l.app
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name, _ := rollout.WorkloadOf(l.ref)
	return w.owners[name]
}

func changedOf[T any, R record[T]](w *workloads) func(was, is R) {
	return func(was, is R) {
		var none R
		switch {
		case was == none:
			w.tellOwner(is.at().owner)
		case is == none || !sameRow(was, is):
			w.tellOwner(was.at().owner)
		}
	}
}

func (w *workloads) tellOwner(uid types.UID) {
	for _, k := range w.all() {
		objects := k.objects.Load()
		if objects == nil || uid == "" {
			continue
		}
		owner := uid
		if r, ok := k.revisions.withUID(uid); ok {
			owner = r.owner
		}
		if l, ok := objects.live.withUID(owner); ok {
			if app := w.appOf(l); app != "" {
				w.tell(app)
			}
		}
	}
}

func (k *workloadTable) is(ref rollout.Ref) bool {
	return k.gvk.Kind == ref.Kind && k.gvk.Group == ref.Group
}

func (w *workloads) get(name rollout.Workload) (*workloadTable, *live) {
	ref := name.Ref()
	for _, k := range w.all() {
		objects := k.objects.Load()
		if !k.is(ref) || objects == nil {
			continue
		}
		if l, ok := objects.live.get(key{name.Namespace, name.Name}); ok && l.workload != nil {
			return k, l
		}
	}
	return nil, nil
}

func (w *workloads) observe(k *workloadTable, l *live) rollout.ObservedWorkload {
	d := l.workload
	out := rollout.ObservedWorkload{
		Replicas:   d.replicas,
		Hash:       d.hash,
		Serial:     d.serial,
		BreakGlass: d.breakGlass,
		Synced:     d.observed >= d.generation,
		Available:  d.available,
		Surge:      d.surge,
	}
	revisions := k.revisions.ownedBy(l.uid)
	slices.SortFunc(revisions, func(a, b *revision) int {
		return cmp.Or(cmp.Compare(b.number, a.number), b.created.Compare(a.created), cmp.Compare(a.name, b.name))
	})
	current := k.current(d, out.Synced, revisions)
	out.Synced = out.Synced && (current != nil || !d.revised) // the watch may lag
	// Complete has the same meaning as in "kubectl rollout status".
	out.Complete = out.Synced && d.updated == d.replicas && d.total == d.updated && d.available == d.updated
	for _, r := range revisions {
		shown := r.observe(k.pods(w.pods, l, r))
		shown.Current = r == current
		if shown.Current && shown.Problem == "" {
			shown.Problem = d.failure
		}
		out.Revisions = append(out.Revisions, shown)
	}
	if k.finish != nil {
		k.finish(d, &out)
	}
	return out
}

// userOf returns a pod or revision that uses the ConfigMap or Secret, or "". Terminating pods, and revisions that may
// get pods, also count.
func (w *workloads) userOf(ref rollout.Ref) string {
	wanted := configRef{kind: ref.Kind, name: ref.Name}
	for _, k := range w.all() {
		objects := k.objects.Load()
		for r := range k.revisions.each {
			if r.namespace == ref.Namespace && objects != nil && k.inUse(objects, r) && slices.Contains(r.configs, wanted) {
				return r.kind + " " + r.namespace + "/" + r.name
			}
		}
	}
	for p := range w.pods.each {
		if p.namespace == ref.Namespace && !p.finished && slices.Contains(p.configs, wanted) {
			return "Pod " + p.namespace + "/" + p.name
		}
	}
	return ""
}
