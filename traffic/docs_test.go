package traffic

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	docsPage   = "../docs/traffic.md"
	tableBegin = "<!-- routers: written by go test ./traffic -update -->\n"
	tableEnd   = "<!-- end of routers -->"
)

// TestDocsTable compares the docs' table of routers with what the routers say of
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
	b.WriteString("| router | field | since |")
	for _, f := range Features() {
		b.WriteString(" " + string(f) + " |")
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(Features())) + "\n")
	for _, row := range Rows() {
		b.WriteString("| " + row.Title + " | `" + row.Kind + "` | " + row.Since + " |")
		for _, f := range Features() {
			cell := row.Features[f]
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
	return b.String()
}
