package traffic

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/rollout"
)

func parsed(t *testing.T, kind string, config any) []rollout.Router {
	t.Helper()
	r, err := Parse(kind, config, nil)
	must(t, err)
	return []rollout.Router{r}
}

// TestTwoRolloutsAtOnePlace applies a case's route twice, the second time for another Rollout.
func TestTwoRolloutsAtOnePlace(t *testing.T) {
	for _, c := range []struct{ kind, file, place string }{
		{"istio", "subsets", "networking.istio.io/DestinationRule/shop/shop: spec.subsets[1]"},
		{"istio", "tls-tcp", "networking.istio.io/VirtualService/edge/shop: spec.tls[0]"},
		{"smi", "weight", "core/Service/shop/shop: TrafficSplit"},
		{"smi", "in-git", "core/Service/shop/shop-root: TrafficSplit"},
		{"ambassador", "weight", "getambassador.io/Mapping/shop/shop: spec.service"},
		{"apisix", "weight", "apisix.apache.org/ApisixRoute/shop/shop: spec.http[1]"},
		{"object", "contour", "projectcontour.io/HTTPProxy/shop/shop: spec.routes[1].services[1].weight"},
	} {
		t.Run(c.kind+"/"+c.file, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join("testdata", c.kind, c.file+".txtar"))
			must(t, err)
			var config any
			section(t, archive, "config.yaml", &config)
			var route Route
			section(t, archive, "route.yaml", &route)
			routers := parsed(t, c.kind, config)
			objects := NewObjects(objectsOf(t, archive, "before.yaml"))
			must(t, Overlay(objects, routers, route))
			route.Name = "store"
			err = routers[0].Config.(editor).overlay(objects, route)
			if err == nil || !strings.HasPrefix(err.Error(), c.place+": is moved by two Rollouts") {
				t.Errorf("got %v, want %s to be refused", err, c.place)
			}
		})
	}
}
