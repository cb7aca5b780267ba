package cluster_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
)

// TestObjectsOfAnotherClusterAreLeftAlone runs two clients with different cluster names on one API server. Prune must not delete the other
// cluster's objects, even if the two apps have the same name.
func TestObjectsOfAnotherClusterAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, err := cluster.New(w.cluster.Config, cluster.Options{Cluster: "other"})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); other.Wait() })
	must(t, other.Start(ctx))
	_, err = other.Apply(ctx, "shop", w.objects(serviceManifest("shop")))
	must(t, err)
	ref := w.ref("", "Service", "shop")
	must(t, w.WatchRoutes(ctx, []rollout.Ref{ref}))
	w.until("the Service being seen", func() (bool, string) { return w.changes.of("shop") > 0, "" })
	w.prune([]rollout.Ref{ref}, ref)
	w.service("shop") // the other cluster's Service still exists
}

// TestSerialOfAnotherApp checks that Observe returns a Deployment's serial only for the app that has applied the Deployment.
func TestSerialOfAnotherApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("first",
		strings.Replace(release("shop:v1", 1, "h1-one"), "annotations: {", "labels: {"+rollout.LabelSerial+`: "7"}, annotations: {`, 1))
	if first, second := w.observe("first", "shop").Serial, w.observe("second", "shop").Serial; first != 7 || second != 0 {
		t.Errorf("the app with the Deployment sees serial %d, want 7; another one %d, want 0", first, second)
	}
}

// TestEndpointsThatAreNotReady checks that Serves ignores endpoints that are not ready. Proxies send no requests to such endpoints.
func TestEndpointsThatAreNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("shop", release("shop:v1", 1, "h1-one"))
	one := w.complete("shop", "shop").Revisions[0]
	slices := w.cluster.Kube.DiscoveryV1().EndpointSlices(w.ns)
	endpoint := discoveryv1.Endpoint{
		Addresses: []string{"10.1.2.3"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: w.ns, Name: one.Members[0].Name},
	}
	slice, err := slices.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "shop-x", Labels: map[string]string{discoveryv1.LabelServiceName: "shop"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{endpoint},
	}, metav1.CreateOptions{})
	must(t, err)
	wantServes := func(what, version string, want bool) {
		t.Helper()
		if serves, err := w.Serves(t.Context(), w.ref("", "Service", "shop"), version); err != nil || serves != want {
			t.Errorf("%s: %v, %v", what, serves, err)
		}
	}
	wantServes("with an endpoint that is not ready", one.Pin.Value, false)
	slice.Endpoints[0].Conditions.Ready = new(true)
	_, err = slices.Update(t.Context(), slice, metav1.UpdateOptions{})
	must(t, err)
	wantServes("with one that is ready", one.Pin.Value, true)
	wantServes("of another version", "another", false)
}
