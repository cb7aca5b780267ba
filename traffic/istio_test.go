package traffic

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestVerifyIstio(t *testing.T) {
	condition := func(kind, status string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status, "message": "61/122 complete"}}}
	}
	broken := map[string]any{"observedGeneration": "2", "validationMessages": []any{
		map[string]any{"level": "WARNING", "type": map[string]any{"code": "IST0102"}},
		map[string]any{"level": "ERROR", "type": map[string]any{"code": "IST0101"},
			"documentationUrl": "https://istio.io/latest/docs/reference/config/analysis/ist0101/"},
	}}
	for _, c := range []struct {
		name   string
		status map[string]any
		want   Verdict
	}{
		{"everywhere", condition("Reconciled", "True"), Verdict{Taken: true}},
		{"on its way", condition("Reconciled", "False"), Verdict{Text: "VirtualService/shop has not reached every proxy: 61/122 complete"}},
		{"an analysis that failed alone", condition("PassedAnalysis", "False"), Verdict{Taken: true}},
		{"of an older generation", map[string]any{"observedGeneration": int64(1)},
			Verdict{Text: "VirtualService/shop is not yet seen by istiod"}},
		{"broken", broken, Verdict{Rejected: true,
			Text: "VirtualService/shop is rejected by istiod: IST0101 https://istio.io/latest/docs/reference/config/analysis/ist0101/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			routers := parsed(t, "istio", map[string]any{"virtualService": map[string]any{"name": "shop"}})
			ref := rollout.Ref{Group: istioGroup, Kind: "VirtualService", Namespace: "shop", Name: "shop"}
			got := Verify(routers, "shop", map[rollout.Ref]rollout.ObservedRoute{ref: {Generation: 2, Status: c.status}})
			compare.Check(t, c.want, got)
		})
	}
}
