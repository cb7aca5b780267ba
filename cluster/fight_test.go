package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/cluster"
)

// TestTwoWritersOfOneField runs a controller that undoes each write at once, as a second GitOps tool would. Without a
// wait, both would write hundreds of times per second.
func TestTwoWritersOfOneField(t *testing.T) {
	t.Parallel()
	const both = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: contended, namespace: NS}\ndata: {a: ours}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: peaceful, namespace: NS}\ndata: {a: VALUE}\n"
	w := newWorld(t)
	maps := w.cluster.Kube.CoreV1().ConfigMaps(w.ns)
	first := strings.Replace(both, "VALUE", "one", 1)
	w.apply("shop", first)
	other, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for other.Err() == nil {
			_, _ = maps.Patch(other, "contended", types.MergePatchType, []byte(`{"data":{"a":"theirs"}}`),
				metav1.PatchOptions{FieldManager: "other-controller"})
			time.Sleep(5 * time.Millisecond)
		}
	}()
	before, told := w.Stats().Writes, error(nil)
	for began := time.Now(); time.Since(began) < 4*time.Second; time.Sleep(5 * time.Millisecond) {
		if _, err := w.Apply(t.Context(), "shop", w.objects(first)); err != nil {
			told = err
		}
	}
	if writes := w.Stats().Writes - before; writes < 5 || writes > 9 {
		t.Errorf("%d writes in 4 s against another writer, want 5 at once and then one after 1 s and 2 s", writes)
	}
	var refused *cluster.Error
	if !errors.As(told, &refused) || refused.Reason != cluster.Overwritten ||
		!strings.Contains(told.Error(), "other-controller in data.a again and again") {
		t.Errorf("the error is %v", told)
	}

	// Other objects are applied, and a change in Git does not wait.
	_, _ = w.Apply(t.Context(), "shop", w.objects(strings.Replace(both, "VALUE", "two", 1)))
	if got, err := maps.Get(t.Context(), "peaceful", metav1.GetOptions{}); err != nil || got.Data["a"] != "two" {
		t.Errorf("the other object is %v (%v)", got, err)
	}
	stop()
	<-ended
	newer := strings.NewReplacer("ours", "newer", "VALUE", "two").Replace(both)
	w.apply("shop", newer)
	if got, err := maps.Get(t.Context(), "contended", metav1.GetOptions{}); err != nil || got.Data["a"] != "newer" {
		t.Errorf("after a change in Git the object is %v (%v)", got, err)
	}
}
