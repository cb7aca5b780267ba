package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/cluster"
)

// TestTwoWritersOfOneField checks that repairs become rarer if another controller undoes each of them immediately.
// Without pauses, both programs would write hundreds of times per second.
func TestTwoWritersOfOneField(t *testing.T) {
	t.Parallel()
	both := documents(coreManifest("ConfigMap", "contended", "data: {a: ours}"), coreManifest("ConfigMap", "peaceful", "data: {a: VALUE}"))
	w := newWorld(t)
	maps := w.cluster.Kube.CoreV1().ConfigMaps(w.ns)
	first := strings.Replace(both, "VALUE", "one", 1)
	w.apply("shop", first)
	other, stop := context.WithCancel(t.Context())
	var writes sync.WaitGroup
	writes.Go(func() {
		for other.Err() == nil {
			_, _ = maps.Patch(other, "contended", types.MergePatchType, []byte(`{"data":{"a":"theirs"}}`),
				metav1.PatchOptions{FieldManager: "other-controller"})
			time.Sleep(5 * time.Millisecond)
		}
	})
	before, told := w.Stats().Writes, error(nil)
	w.until("a wait before the next write", func() (bool, string) {
		_, told = w.Apply(t.Context(), "shop", w.objects(first))
		return told != nil, fmt.Sprint(w.Stats().Writes - before)
	})
	wantRefusal(t, "Apply", told, cluster.Overwritten, "other-controller in data.a again and again")
	for began := time.Now(); time.Since(began) < 3*time.Second; time.Sleep(5 * time.Millisecond) {
		_, _ = w.Apply(t.Context(), "shop", w.objects(first))
	}
	if writes := w.Stats().Writes - before; writes < 5 || writes > 8 {
		t.Errorf("%d writes in 3 s after the refusal, want 5 at once and then one after 1 s and 2 s", writes)
	}

	// The app's other objects are still applied. If the contended object changes in Git, the change is applied immediately.
	_, _ = w.Apply(t.Context(), "shop", w.objects(strings.Replace(both, "VALUE", "two", 1)))
	wantContent := func(name, want string) {
		t.Helper()
		if got, err := maps.Get(t.Context(), name, metav1.GetOptions{}); err != nil || got.Data["a"] != want {
			t.Errorf("%s is %v (%v), want %s", name, got, err, want)
		}
	}
	wantContent("peaceful", "two")
	stop()
	writes.Wait()
	newer := strings.NewReplacer("ours", "newer", "VALUE", "two").Replace(both)
	w.apply("shop", newer)
	wantContent("contended", "newer")
}
