package render

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

var (
	yamlBlock     = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	namedWorkload = regexp.MustCompile(`workloadRef: \{apiVersion: (\S+), kind: (\S+), name: (\S+)\}`)
)

// TestPagesOfWorkloads renders the examples of the pages about kinds of workloads, each with its workload and a
// router's objects. The steps must be the page's. A list of kinds is read as part of a configuration.
func TestPagesOfWorkloads(t *testing.T) {
	const head = "apiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {name: search}\nspec:\n" +
		"  workloadRef: {apiVersion: apps/v1, kind: StatefulSet, name: search}\n  strategy:\n"
	for page, want := range map[string][]string{
		"statefulsets.md": {"StatefulSet search: 3 steps", "StatefulSet search: 4 steps, routed"},
		"daemonsets.md":   {"DaemonSet agent: 3 steps"},
		"kruise-workloads.md": {
			"CloneSet shop: 3 steps", "kinds [example.com/v1 GameServerSet spec.updateStrategy.partition]",
		},
	} {
		t.Run(page, func(t *testing.T) {
			data, err := os.ReadFile("../docs/" + page)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range yamlBlock.FindAllStringSubmatch(string(data), -1) {
				switch text := m[1]; {
				case strings.HasPrefix(text, "workloads:"):
					got = append(got, kindsOf(t, text))
				case strings.HasPrefix(text, "    canary:"):
					got = append(got, stepsOf(t, head+text))
				default:
					got = append(got, stepsOf(t, text))
				}
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
				t.Errorf("the page has\n%q, want\n%q", got, want)
			}
		})
	}
}

// kindsOf returns the kinds of a configuration with a list of them.
func kindsOf(t *testing.T, text string) string {
	t.Helper()
	const more = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: [{path: apps/*}]\n"
	c, err := rollout.ParseConfig(".gitrollout/prod/config.yaml", []byte(more+text))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, p := range c.Workloads {
		kinds = append(kinds, p.APIVersion+" "+p.Kind+" "+p.Partition)
	}
	return fmt.Sprintf("kinds %v", kinds)
}

// stepsOf returns the actions of a Rollout document on its workload.
func stepsOf(t *testing.T, document string) string {
	t.Helper()
	ref := namedWorkload.FindStringSubmatch(document)
	if ref == nil {
		t.Fatalf("it names no workload: %s", document)
	}
	name := ref[3]
	service := func(name string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {selector: {app: x}, ports: [{port: 80}]}\n"
	}
	r, err := New(InProcess{}).Render(newTree(map[string]string{
		"kustomization.yaml": "resources: [workload.yaml, rollout.yaml, a.yaml, b.yaml, route.yaml]\n",
		"rollout.yaml":       document,
		"workload.yaml": "apiVersion: " + ref[1] + "\nkind: " + ref[2] + "\nmetadata: {name: " + name + "}\nspec:\n" +
			"  selector: {matchLabels: {app: x}}\n  template:\n    metadata: {labels: {app: x}}\n" +
			"    spec: {containers: [{name: main, image: main}]}\n",
		"a.yaml": service(name), "b.yaml": service(name + "-canary"),
		"route.yaml": "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: " + name + "}\nspec:\n" +
			"  parentRefs: [{name: gateway}]\n  rules: [{backendRefs: [{name: " + name + ", port: 80}]}]\n",
	}), rollout.App{Name: "demo", Namespace: "shop"}, rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Specs) != 1 || r.Specs[0].Canary == nil {
		t.Fatalf("staged are %+v", r.Specs)
	}
	kind, _, _ := strings.Cut(r.Specs[0].Workload.Kind, ".")
	text := fmt.Sprintf("%s %s: %d steps", kind, r.Specs[0].Workload.Name, len(r.Specs[0].Canary.Steps))
	if r.Specs[0].Canary.Traffic != nil {
		text += ", routed"
	}
	return text
}
