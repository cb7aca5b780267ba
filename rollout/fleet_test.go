package rollout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

const fleetHead = "apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\n"

var fleetClusters = []string{"dev", "prod-eu", "prod-us", "staging"}

// TestParseFleet checks a file whose stages have all fields, only defaults, or patterns of clusters.
func TestParseFleet(t *testing.T) {
	f, err := rollout.ParseFleet([]byte(fleetHead+`stages:
- {name: dev, clusters: [dev]}
- {name: staging, clusters: [staging], requiredSoakTime: 1h}
- {name: prod, clusters: [prod-us, prod-*], approve: merge, maxUpdate: 25%}
freeze: {reason: holidays, until: 2026-12-24T00:00:00Z}
`), fleetClusters)
	if err != nil {
		t.Fatal(err)
	}
	all := rollout.Amount{Value: 100, Percent: true}
	compare.Check(t, &rollout.Fleet{Stages: []rollout.Stage{
		{Name: "dev", Clusters: []string{"dev"}, Approve: rollout.ApproveAuto, MaxUpdate: all},
		{Name: "staging", Clusters: []string{"staging"}, Soak: time.Hour, Approve: rollout.ApproveAuto, MaxUpdate: all},
		{Name: "prod", Clusters: []string{"prod-eu", "prod-us"}, Approve: rollout.ApproveMerge,
			MaxUpdate: rollout.Amount{Value: 25, Percent: true}},
	}, Freeze: &rollout.Freeze{Reason: "holidays", Until: time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)}}, f)
	for cluster, want := range map[string]int{"dev": 0, "prod-us": 2, "elsewhere": -1} {
		compare.CheckNamed(t, cluster, want, f.StageOf(cluster))
	}
	compare.CheckNamed(t, "without a fleet", -1, (*rollout.Fleet)(nil).StageOf("dev"))
}

// TestFleetRefuses checks the errors of fleet.yaml: file, field, value and fix.
func TestFleetRefuses(t *testing.T) {
	stages := func(text string) string { return "stages:\n- {name: dev, clusters: [dev]}\n- {" + text + "}\n" }
	for name, tt := range map[string]struct{ text, want string }{
		"no stages": {"", "stages: is missing; list them: - {name: dev"},
		"same name": {stages("name: dev, clusters: [staging]"), `stages[1].name: "dev" is the name of two stages; rename one`},
		"no name":   {stages("clusters: [staging]"), "stages[1].name: is missing; name the stage"},
		"bad name":  {stages("name: Prod_1, clusters: [staging]"), `stages[1].name: "Prod_1" is not a name; use lower-case`},
		"two stages": {stages("name: a, clusters: [staging, dev]"),
			`stages[1].clusters[1]: "dev" matches the cluster dev, which is also in stage dev; keep the cluster in one stage`},
		"through a pattern": {stages("name: a, clusters: ['*']"),
			`stages[1].clusters[0]: "*" matches the cluster dev, which is also in stage dev; keep`},
		"no clusters": {stages("name: a"), "stages[1].clusters: is missing; name the stage's clusters"},
		"empty":       {stages("name: a, clusters: []"), "stages[1].clusters: is empty; name the stage's clusters"},
		"no match": {stages("name: a, clusters: [test-*]"),
			"stages[1].clusters: matches no cluster, so the next stage would not wait; name one of dev, prod-eu"},
		"no cluster": {stages("name: a, clusters: [stagin]"), `stages[1].clusters[0]: "stagin" is not a cluster: ` +
			`.gitrollout/stagin/config.yaml does not exist; did you mean staging?`},
		"pattern": {stages("name: a, clusters: ['a[']"), `stages[1].clusters[0]: "a[" is not a pattern for names of clusters; name a`},
		"soak":    {stages("name: a, clusters: [staging], requiredSoakTime: soon"), `stages[1].requiredSoakTime: "soon" is not a duration`},
		"negative": {stages("name: a, clusters: [staging], requiredSoakTime: -1h"),
			`stages[1].requiredSoakTime: "-1h" is negative`},
		"approve":  {stages("name: a, clusters: [staging], approve: yes"), "stages[1].approve: must be a string, not true"},
		"approval": {stages("name: a, clusters: [staging], approve: ask"), `stages[1].approve: "ask" is not one of auto, merge`},
		"no share": {stages("name: a, clusters: [staging], maxUpdate: 0"), `stages[1].maxUpdate: "0" is not a share of clusters; give 1`},
		"share":    {stages("name: a, clusters: [staging], maxUpdate: 120%"), `stages[1].maxUpdate: "120%" is not a share`},
		"half":     {stages("name: a, clusters: [staging], maxUpdate: half"), `stages[1].maxUpdate: "half" is neither a number`},
		"unknown":  {stages("name: a, clusters: [staging], pin: v1"), "stages[1].pin: is not a known field"},
		"freeze":   {stages("name: a, clusters: [staging]") + "freeze: {until: 2026-12-24T00:00:00Z}\n", "freeze.reason: is missing; say why"},
		"until": {stages("name: a, clusters: [staging]") + "freeze: {reason: x, until: tomorrow}\n",
			`freeze.until: "tomorrow" is not a time; write 2027-`},
	} {
		_, err := rollout.ParseFleet([]byte(fleetHead+tt.text), fleetClusters)
		var invalid *rollout.InvalidError
		if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), rollout.FleetPath+": "+tt.want) {
			t.Errorf("%s:\n got: %v\nwant: %s", name, err, tt.want)
		}
	}
}

// TestLongerFreeze checks which of two freezes holds an app.
func TestLongerFreeze(t *testing.T) {
	early, late, always := &rollout.Freeze{Until: time.Unix(1, 0)}, &rollout.Freeze{Until: time.Unix(2, 0)}, &rollout.Freeze{}
	for _, tt := range [][3]*rollout.Freeze{{nil, nil, nil}, {early, nil, early}, {nil, early, early}, {early, late, late},
		{late, early, late},
		{always, late, always}, {late, always, always}} {
		if tt[0].Longer(tt[1]) != tt[2] {
			t.Errorf("the longer of %v and %v is not %v", tt[0], tt[1], tt[2])
		}
	}
}
