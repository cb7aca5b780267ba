package cluster

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gitrollout.dev/gitrollout/rollout"
)

// Know watches kinds of workloads, and waits for the first lists. Observed.Unseen reports a failed watch. Know ignores
// a kind that the API server does not serve.
func (c *Client) Know(kinds []rollout.Partitioned) {
	root := c.kinds.context()
	if root == nil {
		return
	}
	for _, p := range kinds {
		t, isNew := c.workloads.know(p)
		if k := c.kinds.known(t.gvk); isNew && k != nil {
			c.kinds.forget(k) // the old watch selects only objects with an app label
		}
		ctx, cancel := context.WithTimeout(root, listTimeout)
		objects, err := c.kinds.of(ctx, t.gvk)
		cancel()
		if errors.Is(err, errUnknownKind) {
			objects, err = nil, nil
		}
		c.workloads.looked(t, objects, err)
	}
}

func (w *workloads) know(p rollout.Partitioned) (t *workloadTable, isNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, known := rollout.Find(w.more, func(t *workloadTable) bool { return t.described == p }); known {
		return t, false
	}
	gvk := schema.FromAPIVersionAndKind(p.APIVersion, p.Kind)
	others := slices.DeleteFunc(slices.Clone(w.more), func(t *workloadTable) bool { return t.gvk == gvk })
	revisions := w.kinds[len(w.kinds)-1].revisions // all kinds share this watch
	t = &workloadTable{workloadKind: partitionedKind(p), revisions: revisions}
	w.more = append(others, t)
	return t, true
}

func (w *workloads) looked(t *workloadTable, objects *kind, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.unseen = err; err == nil {
		t.objects.Store(objects)
	}
}

func (w *workloads) all() []*workloadTable {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Concat(w.kinds, w.more)
}

func partitionedKind(p rollout.Partitioned) *workloadKind {
	k := &workloadKind{
		gvk:       schema.FromAPIVersionAndKind(p.APIVersion, p.Kind),
		described: p,
		read:      func(o rollout.Object) (*workload, error) { return readPartitioned(p, o), nil },
		current:   updateRevisionOf,
		pods:      podsOfRevision,
		finish:    byCounts,
		inUse:     isBaseOrUpdate,
	}
	if p.Nodes != "" {
		k.finish, k.inUse = byNodes, isOfTemplate
	}
	return k
}

func readPartitioned(p rollout.Partitioned, o rollout.Object) *workload {
	out := readFields(p, o)
	out.unsaid = unsaid(p, o)
	reserved, _ := rollout.In(o, "spec.reserveOrdinals").([]any)
	out.unordered = len(reserved) > 0 || rollout.In(o, "spec.updateStrategy.rollingUpdate.unorderedUpdate") != nil
	return out
}

func readFields(p rollout.Partitioned, o rollout.Object) *workload {
	number := func(field string, absent int) int {
		if n, is := rollout.In(o, field).(int64); is {
			return int(n)
		}
		return absent
	}
	text := func(field string) string { s, _ := rollout.In(o, field).(string); return s }
	out := &workload{
		generation: int64(number("metadata.generation", 0)), observed: int64(number(p.Status.ObservedGeneration, 0)),
		replicas: number("spec.replicas", 1), total: number(p.Status.Replicas, 0),
		updated: number(p.Status.Updated, 0), available: number(p.Status.Available, 0),
		base: text(p.Status.CurrentRevision), update: text(p.Status.UpdateRevision), updatedReady: -1,
		first: number("spec.ordinals.start", 0),
	}
	if p.Nodes != "" {
		out.replicas, out.strays = number(p.Nodes, 0), number("status.numberMisscheduled", 0)
	}
	if p.Status.UpdatedReady != "" {
		out.updatedReady = number(p.Status.UpdatedReady, 0)
	}
	var amount rollout.Amount
	switch set := rollout.In(o, p.Partition); {
	case set == nil || amount.ReadValue(set) != nil:
	case p.CountsNew:
		out.partition = max(0, out.replicas-amount.RoundUp(out.replicas))
	default:
		out.partition = min(out.replicas, amount.RoundUp(out.replicas))
	}
	return out
}

// unsaid returns the first missing status field, or "". If minReadySeconds is set, a controller may omit a zero number
// of available pods.
func unsaid(p rollout.Partitioned, o rollout.Object) string {
	s := p.Status
	fields := []string{s.ObservedGeneration, s.Replicas, s.Updated, s.UpdatedReady, s.CurrentRevision, s.UpdateRevision}
	if soon := rollout.In(o, p.MinReady); soon == nil || soon == int64(0) {
		fields = append(fields, s.Available)
	}
	field, _ := rollout.Find(fields, func(f string) bool { return f != "" && rollout.In(o, f) == nil })
	return field
}

// byCounts sets each revision's desired pods. While old pods are fewer than the partition, missing pods count for the
// base. Other missing pods count for the new revision. At most updatedReady new pods count as ready, because an
// in-place update changes labels while old containers are still ready.
func byCounts(w *workload, out *rollout.ObservedWorkload) {
	old, missing, base, update := 0, w.replicas, -1, -1
	out.First, out.Floor, out.Unordered = w.first, w.first+w.partition, w.unordered
	for i := range out.Revisions {
		r := &out.Revisions[i]
		r.Desired, r.Base = r.Pods, r.Name == w.base
		missing -= r.Pods
		isNewest := w.hash != "" && r.Hash == w.hash
		if w.unsaid != "" && isNewest && len(r.ReadySince) > 0 && r.Problem == "" {
			r.Problem = "its controller writes no " + w.unsaid +
				": under workloads in .gitrollout/<cluster>/config.yaml, name the field that the controller writes"
		}
		if r.Base {
			base = i
		}
		if r.Name != w.update {
			old += r.Pods
			continue
		}
		update = i
		if r.Current && w.hash != "" {
			r.Hash = w.hash
		}
		if seen := w.updatedReady; r.Current && seen >= 0 && len(r.ReadySince) > seen {
			r.ReadySince = r.ReadySince[len(r.ReadySince)-seen:]
		}
	}
	back := min(max(0, missing), max(0, w.partition-old))
	if base >= 0 {
		out.Revisions[base].Desired += back
	}
	if update >= 0 {
		out.Revisions[update].Desired += max(0, missing) - back
	}
	out.Complete = out.Complete && w.base == w.update
}
