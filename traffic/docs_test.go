package traffic_test

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/docpage"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

const docsPage = "../docs/traffic.md"

// TestDocsTable checks that the docs have the same table of routers as the code.
func TestDocsTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| router | field | since |")
	features := []string{"weight", "maxTrafficWeight", "header", "cookie", "query", "path", "method", "source", "mirror", "sticky",
		"requestHeaderModifier", "experiment", "verify"}
	for _, f := range features {
		b.WriteString(" " + f + " |")
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(features)) + "\n")
	for _, kind := range traffic.Kinds() {
		title, since, has, _ := traffic.Row(kind)
		b.WriteString("| " + title + " | `" + kind + "` | " + since + " |")
		for _, f := range features {
			cell := has[f]
			switch cell {
			case "":
				cell = "–"
			case "exact, prefix, regex":
				cell = "all"
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	docpage.Table(t, docsPage, "routers", b.String(), *update)
}

// TestDocsExample checks that the docs' example of a custom router works: the overlay sets the weights in the example's object.
func TestDocsExample(t *testing.T) {
	raw, err := os.ReadFile(docsPage)
	must(t, err)
	_, rest, _ := strings.Cut(string(raw), "### A router of your own")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatalf("%s has no example of a router of one's own", docsPage)
	}
	var block struct {
		TrafficRouting struct {
			Object any `json:"object"`
		} `json:"trafficRouting"`
	}
	if err := yaml.UnmarshalStrict([]byte(example), &block); err != nil {
		t.Fatalf("%v in\n%s", err, example)
	}
	proxy := objectsIn(t, "{apiVersion: projectcontour.io/v1, kind: HTTPProxy, metadata: {name: shop, namespace: shop}, spec: {routes: "+
		"[{name: main, services: [{name: shop, port: 80, weight: 100}, {name: shop-canary, port: 80, weight: 0}]}]}}")
	objects, err := lay(t, "object", block.TrafficRouting.Object,
		traffic.Route{Name: "shop", Namespace: "shop", Stable: "shop", Canary: "shop-canary", Weight: 5, Max: 100, Active: true}, proxy)
	must(t, err)
	want := read[any](t, "[{name: shop, port: 80, weight: 95}, {name: shop-canary, port: 80, weight: 5}]")
	got := traffic.Mapping(traffic.List(objects.List()[0].Map("spec")["routes"])[0])["services"]
	compare.CheckNamed(t, "services", want, got)
	parsed, err := traffic.Parse("object", block.TrafficRouting.Object, nil)
	must(t, err)
	for status, taken := range map[string]bool{"valid": true, "invalid": false} {
		seen := map[rollout.Ref]rollout.ObservedRoute{proxy[0].Ref(): {Generation: 1, Status: map[string]any{"currentStatus": status}}}
		if v := traffic.Verify([]rollout.Router{parsed}, "shop", seen); v.Taken != taken {
			t.Errorf("status %s: %+v", status, v)
		}
	}
}
