package rollout_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestStagesPage reads the YAML blocks of docs/stages.md through the strict parsers. The page's table must list each field.
func TestStagesPage(t *testing.T) {
	page, err := os.ReadFile("../docs/stages.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks", len(blocks))
	}
	clusters := []string{"dev", "prod-eu", "prod-us", "staging-eu", "staging-us"}
	f, err := rollout.ParseFleet([]byte(blocks[0][1]), clusters)
	if err != nil {
		t.Fatal(err)
	}
	compare.CheckNamed(t, "stages", 3, len(f.Stages))
	compare.CheckNamed(t, "clusters of prod", clusters[1:3], f.Stages[2].Clusters)
	compare.CheckNamed(t, "default of maxUpdate", "100%", f.Stages[0].MaxUpdate.String())
	compare.CheckNamed(t, "freeze", "holidays", f.Freeze.Reason)
	for _, field := range []string{"requiredSoakTime", "maxUpdate", "approve", "clusters", "freeze"} {
		if _, err := rollout.ParseFleet([]byte(strings.Replace(blocks[0][1], field+":", field+"s:", 1)), clusters); !rollout.IsInvalid(err) {
			t.Errorf("%ss is an unknown field: %v", field, err)
		}
		if !strings.Contains(string(page), "`stages[]."+field+"`") && !strings.Contains(string(page), "| `"+field+"` |") {
			t.Errorf("the table lacks %s", field)
		}
	}
}
