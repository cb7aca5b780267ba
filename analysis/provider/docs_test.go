package provider

import (
	"flag"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/docpage"
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
	for _, row := range Rows() {
		name := "`" + row.Kind + "`: " + row.Title
		if !row.Argo {
			name += " (not in Argo Rollouts)"
		}
		b.WriteString("| " + name + " | " + row.Result + " | " + row.Keys + " | `" + strings.Join(row.Fields, "`, `") + "` |\n")
	}
	return b.String()
}
