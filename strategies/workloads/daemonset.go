package workloads

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// daemonSet moves a DaemonSet node by node. At steps, its update strategy is OnDelete, so the controller only creates
// missing pods, from the newest template (k8s.io/kubernetes pkg/controller/daemon, update.go). gitrollout deletes old
// pods within maxUnavailable. The promotion and rollbacks use the user's own rolling update.
type daemonSet struct{ inTurn }

// Limits computes the number of new pods. Each pass calls Limits, because users add and remove nodes.
func (daemonSet) Limits(m Staged, want plan.Counts, _ View) (Limits, bool) {
	k := min(want.Canary, m.N)
	return Limits{Unavailable: k, Replicas: m.N}, k > 0
}

func (daemonSet) Hold(o rollout.Object, _ Limits) {
	o.Set(map[string]any{"type": "OnDelete"}, "spec", "updateStrategy")
}

func (daemonSet) room(o rollout.Object, _ rollout.ObservedWorkload) {
	orElse(o, "spec.updateStrategy.type", "RollingUpdate")
	onNodes(o, "spec.updateStrategy.rollingUpdate", int64(1))
}

func (daemonSet) evict(in Evicting, w rollout.Workload, live rollout.ObservedWorkload) []Eviction {
	i := slices.IndexFunc(in.State.Progress, func(p rollout.Progress) bool { return p.Workload == w })
	spec, staged := in.Source.Spec(w)
	if !IsHeld(in.State) || i < 0 || !staged || live.Hash != in.State.Release.Templates[w] {
		return nil
	}
	m := New(in.State, in.Plans.OrNew().Of(spec), in.State.Progress[i], in.Observed)
	var old []rollout.Pod
	spare := room(spec, live, in.Now)
	for _, r := range live.Revisions {
		if !r.Current {
			old = append(old, slices.DeleteFunc(slices.Clone(r.Members), func(p rollout.Pod) bool { return p.Terminating })...)
		}
	}
	if len(spec.Canary.NodeOrder) > 0 && in.Observed.Nodes == nil {
		return nil
	}
	first := inNodeOrder(old, spec.Canary.NodeOrder, in, spare < 1)
	return within(spare, w, first[:min(len(first), max(0, m.Want().Canary-m.Fresh.Desired))])
}

// inNodeOrder sorts pods by the first selector that matches their node, then by a digest of release and node. So each
// release begins on another node.
func inNodeOrder(pods []rollout.Pod, order []rollout.NodeSelector, in Evicting, broken bool) []rollout.Pod {
	rank := func(p rollout.Pod) int {
		if broken && p.Ready {
			return len(order) + 1
		}
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
