package terminal_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/doctor"
	"gitrollout.dev/gitrollout/views/terminal"
)

// plannedViews returns plans that together have every element that a view can draw.
func plannedViews() []plan.Plan {
	enters := func(after time.Duration) time.Time { return at().Add(after) }
	shop := plan.App{
		App: "shop", Change: plan.Release, Summary: "h1-2c9d0f1b77 -> h1-7b4e2a91d0", AtLeast: plan.Span(70 * time.Minute), Gates: 1,
		Ends: enters(68 * time.Hour),
		Workloads: []plan.Workload{{
			Workload: rollout.Workload{Namespace: "shop", Name: "shop"}, Kind: "Deployment", Strategy: "canary", Staged: true, Replicas: 4,
			Sized: "minReplicas of HorizontalPodAutoscaler shop", Full: 1000,
			Stages: []plan.Stage{
				{Text: "setWeight 5", Weight: 5, Canary: 1, Stable: 4, Wait: "pods", AtLeast: plan.Span(10 * time.Second), Enters: enters(0)},
				{Name: "ask", Text: "pause, at most 2h0m0s", Weight: 5, Canary: 1, Stable: 4, Wait: "promotion", Timeout: plan.Span(2 * time.Hour),
					OnTimeout: "abort", Enters: enters(10 * time.Second)},
				{Text: "pause 1h0m0s", Weight: 500, Canary: 2, Stable: 4, Wait: "time", AtLeast: plan.Span(time.Hour), Enters: enters(68 * time.Hour),
					Shut: "a release window, until 2026-11-23T08:00:00Z"},
				{Name: "promote", Text: "rolling update", Weight: 1000, Canary: 4, Shut: `the end of the freeze "year's end"`},
			},
		}},
		Detection: []strategies.Detection{
			{Workload: rollout.Workload{Namespace: "shop", Name: "shop"}, Metric: "errors", Step: 2, Weight: 0.2, Looks: 10, Over: "5m", Rate: 100,
				Stable: 0.02, Found: 0.024, After: "4m12s", Blind: 0.022},
			{Workload: rollout.Workload{Namespace: "shop", Name: "shop"}, Metric: "fixed", Step: 2, Fix: "the query has no {{elapsed}}"},
		},
		Notes: []plan.Note{
			{Level: plan.Refused, Message: "spec.selector of Deployment shop cannot be changed: the API server refuses the change",
				Fix: "leave spec.selector as it is"},
			{Level: plan.AtOnce, Message: "ConfigMap shop is mounted by Deployment shop under the same name before and after",
				Fix: "use a configMapGenerator"},
			{Level: plan.Hint, Message: "Deployment/shop/shop: replicas are ignored"},
		},
		Objects: []plan.Object{
			{Object: rollout.Ref{Kind: "ConfigMap", Namespace: "shop", Name: "shop-782t6ck7kc"}, Was: "shop-b5g778hd6d", Change: "changed",
				Diff: "--- base/a\n+++ head/a\n@@ -1 +1 @@\n-mode: a\n+mode: b\n"},
		},
	}
	broken := plan.App{App: "web", Change: plan.Invalid, Summary: "cannot be rendered: the app would be held as it is",
		Error: &rollout.InvalidError{File: "apps/web/kustomization.yaml", Field: "resources[0]", Msg: "gone.yaml does not exist in this commit"}}
	return []plan.Plan{
		{Cluster: "prod", Base: "4d6eb88 (main)", Head: "the working tree", At: at(), State: "gitrollout/state/prod at 2b53797",
			Apps: []plan.App{shop, broken}, Unchanged: 12,
			Shared: []plan.Shared{{File: "base/deployment.yaml", Apps: []string{"shop", "web"}}}},
		{Cluster: "staging", Base: "4d6eb88 (main)", Head: "the working tree", At: at(),
			State: "not read: the base counts as the stable version",
			Error: &rollout.InvalidError{File: ".gitrollout/staging/config.yaml", Field: "interval", Msg: `"fast" is not a duration`,
				Fix: "write 30s, 1m or the like"}},
	}
}

// TestPlanViews checks the view of plans in colour, on a terminal of 80 columns, and without a terminal. It also checks
// the view of the doctor command's findings.
func TestPlanViews(t *testing.T) {
	golden(t, "plan", terminal.Plans(plannedViews(), terminal.Look{Width: 80, Now: at()}))
	golden(t, "plan-coloured", terminal.Plans(plannedViews(), terminal.Look{Width: 80, Color: true, Now: at()}))
	golden(t, "plan-piped", terminal.Plans(plannedViews(), terminal.Look{Now: at()}))
	e := doctor.Examination{Cluster: "prod"}
	e.Add("git.read", doctor.Healthy, "", "https://git.example.com/shop.git can be read, main is at 4d6eb88")
	e.Add("cluster.rights", doctor.Problem, `add to its Role: {apiGroups: [""], resources: [configmaps], verbs: [create, delete, get, patch]}`,
		"system:serviceaccount:gitrollout:gitrollout may not create, delete, get, patch configmaps in namespace shop")
	e.Add("clock.cluster", doctor.Warning, "synchronize both clocks with NTP (timedatectl, chrony)",
		"the clocks of this machine and of the API server are 20s apart")
	golden(t, "doctor", terminal.Examination(e, terminal.Look{Width: 80, Now: at()}))
}

func TestReport(t *testing.T) {
	bad := &rollout.InvalidError{File: "apps/web/kustomization.yaml", Field: "resources[0]", Msg: "gone.yaml\x1b does not exist"}
	r := doctor.Report{Errors: 2, Warnings: 1, Clusters: []doctor.ClusterReport{
		{Cluster: "prod", Errors: []*rollout.InvalidError{bad}, Warnings: []string{"a window never opens"}, Apps: []doctor.AppReport{
			{App: "web", Error: bad}, {App: "checkout", Objects: 1, Staged: 2, Warnings: []string{"replicas are ignored"},
				Detection: []strategies.Detection{{Workload: rollout.Workload{Name: "shop"}, Metric: "errors", Step: 1, Weight: 0.05, Looks: 1,
					Over: "30s", Rate: 1, Stable: 0.01, Blind: 0.9}}}},
			Allow: []string{"apps:", "  - kinds: [Role]"}},
		{Cluster: "staging", Apps: []doctor.AppReport{{App: "a", Objects: 3, Staged: 1}}},
	}}
	golden(t, "report", terminal.Report(r, terminal.Look{Width: 80, Color: true}))
	e := doctor.Examination{Cluster: "prod"}
	e.Add("git", doctor.Unknown, "ask somebody who may say so, in words that take more than a line of this terminal to say", "%s",
		strings.Repeat("not known ", 9))
	golden(t, "doctor-piped", terminal.Examination(e, terminal.Look{}))
	golden(t, "doctor-narrow", terminal.Examination(e, terminal.Look{Width: 60, Color: true}))
}
