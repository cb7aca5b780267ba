package rollout_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestCohortsPage reads the YAML blocks of docs/cohorts.md through the strict parsers. The settings in the first block must be the
// defaults, except the tier.
func TestCohortsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/cohorts.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks", len(blocks))
	}
	const head = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\n"
	config, err := rollout.ParseConfig(rollout.ConfigPath("prod"), []byte(head+blocks[0][1]))
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := rollout.ParseConfig(rollout.ConfigPath("prod"), []byte(head+"apps:\n- path: apps/*\n"))
	if err != nil {
		t.Fatal(err)
	}
	compare.CheckNamed(t, "shared changes", defaults.Shared, config.Shared)
	compare.CheckNamed(t, "tier", 2, config.Apps[0].Tier)
	compare.CheckNamed(t, "default tier", 1, defaults.Apps[0].Tier)
	if _, err := rollout.ParseConfig(rollout.ConfigPath("prod"),
		[]byte(head+strings.Replace(blocks[0][1], "soak", "soaks", 1))); !rollout.IsInvalid(err) {
		t.Errorf("an unknown field: %v", err)
	}
	p, err := rollout.ParsePromotion("promote/cart.yaml", []byte(blocks[1][1]))
	if err != nil {
		t.Fatal(err)
	}
	compare.CheckNamed(t, "through", rollout.ThroughEntry, p.Through)
}
