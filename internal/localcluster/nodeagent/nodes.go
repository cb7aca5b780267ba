package nodeagent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// registerNodes creates the configured nodes and makes them Ready. Nodes of an earlier run keep their labels, taints
// and cordons. All nodes report the log server's port as their kubelet's port.
func registerNodes(ctx context.Context, client kubernetes.Interface, options Options, logs int) error {
	for n := range options.Nodes {
		node := newNode(n, options.KubeletVersion)
		created, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err == nil {
			// An admission plugin taints every new node as not ready. The node lifecycle controller, which removes the
			// taint, does not run.
			created.Spec.Taints = nil
			if _, err := client.CoreV1().Nodes().Update(ctx, created, metav1.UpdateOptions{}); err != nil {
				return fmt.Errorf("untaint node %s: %w", node.Name, err)
			}
		} else if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("register node %s: %w", node.Name, err)
		}
		if err := reachable(ctx, client, node.Name, logs); err != nil {
			return err
		}
	}
	return nil
}

// reachable writes the port of a node's kubelet to the node's status, because the port differs in each run.
func reachable(ctx context.Context, client kubernetes.Interface, name string, port int) error {
	patch := fmt.Appendf(nil, `{"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": %d}}}}`, port)
	_, err := client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("write the port of node %s's kubelet: %w", name, err)
	}
	return nil
}

func newNode(n int, kubeletVersion string) *corev1.Node {
	name := fmt.Sprintf("node-%d", n+1)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("5000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:         name,
			corev1.LabelOSStable:         "linux",
			corev1.LabelArchStable:       "amd64",
			corev1.LabelTopologyRegion:   "local",
			corev1.LabelTopologyZone:     fmt.Sprintf("local-%c", 'a'+rune(n%3)),
			"node.kubernetes.io/purpose": "simulated",
		}},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeIP(n)},
				{Type: corev1.NodeExternalIP, Address: "127.0.0.1"}, // the kubelet's address
				{Type: corev1.NodeHostName, Address: name},
			},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				Message: "the node agent is ready", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			}},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux", Architecture: "amd64", OSImage: "simulated",
				KubeletVersion: kubeletVersion, ContainerRuntimeVersion: "localcluster://1",
			},
		},
	}
}
