package rollout_test

import (
	"encoding/json"
	"math"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// template returns a pod template in the form that package render makes: without defaults, and with integers as int64.
func template(image string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web", "tier": "front"}},
		"spec": map[string]any{
			"terminationGracePeriodSeconds": int64(30),
			"containers": []any{map[string]any{
				"name": "web", "image": image,
				"ports": []any{map[string]any{"containerPort": int64(8080)}},
			}},
		},
	}
}

// TestHashTemplateGolden compares hashes with fixed values, because state branches, promotion files and clusters contain hashes. After a
// change of the algorithm, every app would start a release.
func TestHashTemplateGolden(t *testing.T) {
	for name, tc := range map[string]struct {
		template map[string]any
		want     rollout.Hash
	}{
		"an ordinary template":             {template("web:1.0"), "h1-0c8fd8d1ba"},
		"another image is another version": {template("web:1.1"), "h1-bf59ae5b41"},
		"nothing":                          {map[string]any{}, "h1-44136fa355"},
		"no template":                      {nil, "h1-74234e98af"},
		"HTML and non-ASCII are escaped in one way": {map[string]any{"a": "<ä&>"}, "h1-070960a32d"},
		"integers and floats":                       {map[string]any{"i": int64(1), "f": 1.5, "b": true, "n": nil}, "h1-115f46ca87"},
	} {
		got, err := rollout.HashTemplate(tc.template)
		must(t, err)
		compare.CheckNamed(t, name, tc.want, got)
	}
}

func TestHashTemplateIgnoresOrder(t *testing.T) {
	want, err := rollout.HashTemplate(template("web:1.0"))
	must(t, err)
	raw, err := json.Marshal(template("web:1.0"))
	must(t, err)
	for range 20 {
		var again map[string]any
		must(t, json.Unmarshal(raw, &again))
		got, err := rollout.HashTemplate(again)
		must(t, err)
		if got != want {
			t.Fatalf("got %s, want %s: integers that came through JSON are the same template", got, want)
		}
	}
}

func TestHashTemplateRefusesWhatJSONCannotSay(t *testing.T) {
	if h, err := rollout.HashTemplate(map[string]any{"a": math.NaN()}); err == nil {
		t.Errorf("got %s for a template that is not JSON, want an error", h)
	}
}

func TestReleaseHash(t *testing.T) {
	for name, tc := range map[string]struct {
		templates map[rollout.Workload]rollout.Hash
		want      rollout.Hash
	}{
		"nothing is staged":                       {nil, ""},
		"one: its own hash, as on the Deployment": {map[rollout.Workload]rollout.Hash{web: "h1-0000000001"}, "h1-0000000001"},
		"several: one hash over all": {map[rollout.Workload]rollout.Hash{web: "h1-0000000001", api: "h1-0000000002"},
			"h1-55bcdb7977"},
		"which workload has which template matters": {map[rollout.Workload]rollout.Hash{web: "h1-0000000002", api: "h1-0000000001"},
			"h1-2bbaf2f866"},
		"a change of one is a new release": {map[rollout.Workload]rollout.Hash{web: "h1-0000000003", api: "h1-0000000002"}, "h1-e87be1c66d"},
	} {
		for range 10 { // because the iteration order of maps is random
			compare.CheckNamed(t, name, tc.want, rollout.ReleaseHash(tc.templates))
		}
	}
}
