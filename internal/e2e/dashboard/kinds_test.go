package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestKindsAndHooks checks that an app's page names the kind of each workload that is not a Deployment, and says why the app is held. The
// page shows a running hook, and a failed hook with its recorded log.
func TestKindsAndHooks(t *testing.T) {
	now := time.Now()
	a := healthy("search", "search 8.1", now)
	a.Held = &rollout.Held{Reason: rollout.HeldHook, Message: "release h1-2222222222 of 2222222 by Ann waits for its hooks",
		Commit: strings.Repeat("2", 40)}
	a.Workloads = []status.Workload{{Workload: "StatefulSet/shop/search", Strategy: "canary", Replicas: 3, Ready: 3, FullWeight: 100},
		{Workload: "GameServerSet.example.com/shop/games", Strategy: "canary", Replicas: 3, Ready: 3, FullWeight: 100}}
	a.Hooks = []rollout.HookRun{
		{Name: "shop/load", When: rollout.HookBefore, Release: "h1-2222222222", Job: "load-22222222-1", Phase: rollout.HookFailed,
			Since: now.Add(-2 * time.Minute), Attempt: 1, Message: "Job has reached the specified backoff limit", Log: "relation missing " + evil},
		{Name: "shop/migrate", When: rollout.HookBefore, Release: "h1-2222222222", Job: "migrate-22222222-1", Phase: rollout.HookRunning,
			Since: now.Add(-time.Minute), Attempt: 1},
	}
	f := newFleet(t, a)
	p := newTab(t, scheme("light"), chromedp.EmulateViewport(1280, 1500), chromedp.Navigate(f.url+"/apps/search"))
	p.await(live + ` && document.querySelectorAll('#hooks h3').length === 2`)
	compare.Contains(t, strings.ToLower(p.text()), "statefulset/shop/search", "gameserverset.example.com/shop/games", "running hooks",
		"waits for its hooks", "shop/migrate", "running", "migrate-22222222-1", "load-22222222-1",
		"job has reached the specified backoff limit", "relation missing <script>")
	if p.count("main script, main img") != 0 {
		t.Error("a text of a Job's log became markup")
	}
	p.axe("hooks, light")
}
