// Package tier selects the tests that make test runs, called the first tier, from the tests that make test-all runs. Both run the same
// packages, but make test runs them with -short. internal/e2e and internal/e2e/traffic use it, because their tests need real servers.
package tier

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

// Select makes -short run only the given tests, unless the flag -run is set. TestMain calls it after flag.Parse.
func Select(tests ...string) {
	run := flag.Lookup("test.run")
	if testing.Short() && run.Value.String() == "" {
		_ = run.Value.Set("^(" + strings.Join(tests, "|") + ")$")
	}
}

// Rows skips a subtest with -short, unless its name, without the name of its parent test, is in names.
func Rows(t *testing.T, names ...string) {
	t.Helper()
	_, name, _ := strings.Cut(t.Name(), "/")
	if testing.Short() && !slices.Contains(names, name) {
		All(t)
	}
}

// All skips a test with -short, so that only make test-all runs it.
func All(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("only in make test-all")
	}
}
