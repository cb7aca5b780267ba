package cluster

import (
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

// workloadKind is all that the client knows of one kind of object that runs pods. A new kind is one such value, in a
// file of its own, and a place in workloadKinds.
type workloadKind struct {
	gvk          schema.GroupVersionKind
	described    rollout.Partitioned                     // if not every cluster serves it: by its fields alone
	read         func(rollout.Object) (*workload, error) // but the annotations
	readRevision func(obj any) (*revision, error)
	// watchRevisions is nil for a kind whose revisions are among those of the one before it in workloadKinds.
	watchRevisions func(*background, typed, *table[*revision])

	// current returns the revision that the workload's template is, nil if its controller has not made it yet. synced
	// says that the controller has seen the newest spec; the revisions are the workload's, newest first.
	current func(w *workload, synced bool, revisions []*revision) *revision

	// pods returns the pods of one revision of a workload, in no order.
	pods func(all *table[*pod], l *live, r *revision) []*pod

	// finish adds to what is shown of a workload what no revision says of itself; nil for nothing.
	finish func(w *workload, out *rollout.ObservedWorkload)

	// inUse reports whether pods of a revision are there or may be made.
	inUse func(objects *kind, r *revision) bool
	// onNodes is true where there is a pod for each node, also for a kind of that name that is described.
	onNodes bool
}

var workloadKinds = []*workloadKind{&deployments, &statefulSets, &daemonSets}

// isOnNodes reports whether a kind of that name has a pod for each node.
func isOnNodes(kind string) bool {
	return slices.ContainsFunc(workloadKinds, func(k *workloadKind) bool { return k.onNodes && k.gvk.Kind == kind })
}

// kindOf is nil for objects that run no pods.
func (w *workloads) kindOf(gvk schema.GroupVersionKind) *workloadKind {
	if k, is := rollout.Find(w.all(), func(k *workloadTable) bool { return k.gvk == gvk }); is {
		return k.workloadKind
	}
	return nil
}

// workload is what is kept of an object that runs pods, beside what is kept of every object. It is comparable.
type workload struct {
	hash   rollout.Hash
	serial int
	commit string // rollout.AnnotationCommit
	status string // rollout.AnnotationStatus

	number     int    // of the newest revision
	template   string // digest of the pod template
	generation int64
	observed   int64 // the generation that the controller has seen
	replicas   int   // spec
	total      int   // status: all pods, of any template
	updated    int   // status: pods of the newest template
	available  int   // status
	failure    string

	// of a StatefulSet, and of kinds that are moved by a partition like it
	base, update     string // status.currentRevision and .updateRevision
	partition, first int    // the pods that keep the base, and spec.ordinals.start
	room             bool   // it has a maxUnavailable, which API servers leave out without their feature gate for it
	updatedReady     int    // status: pods of the newest template that are ready; -1 if it does not say
	unsaid           string // a field that a description names and that the controller does not write
}

// readWorkload keeps what is needed of an object, nil if it runs no pods.
func readWorkload(kind *workloadKind, o rollout.Object) (*workload, error) {
	if kind == nil {
		return nil, nil
	}
	w, err := kind.read(o)
	if err != nil {
		return nil, err
	}
	w.hash, w.serial = rollout.Hash(o.Annotation(rollout.AnnotationHash)), number(o.Label(rollout.LabelSerial))
	w.commit, w.status = o.Annotation(rollout.AnnotationCommit), o.Annotation(rollout.AnnotationStatus)
	return w, nil
}

// workloads shows all live objects that run pods.
type workloads struct {
	pods  *table[*pod]
	kinds []*workloadTable
	tell  func(app string)

	mu     sync.Mutex
	owners map[rollout.Workload]string // the app that observes a workload, for those without label
	more   []*workloadTable
}

// workloadTable holds the objects of one kind, and their revisions.
type workloadTable struct {
	*workloadKind
	objects   atomic.Pointer[kind] // nil until all have been seen
	revisions *table[*revision]
	unseen    error // why the objects cannot be watched
}

func newWorkloads(tell func(app string), namespaces ...string) *workloads {
	w := &workloads{tell: tell, owners: map[rollout.Workload]string{}}
	w.pods = newTable(reading(readPod), changedOf[*pod](w), namespaces...)
	for i, k := range workloadKinds {
		t := &workloadTable{workloadKind: k}
		if k.watchRevisions == nil {
			t.revisions = w.kinds[i-1].revisions
		} else {
			t.revisions = newTable(k.readRevision, changedOf[*revision](w), namespaces...)
		}
		w.kinds = append(w.kinds, t)
	}
	return w
}

// start watches all workloads, revisions and pods, and returns when it has seen them.
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

// unseen returns why the observation of some workloads may be out of date: the first failure among the watches that
// they need, "" if all of them work. Kubernetes' own kinds are needed by all.
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

// own notes whom changes of workloads are told that have no label yet.
func (w *workloads) own(app string, of []rollout.Workload) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range of {
		w.owners[name] = app
	}
}

// appOf returns the app of an object: its label's, or for a workload that is
// not adopted yet that of whoever observes it.
func (w *workloads) appOf(l *live) string {
	if l.app != "" || l.workload == nil {
		return l.app
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name, _ := rollout.WorkloadOf(l.ref)
	return w.owners[name]
}

// changedOf tells the app of a workload about its revisions, or its pods.
func changedOf[R interface {
	row
	same(R) bool
}](w *workloads) func(was, is R) {
	return func(was, is R) {
		var none R
		switch {
		case was == none:
			w.tellOwner(is.at().owner)
		case is == none || !was.same(is):
			w.tellOwner(was.at().owner)
		}
	}
}

// tellOwner tells the app of a workload, which is given by its uid or by that of one of its revisions.
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

// is reports whether an object is of the table's kind, in any version.
func (k *workloadTable) is(ref rollout.Ref) bool {
	return k.gvk.Kind == ref.Kind && k.gvk.Group == ref.Group
}

// get returns a live workload, nil if there is none.
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

// observe shows a workload with its revisions and pods.
func (w *workloads) observe(k *workloadTable, l *live) rollout.ObservedWorkload {
	d := l.workload
	out := rollout.ObservedWorkload{
		Replicas:  d.replicas,
		Hash:      d.hash,
		Serial:    d.serial,
		Synced:    d.observed >= d.generation,
		Available: d.available,
	}
	// As kubectl rollout status: all pods are of the newest template, all of them
	// are available, and none of an older one is left.
	out.Complete = out.Synced && d.updated == d.replicas && d.total == d.updated && d.available == d.updated

	revisions := k.revisions.ownedBy(l.uid)
	byRevision(revisions)
	current := k.current(d, out.Synced, revisions)
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

// userOf returns what refers to a ConfigMap or Secret: a pod, or a revision that has pods or is to have some. Both
// versions of a release in flight need theirs, and so does a pod that is still stopping.
func (w *workloads) userOf(ref rollout.Ref) string {
	wanted := configRef{kind: ref.Kind, name: ref.Name}
	user := ""
	for _, k := range w.all() {
		objects := k.objects.Load()
		k.revisions.each(func(r *revision) bool {
			if r.namespace == ref.Namespace && objects != nil && k.inUse(objects, r) && slices.Contains(r.configs, wanted) {
				user = r.kind + " " + r.namespace + "/" + r.name
			}
			return user == ""
		})
	}
	if user != "" {
		return user
	}
	w.pods.each(func(p *pod) bool {
		if p.namespace == ref.Namespace && !p.finished && slices.Contains(p.configs, wanted) {
			user = "Pod " + p.namespace + "/" + p.name
		}
		return user == ""
	})
	return user
}
