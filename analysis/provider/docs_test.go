package provider_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/internal/docpage"
	"gitrollout.dev/gitrollout/rollout"
)

var update = flag.Bool("update", false, "write the docs' table of providers anew")

const docsPage = "../../docs/metric-providers.md"

// TestDocsTable compares the table of providers in the docs with the code.
func TestDocsTable(t *testing.T) {
	docpage.Table(t, docsPage, "providers", docsTable(readDocsTexts(t)), *update)
}

// docsText has the texts about one provider in the table.
type docsText struct {
	Kind, Title, Result, Credentials string
	Own                              bool // Argo Rollouts does not have the provider
}

const docsTexts = "testdata/docs.yaml"

func readDocsTexts(t *testing.T) (texts []docsText) {
	t.Helper()
	data, err := os.ReadFile(docsTexts)
	must(t, err)
	must(t, yaml.UnmarshalStrict(data, &texts))
	return texts
}

func docsTable(texts []docsText) string {
	var b strings.Builder
	b.WriteString("| provider | `result` | credentials | fields |\n|---|---|---|---|\n")
	for _, kind := range provider.Kinds() {
		said, has := rollout.Find(texts, func(d docsText) bool { return d.Kind == kind })
		if !has {
			return kind + " is missing in " + docsTexts
		}
		name := "`" + kind + "`: " + said.Title
		if said.Own {
			name += " (not in Argo Rollouts)"
		}
		fields := rollout.Mapped(rollout.Fields(provider.Types()[kind]), func(f rollout.Field) string { return f.Name })
		b.WriteString("| " + name + " | " + said.Result + " | " + said.Credentials + " | `" + strings.Join(fields, "`, `") + "` |\n")
	}
	return b.String()
}
