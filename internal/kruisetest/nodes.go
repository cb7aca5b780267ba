package kruisetest

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// onNode is a node with the pod on it, nil for none.
type onNode struct {
	name string
	*corev1.Pod
	fresh bool
}

// placed are the nodes by their names, the last first: Kruise takes them so.
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
					at.Pod, at.fresh = &pods[j], i == 1
				}
			}
		}
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b onNode) int { return strings.Compare(b.name, a.name) })
	return all, nil
}

// moveOnNodes makes each pod that is missing of the template, or deletes one of those that the partition lets go: of the
// nodes without an old pod and then the last ones, as many as are not to stay. One that is down goes at once, and another
// one while none of those is (v1.8, pkg/controller/daemonset, daemonset_update.go).
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
	slices.SortStableFunc(nodes, func(a, b onNode) int {
		switch {
		case a.fresh == b.fresh:
			return 0
		case a.fresh:
			return -1
		default:
			return 1
		}
	})
	going := nodes[:len(nodes)-min(s.keep, len(nodes))]
	down := slices.ContainsFunc(going, func(n onNode) bool { return isDown(*n.Pod) })
	for _, n := range going {
		if !n.fresh && (isDown(*n.Pod) || !down) {
			return m.kube.CoreV1().Pods(m.namespace).Delete(ctx, n.Name, metav1.DeleteOptions{})
		}
	}
	return nil
}

// onNodes are the fields of the status that a DaemonSet has besides those of its description.
func (s *set) onNodes(ready int64) map[string]any {
	return map[string]any{
		"status.desiredNumberScheduled": int64(s.replicas), "status.numberMisscheduled": int64(0), "status.numberReady": ready,
	}
}
