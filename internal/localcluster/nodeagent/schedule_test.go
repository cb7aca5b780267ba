package nodeagent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestRefusal(t *testing.T) {
	cordoned := func(_ *corev1.PodSpec, n *corev1.Node) { n.Spec.Unschedulable = true }
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec, *corev1.Node)
		want   string
	}{
		"plain pod":     {func(*corev1.PodSpec, *corev1.Node) {}, ""},
		"cordoned node": {cordoned, "node(s) were unschedulable"},
		"cordoned node, tolerated": {func(p *corev1.PodSpec, n *corev1.Node) {
			cordoned(p, n)
			p.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
		}, ""},
		"node selector": {func(p *corev1.PodSpec, _ *corev1.Node) {
			p.NodeSelector = map[string]string{corev1.LabelHostname: "elsewhere"}
		}, "node(s) didn't match Pod's node affinity/selector"},
		"taint": {func(_ *corev1.PodSpec, n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
		}, "node(s) had untolerated taint {gpu: yes}"},
		"request above the node": {func(p *corev1.PodSpec, _ *corev1.Node) {
			requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
			p.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}
		}, "Insufficient cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			pod, node := &corev1.Pod{}, newNode(0, "v1.36.3")
			test.change(&pod.Spec, node)
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
