package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// firstTier lists the tests that cover each behaviour in make test. They run with -short, all others in make test-all.
// Traffic through a proxy and the dashboard have separate packages.
var firstTier = map[string][]string{
	"release and promote":    {"TestCanaryCounts", "TestSupersede"},
	"abort, skip, retry":     {"TestVerbs"},
	"revert":                 {"TestRevertInFlight"},
	"blue-green":             {"TestBlueGreen", "TestBlueGreenAbort"},
	"StatefulSet":            {"TestStatefulSetIsAborted"},
	"DaemonSet":              {"TestDaemonSetSteps"},
	"hook":                   {"TestHookWaits"},
	"analysis of Prometheus": {"TestMonitoring"},
	"failed version":         {"TestBadReleases"},
	"crash":                  {"TestKilledAtEveryEffect"},
	"two writers":            {"TestManyReconcilers"},
	"Git outage":             {"TestRetreatWithoutGit"},
	"lost cluster":           {"TestClusterIsLost"},
	"changes by hand":        {"TestHandsOnTheCluster"},
	"bad input":              {"TestBadInput"},
	"adoption":               {"TestAdoption"},
	"rights":                 {"TestRightsAreEnoughAndNotMore"},
	"command line":           {"TestWhatPeopleSee"},
	"quick start":            {"TestQuickStart"},
	"this table":             {"TestFirstTierExists"},
}

// firstTests returns the tests of firstTier.
func firstTests() (names []string) {
	for _, behaviour := range slices.Sorted(maps.Keys(firstTier)) {
		names = append(names, firstTier[behaviour]...)
	}
	return names
}

// TestFirstTierExists finds misspelt names, which -run ignores.
func TestFirstTierExists(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	var code strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		code.Write(data)
	}
	for _, name := range firstTests() {
		if !strings.Contains(code.String(), "\nfunc "+name+"(t *testing.T)") {
			t.Errorf("%s is no test of this package", name)
		}
	}
}
