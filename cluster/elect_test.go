package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
)

// TestNoChangeWithoutTheLease checks that a process cannot change objects after the loss of the Lease, even with a context that is not
// canceled. Otherwise, a suspended process could undo the changes of the next leader.
func TestNoChangeWithoutTheLease(t *testing.T) {
	w := newWorld(t)
	var away atomic.Bool
	config := rest.CopyConfig(w.cluster.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if away.Load() {
				return nil, errors.New("the API server is away")
			}
			return next.RoundTrip(r)
		})
	})
	election := cluster.Election{
		Namespace: w.ns, Name: "test", ID: "first", Duration: 3 * time.Second, Renew: 2 * time.Second, Retry: 500 * time.Millisecond,
		Leading: func() {}, Waiting: func(string) {},
	}
	shop := coreManifest("ConfigMap", "shop", "data: {a: A}")
	err := election.Lead(t.Context(), config, func(ctx context.Context) error {
		_, err := w.Apply(ctx, "shop", w.objects(shop))
		must(t, err)
		away.Store(true) // only the renewals fail
		<-ctx.Done()
		late := context.WithoutCancel(ctx)
		_, err = w.Apply(late, "shop", w.objects(strings.ReplaceAll(shop, "a: A", "a: B")))
		compare.CheckError(t, "a change", err, "the Lease is lost")
		_, err = w.SecretData(late, w.ns, "shop", "")
		compare.CheckError(t, "a read", err, "not found")
		return nil
	})
	compare.CheckError(t, "the end of the work", err, "the Lease is lost: another replica continues")
	live, err := w.cluster.Kube.CoreV1().ConfigMaps(w.ns).Get(t.Context(), "shop", metav1.GetOptions{})
	must(t, err)
	compare.CheckNamed(t, "data", map[string]string{"a": "A"}, live.Data)
}
