package traffic

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestVerifyApisix(t *testing.T) {
	condition := func(kind, status, reason string, seen int64) rollout.ObservedRoute {
		return rollout.ObservedRoute{Generation: 2, Status: map[string]any{"conditions": []any{
			map[string]any{"type": kind, "status": status, "reason": reason, "message": "why", "observedGeneration": seen},
		}}}
	}
	for _, c := range []struct {
		name string
		seen rollout.ObservedRoute
		want Verdict
	}{
		{"version 1", condition("ResourcesAvailable", "True", "ResourcesSynced", 2), Verdict{Taken: true}},
		{"version 1, failed", condition("ResourcesAvailable", "False", "ResourceSyncAborted", 2),
			Verdict{Text: "has not reached APISIX: ResourceSyncAborted: why"}},
		{"version 2", condition("Accepted", "True", "Accepted", 2), Verdict{Taken: true}},
		{"version 2, failed", condition("Accepted", "False", "SyncFailed", 2), Verdict{Text: "has not reached APISIX: SyncFailed: why"}},
		{"version 2, refused", condition("Accepted", "False", "InvalidSpec", 2),
			Verdict{Rejected: true, Text: "is rejected by the APISIX ingress controller: InvalidSpec: why"}},
		{"of an older generation", condition("Accepted", "True", "Accepted", 1),
			Verdict{Text: "is not yet seen by the APISIX ingress controller"}},
		{"of another kind", condition("Programmed", "False", "Pending", 1), Verdict{Taken: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			compare.Check(t, c.want, (&apisixConfig{}).verify(rollout.Ref{}, c.seen))
		})
	}
}

func TestApisixSources(t *testing.T) {
	for _, c := range []struct {
		name    string
		own     []any
		network string
		want    []any
	}{
		{"all", nil, "10.1.0.0/16", []any{"10.1.0.0/16"}},
		{"narrower", []any{"10.0.0.0/8"}, "10.1.0.0/16", []any{"10.1.0.0/16"}},
		{"wider", []any{"10.1.2.3", "10.1.3.0/24"}, "10.1.0.0/16", []any{"10.1.2.3", "10.1.3.0/24"}},
		{"elsewhere", []any{"10.2.0.0/16", "::1"}, "10.1.0.0/16", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := apisixSources(c.own, c.network)
			must(t, err)
			compare.Check(t, c.want, got)
		})
	}
}
