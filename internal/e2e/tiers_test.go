package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// firstTier lists, for each behaviour, the tests that `make test` runs with -short. All other tests run only in `make
// test-all`. The tests of traffic through a proxy and of the dashboard are in separate packages.
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
	"shared change":          {"TestABadBaseReachesOneApp"},
	"stages":                 {"TestFleetOfTwoClusters"},
	"rights":                 {"TestRightsAreEnoughAndNotMore"},
	"command line":           {"TestWhatPeopleSee"},
	"quick start":            {"TestQuickStart"},
	"this table":             {"TestFirstTierExists"},
}

func firstTests() (names []string) {
	for _, behaviour := range slices.Sorted(maps.Keys(firstTier)) {
		names = append(names, firstTier[behaviour]...)
	}
	return names
}

// TestFirstTierExists fails if firstTier names a test that does not exist, because -run ignores such names.
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
