package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"gitrollout.dev/gitrollout/rollout"
)

// keptLong has strategies that keep the old version's pods for an hour, longer than any test runs.
var keptLong = map[string]string{
	"blue-green": strings.Replace(blueGreen, "scaleDownDelaySeconds: 2", "scaleDownDelaySeconds: 3600", 1),
	"routed canary": canary("stableService: shop\ncanaryService: shop-preview\nscaleDownDelaySeconds: 3600\n"+
		"trafficRouting: {nginx: {stableIngress: shop}}", "setWeight: 50", "pause: {}"),
}

// shopIngress has the file with the Ingress of a routed app.
var shopIngress = map[string]string{"ingress.yaml": `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
spec:
  ingressClassName: nginx
  rules:
  - host: shop.example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}
`}

// watchUsers starts to record which versions have ready pods behind a Service. The returned function stops the recording, and returns the
// versions.
func (w *world) watchUsers(service string) (stop func() []string) {
	w.t.Helper()
	events, err := w.cluster.Kube.DiscoveryV1().EndpointSlices(w.ns).Watch(context.Background(),
		metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	must(w.t, err)
	seen, now := map[string]bool{}, map[string]discoveryv1.EndpointSlice{}
	var stopped atomic.Bool
	var looking sync.WaitGroup
	looking.Go(func() {
		for e := range events.ResultChan() { // the existing objects come first
			slice, is := e.Object.(*discoveryv1.EndpointSlice)
			if !is {
				if !stopped.Load() { // after the stop the watch reports a closed connection
					w.t.Errorf("the watch of the endpoints of %s says %v", service, e.Object)
				}
				return
			}
			if now[slice.Name] = *slice; e.Type == watch.Deleted {
				delete(now, slice.Name)
			}
			for version := range w.versionsOf(readyPods(slices.Collect(maps.Values(now)))) {
				seen[version] = true
			}
		}
	})
	return func() []string {
		stopped.Store(true)
		events.Stop()
		looking.Wait()
		return slices.Sorted(maps.Keys(seen))
	}
}

// TestOnePodThatNeverServes promotes v2 to all five pods, but one pod never becomes ready. The fix v3 is then released
// with v2 as the stable version, because v2 already serves all requests. No pod of v1 is started again.
func TestOnePodThatNeverServes(t *testing.T) {
	t.Parallel()
	app := newShop(5, "", "setWeight: 20", "pause: {}")
	w := running(t, app.files())
	second := app.at("v2")
	second.pod = "      readinessGates: [{conditionType: example.com/lucky}]\n"
	w.push("v2", second.files())
	w.openGates("v2", 4)
	w.awaitPause(1)
	w.promote()
	w.awaitPods("4 of v2 are ready and v1 is gone", func(s sample) bool {
		return s.ready["v2"] == 4 && s.all["v2"] == 5 && s.all["v1"] == 0
	})
	mark, before := w.pods.mark(), w.pods.count("v1")
	w.release("v3", app.at("v3").files())
	w.pods.awaitReady(t, map[string]int{"v3": 5})
	w.pods.wantStarted(t, map[string]int{"v1": before}) // the release of v3 starts no pod of v1
	w.pods.wantReady(t, mark, 4)
}

// openGates sets the readiness gate of the first n pods of a version, as a load balancer's controller does.
func (w *world) openGates(version string, n int) {
	done, opened := make(chan struct{}), map[string]bool{}
	var opening sync.WaitGroup
	opening.Go(func() {
		for {
			w.pods.mu.Lock()
			names := slices.Clone(w.pods.started[version])
			w.pods.mu.Unlock()
			for _, started := range names[:min(n, len(names))] {
				name, _, _ := strings.Cut(started, " ")
				opened[name] = opened[name] || w.openGate(name)
			}
			select {
			case <-done:
				return
			case <-time.After(glance):
			}
		}
	})
	w.t.Cleanup(func() { close(done); opening.Wait() })
}

// openGate sets the condition of a pod's readiness gate, and reports whether the write succeeded.
func (w *world) openGate(pod string) bool {
	patch, err := json.Marshal(map[string]any{"status": corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: "example.com/lucky", Status: corev1.ConditionTrue}}}})
	if err != nil {
		return false
	}
	_, err = w.cluster.Kube.CoreV1().Pods(w.ns).Patch(context.Background(), pod,
		types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err == nil
}

// awaitPods waits until the pods satisfy a condition.
func (w *world) awaitPods(what string, ok func(sample) bool) {
	w.t.Helper()
	eventually(w.t, what, func() bool {
		w.pods.mark() // the watch may lag behind the cluster, and mark waits for it
		return ok(w.pods.last())
	}, func() any { return w.pods.last() })
}

// TestFixAfterAnAbort releases a fix while the aborted version's pods are kept.
func TestFixAfterAnAbort(t *testing.T) {
	t.Parallel()
	for name, strategy := range keptAborted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := shop{version: "v1", replicas: "replicas: 4", strategy: strategy}
			w := running(t, app.files())
			w.stage("v2", app.at("v2").files())
			w.ran("abort", w.app)
			w.await("rolling back", func(s rollout.State) bool {
				return s.Phase == rollout.Aborting || s.Phase == rollout.Degraded
			})
			commit := w.stage("v3", app.at("v3").files())
			w.promote()
			w.await(fmt.Sprintf("%s serves all", commit), func(rollout.State) bool { return w.pods.last().ready["v3"] == 4 })
		})
	}
}

// keptAborted has strategies that keep the pods of an aborted version for an hour, longer than any test runs.
var keptAborted = map[string]string{
	"blue-green": strings.Replace(blueGreen, "abortScaleDownDelaySeconds: 1", "abortScaleDownDelaySeconds: 3600", 1),
	"surge":      canary("scaling: surge\nabortScaleDownDelaySeconds: 3600", "setWeight: 50", "pause: {}"),
}
