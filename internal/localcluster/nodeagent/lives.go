package nodeagent

import (
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/internal/localcluster/podsim"
)

// life has a pod's data that the API lacks, such as times finer than a second.
type life struct {
	podsim.Life
	uid      types.UID
	node     string
	stopping time.Time // when the deletion was first seen
	written  string    // resource version of the agent's last write
}

// lives has the life of every pod, from its binding to its deletion.
type lives struct {
	mu        sync.Mutex
	byPod     map[types.NamespacedName]*life
	onNode    map[string]int
	addresses *addressPool
}

func newLives() *lives {
	return &lives{
		byPod:     make(map[types.NamespacedName]*life),
		onNode:    make(map[string]int),
		addresses: newAddressPool(),
	}
}

// reserve returns the node with the fewest pods, and immediately counts the pod on this node. Pods that are
// bound at the same time are therefore spread over the nodes.
func (l *lives) reserve(pod *corev1.Pod, nodes []string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	best := nodes[0]
	for _, node := range nodes[1:] {
		if l.onNode[node] < l.onNode[best] || l.onNode[node] == l.onNode[best] && strings.Compare(node, best) < 0 {
			best = node
		}
	}
	l.settle(pod, best)
	return best
}

// settle records the pod's node. The caller must hold the lock.
func (l *lives) settle(pod *corev1.Pod, node string) *life {
	key := keyOf(pod)
	known := l.byPod[key]
	if known != nil && known.uid != pod.UID {
		l.forget(key) // another pod with the same name
		known = nil
	}
	if known == nil {
		known = &life{uid: pod.UID}
		l.byPod[key] = known
	}
	if known.node != node {
		l.leave(known)
		known.node = node
		l.onNode[node]++
	}
	return known
}

// begin returns the life of a bound pod. The first call for a pod records its start time, and gives the pod an address.
// A pod from an earlier run keeps its start time and address.
func (l *lives) begin(pod *corev1.Pod, now time.Time) (life, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.settle(pod, pod.Spec.NodeName)
	if known.PodIP == "" {
		known.Start, known.PodIP = now, pod.Status.PodIP
		if pod.Status.StartTime != nil {
			known.Start = pod.Status.StartTime.Time
		}
		if known.PodIP == "" {
			ip, err := l.addresses.take()
			if err != nil {
				return life{}, fmt.Errorf("address for pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
			known.PodIP = ip
		}
		l.addresses.keep(known.PodIP)
	}
	if pod.DeletionTimestamp != nil && known.stopping.IsZero() {
		known.stopping, known.Stopping = now, true
	}
	return *known, nil
}

// wrote records the resource version of the agent's last write.
func (l *lives) wrote(pod *corev1.Pod, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.byPod[keyOf(pod)]; known != nil && known.uid == pod.UID {
		known.written = version
	}
}

// lastWrite returns the resource version that wrote has recorded for this pod's UID, or "".
func (l *lives) lastWrite(pod *corev1.Pod) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.byPod[keyOf(pod)]; known != nil && known.uid == pod.UID {
		return known.written
	}
	return ""
}

// end removes a deleted pod.
func (l *lives) end(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(key)
}

func (l *lives) forget(key types.NamespacedName) {
	known := l.byPod[key]
	if known == nil {
		return
	}
	l.leave(known)
	l.addresses.giveBack(known.PodIP)
	delete(l.byPod, key)
}

func (l *lives) leave(known *life) {
	if known.node == "" {
		return
	}
	if l.onNode[known.node]--; l.onNode[known.node] == 0 {
		delete(l.onNode, known.node)
	}
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
