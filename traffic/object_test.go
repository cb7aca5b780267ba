package traffic

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestVerifyObject(t *testing.T) {
	at := func(path string, value any) map[string]any {
		return map[string]any{
			"apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "name": "shop", "canaryWeight": "spec.weight",
			"verify": map[string]any{"path": path, "value": value},
		}
	}
	condition := func(status string, seen int64) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Valid", "status": status, "observedGeneration": seen}}}
	}
	const valid = `status.conditions[?(@.type=="Valid")].status`
	for _, c := range []struct {
		name   string
		config any
		status map[string]any
		want   Verdict
	}{
		{"in force", at("status.currentStatus", "valid"), map[string]any{"currentStatus": "valid"}, Verdict{Taken: true}},
		{"not in force", at("status.currentStatus", "valid"), map[string]any{"currentStatus": "invalid"},
			Verdict{Text: `HTTPProxy/shop has status.currentStatus "invalid" and not "valid"`}},
		{"a number", at("status.ready", int64(1)), map[string]any{"ready": int64(1)}, Verdict{Taken: true}},
		{"a condition", at(valid, "True"), condition("True", 2), Verdict{Taken: true}},
		{"a condition of an older version", at(valid, "True"), condition("True", 1),
			Verdict{Taken: false, Text: "HTTPProxy/shop has a status of an older version"}},
		{"an older version", at("status.currentStatus", "valid"), map[string]any{"currentStatus": "valid", "observedGeneration": int64(1)},
			Verdict{Text: "HTTPProxy/shop has a status of an older version"}},
		{"nothing yet", at(valid, "True"), map[string]any{"loadBalancer": map[string]any{}},
			Verdict{Text: "HTTPProxy/shop does not say yet that it is in force: status.conditions finds nothing: status has no field conditions"}},
		{"no status at all", at(valid, "True"), nil, Verdict{Taken: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			routers := parsed(t, "object", c.config)
			refs := Watched(routers, "shop")
			if len(refs) != 1 {
				t.Fatalf("watches %v", refs)
			}
			got := Verify(routers, "shop", map[rollout.Ref]rollout.ObservedRoute{refs[0]: {Generation: 2, Status: c.status}})
			compare.Check(t, c.want, got)
		})
	}
}
