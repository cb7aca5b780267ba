// Package tier selects the first tier: the tests that run with -short. `make test` sets -short, and `make test-all`
// does not. internal/e2e and internal/e2e/traffic use this package, because their tests need real servers and take
// long.
package tier

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

// Select limits a run with -short to the given tests, unless the flag -run is set. TestMain calls Select after flag.Parse.
func Select(tests ...string) {
	run := flag.Lookup("test.run")
	if testing.Short() && run.Value.String() == "" {
		_ = run.Value.Set("^(" + strings.Join(tests, "|") + ")$")
	}
}

// Rows skips a subtest in runs with -short, unless the subtest is listed. The listed names lack the parent test's name.
func Rows(t *testing.T, names ...string) {
	t.Helper()
	_, name, _ := strings.Cut(t.Name(), "/")
	if testing.Short() && !slices.Contains(names, name) {
		All(t)
	}
}

// All skips a test with -short. Only `make test-all` runs such a test.
func All(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("only in make test-all")
	}
}
