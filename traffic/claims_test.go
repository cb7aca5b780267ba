package traffic_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// TestTwoRolloutsAtOnePlace checks that two Rollouts' overlays cannot change one place in an object.
func TestTwoRolloutsAtOnePlace(t *testing.T) {
	for name, place := range map[string]string{
		"istio/subsets":     "networking.istio.io/DestinationRule/shop/shop: spec.subsets[1]",
		"istio/tls-tcp":     "networking.istio.io/VirtualService/edge/shop: spec.tls[0]",
		"smi/weight":        "core/Service/shop/shop: TrafficSplit",
		"smi/in-git":        "core/Service/shop/shop-root: TrafficSplit",
		"ambassador/weight": "getambassador.io/Mapping/shop/shop: spec.service",
		"apisix/weight":     "apisix.apache.org/ApisixRoute/shop/shop: spec.http[1]",
		"object/contour":    "projectcontour.io/HTTPProxy/shop/shop: spec.routes[1].services[1].weight",
	} {
		t.Run(name, func(t *testing.T) {
			e := readExample(t, name)
			router, err := traffic.Parse(e.kind, e.config, nil)
			must(t, err)
			objects := traffic.NewObjects(e.objects)
			must(t, traffic.Overlay(objects, []rollout.Router{router}, e.route))
			e.route.Name = "store"
			err = traffic.OverlayAlone(objects, router, e.route)
			if err == nil || !strings.HasPrefix(err.Error(), place+": is changed by two Rollouts") {
				t.Errorf("got %v, want %s to be refused", err, place)
			}
		})
	}
}
