package plan

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestOrder checks the stages that a change reaches: their order, the earliest times with the release and the soak of the stage before, and
// approvals. Apps that only one stage changes, rollbacks, and versions that served before do not wait. A stage waits for the slowest cluster
// before.
func TestOrder(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	in := func(cluster string, apps ...App) Plan { return Plan{Cluster: cluster, At: noon, Apps: apps} }
	shop := App{App: "shop", Change: Release, AtLeast: Span(10 * time.Minute)}
	slow, fast := App{App: "shop", Change: Release, AtLeast: Span(25 * time.Minute)}, App{App: "till", Change: Fast}
	f := &rollout.Fleet{Stages: []rollout.Stage{
		{Name: "dev", Clusters: []string{"dev"}, Soak: 5 * time.Minute},
		{Name: "staging", Clusters: []string{"eu", "us"}, Soak: time.Hour},
		{Name: "prod", Clusters: []string{"a-prod"}, Approve: rollout.ApproveMerge},
	}}
	all := []Plan{
		in("a-prod", App{App: "bad", Change: First}, App{App: "gone", Change: Gone}, App{App: "pay", Change: Apply}, shop, fast),
		in("dev", shop, App{App: "bad", Change: Invalid}), in("eu", App{App: "bad", Change: Release}, shop), in("lab", shop), in("us", slow),
	}
	Order(all, nil)
	compare.Check(t, "a-prod", all[0].Cluster)
	Order(all, f)
	seen := ""
	for _, p := range all {
		seen += p.Cluster + "\n" + strings.Join(append(p.StageTexts(), ""), "\n")
	}
	compare.Check(t, `lab
dev
1 of 3 (dev) takes the change immediately: shop
eu
2 of 3 (staging) takes the change once the apps in the stage before are corrected: bad
2 of 3 (staging) takes the change not before 12:15:00 UTC: shop
us
2 of 3 (staging) takes the change not before 12:15:00 UTC: shop
a-prod
3 of 3 (prod) takes the change once the apps in the stage before are corrected, after an approval: bad
3 of 3 (prod) takes the change immediately, after an approval: pay
3 of 3 (prod) takes the change immediately: till
3 of 3 (prod) takes the change not before 13:40:00 UTC, after an approval: shop
`, seen)
	compare.Contains(t, Markdown(all), "- Stage 2 of 3 (staging) takes the change not before 12:15:00 UTC: shop\n\n#### ")
}
