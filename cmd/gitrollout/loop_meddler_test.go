package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestHealthyIsWithdrawn checks that an app is shown as Degraded while gitrollout cannot correct its Deployment. Either another writer
// repeatedly changes the image or the replicas, or the API server refuses the correction.
func TestHealthyIsWithdrawn(t *testing.T) {
	t.Parallel()
	set := func(ctx context.Context, w *loopWorld) error {
		image := `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"` + w.app + `:mallory"}]}}}}`
		return errorOf(w.kube.Kube.AppsV1().Deployments(w.ns).Patch(ctx, w.app, types.StrategicMergePatchType, []byte(image),
			metav1.PatchOptions{FieldManager: "mallory"}))
	}
	for name, tc := range map[string]struct {
		meddle func(*loopWorld) (end func())
		why    string
	}{
		"again and again": {func(w *loopWorld) func() {
			return repeatedly(w.Context(), 20*time.Millisecond, func(ctx context.Context) { _ = set(ctx, w) })
		}, `is changed by mallory in spec.template.spec.containers[{"name":"app"}].image again and again`},
		"an autoscaler": {func(w *loopWorld) func() {
			var writes atomic.Int32
			end := repeatedly(w.Context(), 15*time.Second, func(ctx context.Context) {
				writes.Add(1)
				_, _ = w.kube.Kube.AppsV1().Deployments(w.ns).Patch(ctx, w.app, types.MergePatchType, []byte(`{"spec":{"replicas":3}}`),
					metav1.PatchOptions{FieldManager: "mallory"}, "scale")
			})
			return func() {
				if n := writes.Load(); n > 3 {
					t.Errorf("it is on record after %d writes, want 3 at most", n)
				}
				end()
			}
		}, "is changed by mallory in spec.replicas again and again"},
		"refused": {func(w *loopWorld) func() {
			w.api.refuse("/deployments/" + w.app + "$")
			must(t, set(w.Context(), w))
			return func() { w.api.refuse() }
		}, "the test says no"},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newHealthyWorld(t, version("v1", halfThenGate))
			end := sync.OnceFunc(tc.meddle(w))
			t.Cleanup(end)
			s := p.await("it is on record", func(s rollout.State) bool { return s.Unhealthy != "" })
			w.wantText(s.Unhealthy, "Deployment "+w.ns+"/"+w.app, tc.why)
			var shown status.App
			must(t, json.Unmarshal([]byte(w.command(exitOK, "get", w.app, "-o", "json")), &shown))
			if shown.Phase != rollout.Degraded || !strings.Contains(shown.Reason, tc.why) {
				t.Errorf("get shows %s: %s", shown.Phase, shown.Reason)
			}
			end()
			p.await("well again", func(s rollout.State) bool { return s.Shown() == rollout.Healthy })
			w.wantImage("v1")
		})
	}
}

// repeatedly calls do() in a goroutine, immediately and then at each interval, until end is called.
func repeatedly(ctx context.Context, every time.Duration, do func(context.Context)) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ticks := time.NewTicker(every); ctx.Err() == nil; {
			do(ctx)
			select {
			case <-ticks.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() { stop(); <-ended }
}
