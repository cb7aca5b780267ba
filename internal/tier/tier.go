// Package tier selects the tests of make test among the tests of make test-all. Both run the same packages: with -short
// a package runs its first tier. internal/e2e and internal/e2e/traffic, whose tests need real servers, use it.
package tier

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

// Select makes -short run only the given tests, unless -run names others. TestMain calls it after flag.Parse.
func Select(tests ...string) {
	run := flag.Lookup("test.run")
	if testing.Short() && run.Value.String() == "" {
		_ = run.Value.Set("^(" + strings.Join(tests, "|") + ")$")
	}
}

// Rows skips a subtest in the first tier unless its name, without the test's name, is listed.
func Rows(t *testing.T, names ...string) {
	t.Helper()
	_, name, _ := strings.Cut(t.Name(), "/")
	if testing.Short() && !slices.Contains(names, name) {
		All(t)
	}
}

// All skips a test in the first tier.
func All(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("only in make test-all")
	}
}
