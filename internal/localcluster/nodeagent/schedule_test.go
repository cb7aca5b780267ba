package nodeagent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestRefusal(t *testing.T) {
	tests := []struct {
		name string
		pod  func(*corev1.PodSpec)
		node func(*corev1.Node)
		want string
	}{
		{name: "plain pod"},
		{
			name: "cordoned node",
			node: func(n *corev1.Node) { n.Spec.Unschedulable = true },
			want: "node(s) were unschedulable",
		},
		{
			name: "cordoned node, tolerated",
			pod: func(p *corev1.PodSpec) {
				p.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
			},
			node: func(n *corev1.Node) { n.Spec.Unschedulable = true },
		},
		{
			name: "node selector",
			pod:  func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{corev1.LabelHostname: "elsewhere"} },
			want: "node(s) didn't match Pod's node affinity/selector",
		},
		{
			name: "taint",
			node: func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
			},
			want: "node(s) had untolerated taint {gpu: yes}",
		},
		{
			name: "request above the node",
			pod: func(p *corev1.PodSpec) {
				p.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")},
				}}}
			},
			want: "Insufficient cpu",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod, node := &corev1.Pod{}, newNode(0, "v1.36.3")
			if test.pod != nil {
				test.pod(&pod.Spec)
			}
			if test.node != nil {
				test.node(node)
			}
			if got := refusal(pod, node); got != test.want {
				t.Errorf("refusal = %q, want %q", got, test.want)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	got := explain(3, map[string]int{"node(s) were unschedulable": 1, "Insufficient cpu": 2})
	if want := "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were unschedulable."; got != want {
		t.Errorf("explain = %q, want %q", got, want)
	}
}
