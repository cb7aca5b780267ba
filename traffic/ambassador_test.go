package traffic

import (
	"strings"
	"testing"
)

func TestAmbassadorService(t *testing.T) {
	r := Route{Namespace: "store", Stable: "shop", Canary: "shop-canary"}
	for service, want := range map[string]string{
		"shop":          "shop-canary",
		"shop:80":       "shop-canary:80",
		"shop.store":    "shop-canary.store",
		"shop.store:80": "shop-canary.store:80",
		"http://shop":   "http://shop-canary",
		"https://shop.store.svc.cluster.local:8443": "https://shop-canary.store.svc.cluster.local:8443",
		"shop.other":        "",
		"shops":             "",
		"shop-canary.store": "shop-canary.store",
		"https://":          "",
		"":                  "",
	} {
		got, ok := ambassadorService(service, r, r.Canary)
		if got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", service, got, ok, want)
		}
	}
}

func TestSuffixed(t *testing.T) {
	for _, c := range []struct{ base, suffix, want string }{
		{"shop", "canary", "shop-canary"},
		{strings.Repeat("a", 246), "canary", strings.Repeat("a", 246) + "-canary"},
		{strings.Repeat("a", 253), "canary", strings.Repeat("a", 246) + "-canary"},
	} {
		if got := suffixed(c.base, c.suffix); got != c.want {
			t.Errorf("%s, %s: got %s", c.base, c.suffix, got)
		}
	}
}
