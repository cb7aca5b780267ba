package provider

import (
	"flag"
	"reflect"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/docpage"
	"gitrollout.dev/gitrollout/rollout"
)

var update = flag.Bool("update", false, "write the docs' table of providers anew")

const docsPage = "../../docs/metric-providers.md"

// TestDocsTable compares the table of providers in the docs with the code.
func TestDocsTable(t *testing.T) {
	docpage.Table(t, docsPage, "providers", docsTable(), *update)
}

func docsTable() string {
	var b strings.Builder
	b.WriteString("| provider | `result` | credentials | fields |\n|---|---|---|---|\n")
	for _, p := range table {
		name := "`" + p.kind + "`: " + p.title
		if !p.argo {
			name += " (not in Argo Rollouts)"
		}
		fields := rollout.Mapped(rollout.Fields(reflect.TypeOf(p.config()).Elem()), func(f rollout.Field) string { return f.Name })
		b.WriteString("| " + name + " | " + p.result + " | " + p.keys + " | `" + strings.Join(fields, "`, `") + "` |\n")
	}
	return b.String()
}
