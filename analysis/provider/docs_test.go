package provider

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the docs' table of providers anew")

const (
	docsPage   = "../../docs/metric-providers.md"
	tableBegin = "<!-- providers: written by go test ./analysis/provider -update -->\n"
	tableEnd   = "<!-- end of providers -->"
)

// TestDocsTable compares the docs' table of providers with what they say of
// themselves.
func TestDocsTable(t *testing.T) {
	raw, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), tableBegin)
	got, after, closed := strings.Cut(rest, tableEnd)
	if !found || !closed {
		t.Fatalf("%s has no table between %q and %q", docsPage, tableBegin, tableEnd)
	}
	want := docsTable()
	if *update {
		if err := os.WriteFile(docsPage, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of %s (-want +got), write it anew with -update:\n%s", docsPage, diff)
	}
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
