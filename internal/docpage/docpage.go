// Package docpage compares tables in the documentation with the code, for the tests of traffic and analysis/provider.
package docpage

import (
	"os"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

// Table compares the wanted text with the text between two comments of a page, "<!-- NAME: … -->" and "<!-- end of NAME
// -->". If update is true, Table instead writes the wanted text to the page.
func Table(t *testing.T, page, name, want string, update bool) {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text, end := string(raw), "<!-- end of "+name+" -->"
	i := strings.Index(text, "<!-- "+name+": ")
	j := strings.Index(text, end)
	if i < 0 || j < i {
		t.Fatalf("%s has no table between <!-- %s: … --> and %s", page, name, end)
	}
	i += strings.Index(text[i:], "-->\n") + len("-->\n")
	if update {
		if err := os.WriteFile(page, []byte(text[:i]+want+text[j:]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := compare.Diff(want, text[i:j]); diff != "" {
		t.Errorf("the table of %s in %s (-want +got), write it anew with -update:\n%s", name, page, diff)
	}
}
