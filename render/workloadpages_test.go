package render_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

var (
	yamlBlock     = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	namedWorkload = regexp.MustCompile(`workloadRef: \{apiVersion: (\S+), kind: (\S+), name: (\S+)\}`)
)

// TestPagesOfWorkloads renders the examples in the pages about kinds of workloads. It adds a workload and a router's objects to each
// Rollout, and counts the steps. An example that lists kinds is a part of a Config.
func TestPagesOfWorkloads(t *testing.T) {
	head := strings.NewReplacer("web", "search", "Deployment", "StatefulSet").Replace(ownHead) + "  strategy:\n"
	for page, want := range map[string][]string{
		"statefulsets.md":     {"StatefulSet search: 3 steps", "StatefulSet search: 4 steps, routed"},
		"daemonsets.md":       {"DaemonSet agent: 3 steps"},
		"kruise-workloads.md": {"CloneSet shop: 3 steps", "kinds [example.com/v1 GameServerSet spec.updateStrategy.partition]"},
	} {
		t.Run(page, func(t *testing.T) {
			data, err := os.ReadFile("../docs/" + page)
			must(t, err)
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
			compare.Check(t, want, got)
		})
	}
}

func kindsOf(t *testing.T, text string) string {
	t.Helper()
	const head = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: [{path: apps/*}]\n"
	c, err := rollout.ParseConfig(".gitrollout/prod/config.yaml", []byte(head+text))
	must(t, err)
	return fmt.Sprintf("kinds %v", rollout.Mapped(c.Workloads, func(p rollout.Partitioned) string {
		return p.APIVersion + " " + p.Kind + " " + p.Partition
	}))
}

// stepsOf renders a Rollout document together with its workload, and describes the steps.
func stepsOf(t *testing.T, document string) string {
	t.Helper()
	ref := namedWorkload.FindStringSubmatch(document)
	if ref == nil {
		t.Fatalf("it names no workload: %s", document)
	}
	named := strings.NewReplacer("apps/v1", ref[1], "Deployment", ref[2], "name: next", "name: "+ref[3]+"-canary", "web", ref[3])
	r := renderDocs(t, named.Replace(deploymentHead+serviceDocs+webRoute)+"---\n"+document)
	if len(r.Specs) != 1 || r.Specs[0].Canary == nil {
		t.Fatalf("staged are %+v", r.Specs)
	}
	spec := r.Specs[0]
	kind, _, _ := strings.Cut(spec.Workload.Kind, ".")
	text := fmt.Sprintf("%s %s: %d steps", kind, spec.Workload.Name, len(spec.Canary.Steps))
	if spec.Canary.Traffic != nil {
		text += ", routed"
	}
	return text
}
