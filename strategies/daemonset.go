package strategies

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// daemonSet moves a DaemonSet node by node. Between its steps it has the strategy OnDelete, under which the controller
// replaces no pod by itself, and makes each one that is missing of the newest template (k8s.io/kubernetes
// pkg/controller/daemon, update.go). So a step evicts old pods of the nodes that are next, as many as the user's
// maxUnavailable leaves. The promotion and each way back are the user's own rolling update.
type daemonSet struct{ inTurn }

// fence is how many nodes the stage asks for. It is counted anew in each pass: nodes come and go.
func (daemonSet) fence(m moving, want counts, _ View) (fence, bool) {
	k := min(want.canary, m.n)
	return fence{m: k, n: m.n}, k > 0
}

func (daemonSet) hold(o rollout.Object, _ fence) {
	o.Set(map[string]any{"type": "OnDelete"}, "spec", "updateStrategy")
}

func (daemonSet) room(o rollout.Object, _ rollout.ObservedWorkload) {
	orElse(o, "spec.updateStrategy.type", "RollingUpdate")
	onNodes(o, "spec.updateStrategy.rollingUpdate", int64(1))
}

// evict are the old pods of the nodes that come next at a stage, the ones that serve as far as maxUnavailable leaves
// room: nobody misses the others. Which nodes a stage takes does not depend on what has been evicted so far: they are
// the first of those that still have an old pod, and as many fewer.
func (daemonSet) evict(in Input, w rollout.Workload, live rollout.ObservedWorkload) (all []Eviction) {
	i := slices.IndexFunc(in.State.Progress, func(p rollout.Progress) bool { return p.Workload == w })
	spec, staged := specOf(in, w)
	if !isHeld(in.State) || i < 0 || !staged || live.Hash != in.State.Release.Templates[w] {
		return nil
	}
	m := movingOf(in.State, in.plans.orNew().of(spec), in.State.Progress[i], in.Observed)
	var old []rollout.Pod
	room := roomOnNodes(spec, live, in.Now)
	for _, r := range live.Revisions {
		if !r.Current {
			old = append(old, slices.DeleteFunc(slices.Clone(r.Members), func(p rollout.Pod) bool { return p.Terminating })...)
		}
	}
	if len(spec.Canary.NodeOrder) > 0 && in.Observed.Nodes == nil {
		return nil
	}
	first := inNodeOrder(old, spec.Canary.NodeOrder, in)
	for _, p := range first[:min(len(first), max(0, m.want().canary-m.fresh.Desired))] {
		if p.Ready {
			room--
		}
		if !p.Ready || room >= 0 {
			all = append(all, Eviction{Namespace: w.Namespace, Pod: p})
		}
	}
	return all
}

// roomOnNodes is how many nodes more may be without a pod that serves; below 0, too many are already.
func roomOnNodes(spec rollout.Spec, live rollout.ObservedWorkload, now time.Time) int {
	room := max(1, spec.MaxUnavailable.RoundUp(live.Replicas)) - live.Replicas
	for _, r := range live.Revisions {
		room += r.Serving(now, minReady(spec))
	}
	return room
}

// inNodeOrder sorts pods by the order in which a release takes their nodes: those that an earlier selector matches
// first, the rest last, and the ones of each by a digest of release and node. So each release begins on other nodes,
// and who asks is told the same ones every time.
func inNodeOrder(pods []rollout.Pod, order []rollout.NodeSelector, in Input) []rollout.Pod {
	rank := func(p rollout.Pod) int {
		is := func(s rollout.NodeSelector) bool { return s.Matches(in.Observed.Nodes[p.Node]) }
		if i := slices.IndexFunc(order, is); i >= 0 {
			return i
		}
		return len(order)
	}
	place := func(p rollout.Pod) string {
		sum := sha256.Sum256([]byte(string(in.State.Release.Hash) + "\n" + p.Node))
		return string(sum[:])
	}
	slices.SortFunc(pods, func(a, b rollout.Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(place(a), place(b)), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// OrdersNodes reports whether a release in stages takes nodes by their labels, which Observed.Nodes are to tell then.
func OrdersNodes(in Input) bool {
	return isHeld(in.State) && in.Source != nil && slices.ContainsFunc(in.Source.Specs, func(spec rollout.Spec) bool {
		return spec.Canary != nil && len(spec.Canary.NodeOrder) > 0
	})
}
