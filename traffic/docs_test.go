package traffic

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/docpage"
	"gitrollout.dev/gitrollout/rollout"
)

const docsPage = "../docs/traffic.md"

// TestDocsTable checks that the docs have the same table of routers as the code.
func TestDocsTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| router | field | since |")
	features := []feature{splits, anyTotal, byHeader, byCookie, byQuery, byPath, byMethod, bySource, mirrors, sticks, modifies, weighs,
		reports}
	for _, f := range features {
		b.WriteString(" " + string(f) + " |")
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(features)) + "\n")
	for _, r := range table {
		b.WriteString("| " + r.title + " | `" + r.kind + "` | " + r.since + " |")
		for _, f := range features {
			cell := r.features[f].String()
			switch cell {
			case "":
				cell = "–"
			case anyText.String():
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
		Route{Name: "shop", Namespace: "shop", Stable: "shop", Canary: "shop-canary", Weight: 5, Max: 100, Active: true}, proxy)
	must(t, err)
	want := read[any](t, "[{name: shop, port: 80, weight: 95}, {name: shop-canary, port: 80, weight: 5}]")
	got := mapping(list(objects.List()[0].Map("spec")["routes"])[0])["services"]
	compare.CheckNamed(t, "services", want, got)
	parsed, err := Parse("object", block.TrafficRouting.Object, nil)
	must(t, err)
	for status, taken := range map[string]bool{"valid": true, "invalid": false} {
		seen := map[rollout.Ref]rollout.ObservedRoute{proxy[0].Ref(): {Generation: 1, Status: map[string]any{"currentStatus": status}}}
		if v := Verify([]rollout.Router{parsed}, "shop", seen); v.Taken != taken {
			t.Errorf("status %s: %+v", status, v)
		}
	}
}
