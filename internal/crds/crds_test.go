package crds_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/crds"
	"gitrollout.dev/gitrollout/internal/testcluster"
)

// TestKindsAreServed applies the routers' sets twice, like two tests that share a cluster, and checks that the kinds are served.
func TestKindsAreServed(t *testing.T) {
	c := testcluster.Shared(t)
	for range 2 {
		crds.Apply(t, c.Config, crds.GatewayAPI, crds.Istio, crds.Traefik)
	}
	for group, kinds := range map[string][]string{
		"gateway.networking.k8s.io/v1":       {"GatewayClass", "Gateway", "HTTPRoute", "GRPCRoute"},
		"gateway.networking.k8s.io/v1alpha2": {"TCPRoute"},
		"networking.istio.io/v1":             {"VirtualService", "DestinationRule"},
		"traefik.io/v1alpha1":                {"IngressRoute", "TraefikService", "Middleware"},
	} {
		served, err := c.Kube.Discovery().ServerResourcesForGroupVersion(group)
		must(t, err)
		for _, kind := range kinds {
			if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind }) {
				t.Errorf("%s has no kind %s", group, kind)
			}
		}
	}
}
