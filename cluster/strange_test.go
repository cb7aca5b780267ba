package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDeletedBeforeItsAnswer checks an object that is deleted right after its creation. The watch shows the deletion
// before the client gets the response to the creation. The next apply must create the object again.
func TestDeletedBeforeItsAnswer(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	secrets := w.cluster.Kube.CoreV1().Secrets(w.ns)
	var deletions atomic.Int32
	config := rest.CopyConfig(w.cluster.Config)
	config.Wrap(func(to http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			answer, err := to.RoundTrip(r)
			made := r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/secrets/flash") && r.URL.Query().Get("dryRun") == ""
			if err != nil || !made || answer.StatusCode >= 300 || !deletions.CompareAndSwap(0, 1) {
				return answer, err
			}
			events, err := secrets.Watch(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			defer events.Stop()
			if err := secrets.Delete(ctx, "flash", metav1.DeleteOptions{}); err != nil {
				return nil, err
			}
			for e := range events.ResultChan() {
				if e.Type == watch.Deleted {
					break
				}
			}
			// The client's own watch gets the event of the deletion too, but the test cannot see when.
			time.Sleep(500 * time.Millisecond)
			return answer, nil
		})
	})
	w.connect(config)
	first := coreManifest("Secret", "first", "")
	w.apply("shop", first) // starts the watch of Secrets
	both := documents(first, coreManifest("Secret", "flash", ""))
	w.apply("shop", both)
	if deletions.Load() != 1 {
		t.Fatal("it was not deleted")
	}
	w.until("it is made again", func() (bool, string) {
		result := w.apply("shop", both)
		_, err := secrets.Get(ctx, "flash", metav1.GetOptions{})
		return err == nil, fmt.Sprintf("%+v", result)
	})
}

// TestReplicasThatAreNoNumber checks that objects of a custom kind are applied even if spec.replicas is no number or changes its type.
func TestReplicasThatAreNoNumber(t *testing.T) {
	w := newWorld(t)
	group := w.ns + ".example.com"
	t.Cleanup(func() { _ = w.deleteDefinition("pools." + group) })
	pool := func(replicas string) string {
		return documents(definition(group, "v1", "Pool", "pools", "{type: object, properties: {spec: "+anyContent+"}}"),
			"apiVersion: "+group+"/v1\nkind: Pool\nmetadata: {name: p, namespace: NS}\nspec: {replicas: "+replicas+"}")
	}
	if got := w.apply("shop", pool("{min: 1, max: 2}")); len(got.Written) != 2 {
		t.Fatalf("created %v", got.Written)
	}
	for _, replicas := range []string{"{min: 1, max: 3}", "[1, 2]", "many", "2"} {
		if got := w.apply("shop", pool(replicas)); len(got.Written) != 1 {
			t.Errorf("replicas %s: configured %v, want the pool", replicas, got.Written)
		}
		w.wantWrites(0, "the second apply", func() { w.apply("shop", pool(replicas)) })
	}
}
