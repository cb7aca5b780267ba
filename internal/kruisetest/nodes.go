package kruisetest

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// onNode is a node and the node's pod, which may be nil.
type onNode struct {
	name string
	*corev1.Pod
	old int // 1 if the pod has an old template, otherwise 0
}

// placed returns the nodes with their pods, in descending order of the nodes' names, as in Kruise.
func (m *model) placed(ctx context.Context, s *set) ([]onNode, error) {
	nodes, err := m.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var all []onNode
	for _, n := range nodes.Items {
		at := onNode{name: n.Name}
		for i, pods := range [][]corev1.Pod{s.old, s.fresh} {
			for j := range pods {
				if pods[j].Spec.NodeName == n.Name {
					at.Pod, at.old = &pods[j], 1-i
				}
			}
		}
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b onNode) int { return strings.Compare(b.name, a.name) })
	return all, nil
}

// moveOnNodes creates a missing pod, or deletes an old pod. Among the nodes with old pods, the s.keep nodes whose names
// sort first keep their pods. On all other nodes, an unready old pod is deleted immediately. A ready old pod is deleted
// only if all pods on these other nodes are ready (v1.8, pkg/controller/daemonset, daemonset_update.go).
func (m *model) moveOnNodes(ctx context.Context, s *set) error {
	nodes, err := m.placed(ctx, s)
	if err != nil {
		return err
	}
	s.replicas = len(nodes)
	for _, n := range nodes {
		if n.Pod == nil {
			return m.create(ctx, s, s.update, n.name)
		}
	}
	slices.SortStableFunc(nodes, func(a, b onNode) int { return a.old - b.old })
	going := nodes[:len(nodes)-min(s.keep, len(nodes))]
	down := slices.ContainsFunc(going, func(n onNode) bool { return isDown(*n.Pod) })
	for _, n := range going {
		if n.old == 1 && (isDown(*n.Pod) || !down) {
			return m.kube.CoreV1().Pods(m.namespace).Delete(ctx, n.Name, metav1.DeleteOptions{})
		}
	}
	return nil
}

// onNodes returns the fields of a DaemonSet's status that model.of does not describe.
func (s *set) onNodes(ready int64) map[string]any {
	return map[string]any{
		"status.desiredNumberScheduled": int64(s.replicas), "status.numberMisscheduled": int64(0), "status.numberReady": ready,
	}
}
