package simulate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// checkOrder checks that a step for N nodes evicts a DaemonSet's pod only from the first N nodes of the documented order. Pods
// that are not ready may be evicted earlier.
func (p *promises) checkOrder(what string) {
	name, evicted := strings.CutSuffix(strings.TrimPrefix(what, "pod "), " evicted")
	if !evicted || p.u.chaos.meddling || len(p.u.procs) > 1 || p.u.spoiled {
		return
	}
	for w, live := range p.u.kube.Observe().Workloads {
		s, source := p.onRecord(w)
		t := p.tries[p.u.ids[s.App]]
		pr, moves := s.ProgressOf(w)
		if !moves || t == nil || source == nil || source.policy != onNodes {
			continue
		}
		var old []rollout.Pod // the evicted pod, and old pods that are not terminating
		taken := 0
		for _, r := range live.Revisions {
			if r.Current {
				taken = r.Desired // also counts the node of the evicted pod
				continue
			}
			old = append(old, slices.DeleteFunc(slices.Clone(r.Members), func(pod rollout.Pod) bool {
				return pod.Terminating && pod.Name != name
			})...)
		}
		i := slices.IndexFunc(old, func(pod rollout.Pod) bool { return pod.Name == name })
		if i < 0 {
			continue
		}
		node, before := old[i].Node, 0
		for _, pod := range old {
			if p.isEarlier(source, s.Release.Hash, pod.Node, node) && (old[i].Ready || !pod.Ready) {
				before++
			}
		}
		p.u.played["a node is taken in turn"]++
		legs := source.legs()
		d := p.u.kube.Deployments[w]
		t.taken(d, legs, at(source, legs, pr))
		if missing := t.nodes[w].let - (taken - 1); before >= missing {
			p.fail(lawOrder, "%s: %s on %s was evicted, %s takes %d nodes before it, and %d are missing", w, name, node,
				s.Release.Hash, before, missing)
		}
	}
}

// isEarlier reports whether a release updates the first node before the other node.
func (p *promises) isEarlier(w *workloadSource, release rollout.Hash, node, other string) bool {
	_, ordered := w.canary["nodeOrder"]
	rank := func(node string) int {
		if ordered && p.u.kube.NodeLabels()[node]["topology.kubernetes.io/zone"] == "local-b" {
			return 0
		}
		return 1
	}
	place := func(node string) string {
		sum := sha256.Sum256([]byte(string(release) + "\n" + node))
		return string(sum[:])
	}
	return cmp.Or(cmp.Compare(rank(node), rank(other)), cmp.Compare(place(node), place(other))) < 0
}

// fickle is a mutation that evicts another ready pod of the chosen pod's revision, instead of the chosen pod.
func fickle(ctx context.Context, p starting, namespace string, pod rollout.Pod) error {
	for _, live := range p.u.kube.Observe().Workloads {
		for _, r := range live.Revisions {
			isIt := func(p rollout.Pod) bool { return p.UID == pod.UID }
			isOther := func(p rollout.Pod) bool { return !isIt(p) && p.Ready && !p.Terminating }
			if i := slices.IndexFunc(r.Members, isOther); slices.ContainsFunc(r.Members, isIt) && i >= 0 {
				pod = r.Members[i]
				break
			}
		}
	}
	return p.View.Evict(ctx, namespace, pod)
}
