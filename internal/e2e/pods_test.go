package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/testcluster"
)

// podWatch records the namespace's pods after every pod event, so that tests notice even a short lack of ready pods.
type podWatch struct {
	list func() []corev1.Pod // the current pods

	mu      sync.Mutex
	live    map[string]*corev1.Pod
	started map[string][]string // names and UIDs of all pods ever seen, by version
	samples []sample
	begin   time.Time
}

// sample is the number of pods of each version (image tag) after one event.
type sample struct {
	at    time.Duration
	ready map[string]int
	all   map[string]int    // not terminating
	pods  map[string]string // versions of the pods, by name
}

func watchPods(t *testing.T, c *testcluster.Cluster, ns string) *podWatch {
	t.Helper()
	p := &podWatch{live: map[string]*corev1.Pod{}, started: map[string][]string{}, begin: time.Now()}
	p.list = func() []corev1.Pod {
		list, err := c.Kube.CoreV1().Pods(ns).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			t.Error(err)
			return nil
		}
		return list.Items
	}
	ctx, cancel := context.WithCancel(context.Background())
	list := &cache.ListWatch{
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			return c.Kube.CoreV1().Pods(ns).Watch(ctx, o)
		},
	}
	first, err := c.Kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	must(t, err)
	w, err := watchtools.NewRetryWatcher(first.ResourceVersion, list)
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			p.see(event)
		}
	}()
	t.Cleanup(func() { cancel(); w.Stop(); <-done })
	return p
}

func (p *podWatch) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if event.Type == watch.Deleted {
		delete(p.live, pod.Name)
	} else {
		p.live[pod.Name] = pod
	}
	version := versionOf(pod)
	if name := pod.Name + " " + string(pod.UID); !slices.Contains(p.started[version], name) {
		p.started[version] = append(p.started[version], name)
	}
	s := sample{at: time.Since(p.begin), ready: map[string]int{}, all: map[string]int{}, pods: map[string]string{}}
	for _, pod := range p.live {
		if pod.DeletionTimestamp != nil {
			continue
		}
		s.all[versionOf(pod)]++
		s.pods[pod.Name] = versionOf(pod)
		if isReady(pod) {
			s.ready[versionOf(pod)]++
		}
	}
	p.samples = append(p.samples, s)
}

func versionOf(pod *corev1.Pod) string {
	_, tag, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
	return tag
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func total(m map[string]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}

// mark returns the current position in the record, where later checks start. It first waits for the watch, which may be
// behind the cluster.
func (p *podWatch) mark() int {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if now := p.list(); !slices.ContainsFunc(now, p.isBehind) {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.samples)
}

// isBehind reports whether the watch has not yet seen the given state of a pod.
func (p *podWatch) isBehind(pod corev1.Pod) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.live[pod.Name]
	return seen == nil || seen.ResourceVersion != pod.ResourceVersion
}

func (p *podWatch) since(mark int) []sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.samples[min(mark, len(p.samples)):])
}

// count returns how many pods of a version have ever started.
func (p *podWatch) count(version string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.started[version])
}

// first returns the time when the first pod of a version was seen.
func (p *podWatch) first(version string) time.Time {
	for _, s := range p.since(0) {
		if s.all[version] > 0 {
			return p.begin.Add(s.at)
		}
	}
	return time.Time{}
}

// last returns the newest sample. Before the first event, the sample is empty.
func (p *podWatch) last() (s sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.samples); n > 0 {
		s = p.samples[n-1]
	}
	return s
}

// lowest returns the smallest number of ready pods since a mark, including the last sample before the mark.
func (p *podWatch) lowest(mark int) int {
	low := -1
	for _, s := range p.since(max(0, mark-1)) {
		if n := total(s.ready); low < 0 || n < low {
			low = n
		}
	}
	return low
}

// wantStarted checks the numbers of pods that were ever started, by version.
func (p *podWatch) wantStarted(t *testing.T, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for version := range want {
		got[version] = p.count(version)
	}
	compare.CheckNamed(t, "pods of each version that were started in all", want, got)
}

// wantReady checks that at least the given number of pods was ready at all times since a mark.
func (p *podWatch) wantReady(t *testing.T, mark, least int) {
	t.Helper()
	if low := p.lowest(mark); low < least {
		t.Errorf("ready pods fell to %d, want at least %d", low, least)
	}
}

// awaitReady waits until exactly the given numbers of pods exist and all are ready.
func (p *podWatch) awaitReady(t *testing.T, want map[string]int) {
	t.Helper()
	maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
	var last sample
	is := func() bool {
		last = p.last()
		return maps.Equal(last.ready, want) && maps.Equal(last.all, want)
	}
	eventually(t, fmt.Sprint("exactly the ready pods ", want), func() bool {
		if !is() {
			return false
		}
		p.mark() // mark waits for the watch, which may lag behind the cluster
		return is()
	}, func() any { return fmt.Sprintf("%v of %v", last.ready, last.all) })
}

// stays checks that the numbers of pods do not change for a duration. It ignores the deletion of terminating pods.
func (p *podWatch) stays(t *testing.T, d time.Duration) {
	t.Helper()
	before := p.mark()
	was := p.since(before - 1)[0]
	time.Sleep(d)
	for _, s := range p.since(before) {
		if !maps.Equal(s.all, was.all) || !maps.Equal(s.ready, was.ready) {
			t.Fatalf("pods went from ready %v of %v to ready %v of %v while nothing should move", was.ready, was.all, s.ready, s.all)
		}
	}
}

func (p *podWatch) history() string {
	var b strings.Builder
	last := ""
	for _, s := range p.since(0) {
		line := fmt.Sprintf("ready %v of %v", s.ready, s.all)
		if line != last {
			fmt.Fprintf(&b, "%8.2fs %s\n", s.at.Seconds(), line)
		}
		last = line
	}
	return b.String()
}
