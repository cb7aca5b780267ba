package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestHealthyIsWithdrawn does not report Healthy while the live template differs from the stable one, even if all pods
// are ready and the annotations are unchanged. A foreign writer sets another image repeatedly, so that corrections back
// off, or the API server refuses the corrections.
func TestHealthyIsWithdrawn(t *testing.T) {
	image := func(w *loopWorld) []byte {
		return []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"` + w.app + `:mallory"}]}}}}`)
	}
	set := func(ctx context.Context, w *loopWorld) error {
		_, err := w.kube.Kube.AppsV1().Deployments(w.ns).Patch(ctx, w.app, types.StrategicMergePatchType, image(w),
			metav1.PatchOptions{FieldManager: "mallory"})
		return err
	}
	for name, tc := range map[string]struct {
		meddle func(*loopWorld) (end func())
		why    string
	}{
		"again and again": {func(w *loopWorld) func() {
			ctx, stop := context.WithCancel(w.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
					_ = set(ctx, w)
				}
			}()
			return func() { stop(); <-ended }
		}, `is changed by mallory in spec.template.spec.containers[{"name":"app"}].image again and again`},
		"an autoscaler": {func(w *loopWorld) func() {
			ctx, stop := context.WithCancel(w.Context())
			ended, began := make(chan struct{}), time.Now()
			go func() {
				defer close(ended)
				for every := time.NewTicker(15 * time.Second); ctx.Err() == nil; {
					_, _ = w.kube.Kube.AppsV1().Deployments(w.ns).Patch(ctx, w.app, types.MergePatchType, []byte(`{"spec":{"replicas":3}}`),
						metav1.PatchOptions{FieldManager: "mallory"}, "scale")
					select {
					case <-every.C:
					case <-ctx.Done():
					}
				}
			}()
			return func() {
				if took := time.Since(began); took > 30*time.Second {
					t.Errorf("it is on record after %s, want 30s at most", took)
				}
				stop()
				<-ended
			}
		}, "is changed by mallory in spec.replicas again and again"},
		"refused": {func(w *loopWorld) func() {
			w.api.refuse("/deployments/" + w.app + "$")
			if err := set(w.Context(), w); err != nil {
				t.Fatal(err)
			}
			return func() { w.api.refuse() }
		}, "the test says no"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			p := w.start()
			p.awaitHealthy(w.repo.Head())
			end := sync.OnceFunc(tc.meddle(w))
			t.Cleanup(end)
			s := p.await("it is on record", func(s rollout.State) bool { return s.Unhealthy != "" })
			if object := "Deployment " + w.ns + "/" + w.app; !strings.Contains(s.Unhealthy, object) || !strings.Contains(s.Unhealthy, tc.why) {
				t.Errorf("the reason is %s", s.Unhealthy)
			}
			var shown status.App
			if err := json.Unmarshal([]byte(w.command(exitOK, "get", w.app, "-o", "json")), &shown); err != nil {
				t.Fatal(err)
			}
			if shown.Phase != rollout.Degraded || !strings.Contains(shown.Reason, tc.why) {
				t.Errorf("get shows %s: %s", shown.Phase, shown.Reason)
			}
			end()
			p.await("well again", func(s rollout.State) bool { return s.Shown() == rollout.Healthy })
			if tag := w.image(); tag != "v1" {
				t.Errorf("well again with %s", tag)
			}
		})
	}
}
