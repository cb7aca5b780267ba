package terminal_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// at returns the time at which all views are drawn. before(d) returns this time minus d.
func at() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func before(d time.Duration) time.Time { return at().Add(-d) }

func ptr[T any](v T) *T { return &v }

// golden fails the test if a text differs from the file testdata/NAME.txt. With -update, it rewrites the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	compare.CheckNamed(t, file+", which go test -update rewrites,", string(want), got)
}

func pods(name, state string, n int, since time.Duration) []status.Pod {
	var out []status.Pod
	for i := range n {
		out = append(out,
			status.Pod{Name: name + "-" + strings.Repeat(string(rune('b'+i)), 5), Status: state, Ready: state == "Running", Created: before(since)})
	}
	return out
}

func revision(role, deployment, podHash string, ready, desired int, since time.Duration) status.Revision {
	return status.Revision{Name: deployment + "-" + podHash, Role: role, PodHash: podHash, Desired: desired, Ready: ready,
		Pods: pods(deployment+"-"+podHash, "Running", ready, since)}
}

// steps returns the four steps of a canary. The step at the given index is in progress.
func steps(current int) []status.Step {
	list := []status.Step{{Text: "setWeight 20", Weight: 20}, {Text: "pause", Weight: 20}, {Text: "setWeight 60", Weight: 60},
		{Name: "soak", Text: "pause 10m0s", Weight: 60}}
	for i := range list {
		switch {
		case i < current:
			list[i].Status = "done"
		case i == current:
			list[i].Status = "current"
		default:
			list[i].Status = "pending"
		}
	}
	return list
}

func shopRelease() *status.Release {
	return &status.Release{Images: []string{"ghcr.io/acme/checkout:v2"}, Hash: "h1-7b4e2a91d0", Commit: "9f31c0a4d2e8b7a6",
		Author: "Ann Lee <ann@example.com>", Subject: "A bigger cache for the checkout", Since: before(14 * time.Minute)}
}

func shopStable() *status.Release {
	return &status.Release{Images: []string{"ghcr.io/acme/checkout:v1"}, Hash: "h1-2c9d0f1b77", Commit: "4be01d2c9a3f1e5d",
		Author: "Bob Ray <bob@example.com>", Subject: "Prices with VAT", Since: before(75 * time.Hour)}
}

func canaryPaused() status.App {
	return status.App{
		App: "shop", Cluster: "prod-eu", Namespace: "shop", Path: "apps/shop/overlays/prod", Phase: rollout.Paused,
		Release: shopRelease(), Stable: shopStable(),
		Waiting: "promotion of h1-7b4e2a91d0 at step 2/4",
		Workloads: []status.Workload{{
			Workload: "shop/checkout", Strategy: "canary", Replicas: 10, Ready: 10, Step: 2, Moving: true, Entered: ptr(before(12 * time.Minute)),
			Weight: 20, RealWeight: 20, Steps: steps(1),
			Revisions: []status.Revision{
				revision("canary", "checkout", "5d8f7c9b4", 2, 2, 14*time.Minute),
				revision("stable", "checkout", "7c6b5d4f8", 8, 8, 75*time.Hour),
			},
		}},
		Next: []status.Next{
			{To: "go on", Command: "git fetch && git merge --no-ff origin/gitrollout/promote/prod-eu/shop && git push"},
			{To: "go on", Command: "gitrollout promote shop"},
			{To: "go back", Command: "gitrollout undo shop"}, {To: "go back", Command: "gitrollout abort shop"},
		},
	}
}

func stalledCrashLoop() status.App {
	a := canaryPaused()
	a.Phase, a.Waiting = rollout.Stalled, "pods of the new version: 0 of 2 serve (CrashLoopBackOff: exit code 1)"
	a.Reason = "no progress for 600s at setWeight 20: CrashLoopBackOff: exit code 1"
	w := &a.Workloads[0]
	w.Step, w.Steps, w.RealWeight, w.Ready = 1, steps(0), 0, 10
	w.Revisions[0] = revision("canary", "checkout", "5d8f7c9b4", 0, 2, 14*time.Minute)
	w.Revisions[0].Problem = "CrashLoopBackOff: exit code 1"
	w.Revisions[0].Pods = pods("checkout-5d8f7c9b4", "CrashLoopBackOff", 2, 14*time.Minute)
	w.Revisions[0].Pods[0].Restarts, w.Revisions[0].Pods[1].Restarts = 7, 1
	w.Revisions[1] = revision("stable", "checkout", "7c6b5d4f8", 10, 10, 75*time.Hour)
	a.Next = a.Next[2:]
	return a
}

func timedPauseView() status.App {
	a := canaryPaused()
	due := at().Add(6*time.Minute + 12*time.Second)
	a.Waiting, a.Due, a.Next = "pause 10m0s, until 2026-11-20T12:06:12Z", &due, nil
	w := &a.Workloads[0]
	w.Step, w.Steps, w.Weight, w.RealWeight, w.Due, w.Entered = 4, steps(3), 60, 55, &due, ptr(before(3*time.Minute+48*time.Second))
	w.Revisions[0] = revision("canary", "checkout", "5d8f7c9b4", 6, 6, 14*time.Minute)
	w.Revisions[1] = revision("stable", "checkout", "7c6b5d4f8", 4, 4, 75*time.Hour)
	return a
}

func routedView() status.App {
	a := canaryPaused()
	w := &a.Workloads[0]
	w.Weight, w.FullWeight, w.RealWeight, w.Routed, w.Routes = 25, 1000, 2, true, []string{"match", "staff"}
	w.Shares = map[string]int{"web-1-canary": 50, "web-1-baseline": 100}
	return a
}

func blueGreenPreview() status.App {
	return status.App{
		App: "checkout", Cluster: "prod-eu", Namespace: "shop", Phase: rollout.Paused, Release: shopRelease(), Stable: shopStable(),
		Waiting: "promotion of h1-7b4e2a91d0 at step 2/4",
		Workloads: []status.Workload{{
			Workload: "shop/checkout", Strategy: "blueGreen", Replicas: 3, Ready: 6, Step: 2, Moving: true, Entered: ptr(before(40 * time.Second)),
			Steps: []status.Step{
				{Name: "preview", Text: "preview", Status: "done"}, {Name: "promotion", Text: "wait for promotion", Status: "current"},
				{Name: "switch", Text: "switch", Weight: 100, Status: "pending"},
				{Name: "scale-down-delay", Text: "keep the old version 30s", Weight: 100, Status: "pending"},
			},
			Revisions: []status.Revision{
				revision("preview", "checkout", "844b48dbb5", 3, 3, time.Minute), revision("active", "checkout", "6f9c7b5d4c", 3, 3, 75*time.Hour),
			},
		}},
		Next: []status.Next{{To: "go on", Command: "gitrollout promote checkout"}},
	}
}

func promoting() status.App {
	a := canaryPaused()
	a.Phase, a.Waiting, a.Next = rollout.Promoting, "all pods to have the new version and to be available", nil
	w := &a.Workloads[0]
	w.Step, w.Steps, w.Weight, w.RealWeight, w.Entered = 4, steps(4), 100, 70, nil
	w.Revisions[0] = revision("canary", "checkout", "5d8f7c9b4", 7, 10, 2*time.Minute)
	w.Revisions[0].Pods = append(w.Revisions[0].Pods,
		status.Pod{Name: "checkout-5d8f7c9b4-zzzzz", Status: "ContainerCreating", Created: before(2 * time.Second)})
	w.Revisions[1] = revision("stable", "checkout", "7c6b5d4f8", 3, 3, 75*time.Hour)
	return a
}

func degradedRejected() status.App {
	return status.App{
		App: "shop", Cluster: "prod-eu", Namespace: "shop", Phase: rollout.Degraded, Stable: shopStable(),
		Reason: "Git asks for h1-7b4e2a91d0, which was rejected: aborted by Ann Lee <ann@example.com>: errors in checkout",
		Rejected: &status.Rejected{Images: []string{"ghcr.io/acme/checkout:v2"}, Hash: "h1-7b4e2a91d0", Commit: "9f31c0a4d2e8",
			Author: "Ann Lee <ann@example.com>", Subject: "A bigger cache for the checkout",
			Reason: "aborted by Ann Lee <ann@example.com>: errors in checkout", At: before(25 * time.Minute)},
		Waiting: "a revert of h1-2c9d0f1b77 in Git, a new version, or decision: retry",
		Workloads: []status.Workload{{
			Workload: "shop/checkout", Strategy: "canary", Replicas: 3, Ready: 3, Steps: idle(steps(0)),
			Revisions: []status.Revision{revision("stable", "checkout", "7c6b5d4f8", 3, 3, 75*time.Hour)},
		}},
		Next: []status.Next{
			{To: "go back in Git too", Command: "git fetch && git merge --no-ff origin/gitrollout/revert/prod-eu/shop && git push"},
			{To: "try it again", Command: "gitrollout retry shop"},
		},
	}
}

func idle(list []status.Step) []status.Step {
	for i := range list {
		list[i].Status = "pending"
	}
	return list
}

func heldByInput() status.App {
	a := degradedRejected()
	a.Phase, a.Reason, a.Rejected, a.Waiting, a.Next = rollout.Healthy, "", nil, "", nil
	a.Held = &rollout.Held{Reason: "InvalidInput", Commit: "8812aa07b3c4", Author: "Ann Lee <ann@example.com>",
		Message: "apps/shop/base/rollout.yaml: spec.strategy.canary.steps[1].setWeight: 120 is not within 0..100 (Rollout/shop/checkout)"}
	return a
}

func firstDeployment() status.App {
	return status.App{
		App: "shop", Cluster: "prod-eu", Namespace: "shop", Phase: rollout.Progressing, Release: shopRelease(),
		Reason: "first deployment: no stable version to protect, so no steps",
		Workloads: []status.Workload{{
			Workload: "shop/checkout", Strategy: "canary", Replicas: 3, Ready: 1, Steps: idle(steps(0)),
			Revisions: []status.Revision{{PodHash: "5d8f7c9b4", Role: "canary", Desired: 3, Ready: 1, Pods: append(
				pods("checkout-5d8f7c9b4", "Running", 1, 9*time.Second),
				status.Pod{Name: "checkout-5d8f7c9b4-xxxxx", Status: "Pending", Created: before(9 * time.Second)},
				status.Pod{Name: "checkout-5d8f7c9b4-yyyyy", Status: "ImagePullBackOff", Created: before(9 * time.Second)})}},
		}},
	}
}

func plainApp() status.App {
	return status.App{
		App: "ingress", Cluster: "prod-eu", Phase: rollout.Healthy,
		Source: &rollout.Commit{ID: "4be01d2c9a3f", Author: "Bob Ray <bob@example.com>", Subject: "Two replicas"},
		Images: []string{"traefik:v3.1"}, Namespace: "edge",
		Workloads: []status.Workload{{Workload: "edge/ingress", Strategy: "plain", Replicas: 2, Ready: 2,
			Revisions: []status.Revision{revision("", "ingress", "6d4cf56db6", 2, 2, 50*time.Hour)}}},
	}
}

func aborting() status.App {
	a := canaryPaused()
	a.Phase, a.Reason, a.Waiting = rollout.Aborting, "aborted by Ann Lee <ann@example.com>: errors in checkout",
		"all pods to have the stable version"
	a.Rejected, a.Next = degradedRejected().Rejected, degradedRejected().Next[:1]
	w := &a.Workloads[0]
	w.Weight, w.Ready, w.RealWeight, w.Steps[1].Status = 0, 8, 0, "pending"
	w.Revisions[0].Desired, w.Revisions[0].Ready = 0, 0
	for i := range w.Revisions[0].Pods {
		w.Revisions[0].Pods[i].Status, w.Revisions[0].Pods[i].Ready = "Terminating", false
	}
	return a
}

func wideCharacters() status.App {
	a := canaryPaused()
	a.Release.Author, a.Release.Subject = "山田太郎 <yamada@example.com>",
		"チェックアウトのキャッシュを大きくする 🚀 "+
			"（注文が多い日のために、メモリーも倍にする）と\x1b[31m色"
	a.Workloads[0].Steps[1].Name = "承認"
	a.Next = nil
	return a
}

func gitOnly() status.App {
	a := canaryPaused()
	a.Note = "shown from Git alone; pods are not observed: no cluster is configured: name a kubeconfig with --kubeconfig or KUBECONFIG"
	a.Workloads[0].Revisions, a.Workloads[0].Ready, a.Workloads[0].RealWeight, a.Workloads[0].Unread = nil, 0, 0, true
	return a
}

// measured returns an app with a paused canary. A user has opened the last gate. The analyses have metrics with each verdict.
func measured() status.App {
	a := canaryPaused()
	a.Workloads[0].Opened = "Carl Fey <carl@example.com>"
	a.Next[0].URL = "https://github.com/acme/deploy/pulls?q=is%3Aopen+head%3Agitrollout%2Fpromote%2Fprod-eu%2Fshop"
	series := func(phase rollout.AnalysisPhase, values ...string) []rollout.Measurement {
		var out []rollout.Measurement
		for i, v := range values {
			m := rollout.Measurement{At: at().Add(time.Duration(i) * time.Minute), Value: v, Phase: phase}
			if v == "" {
				m.Phase = rollout.AnalysisErrored
			}
			out = append(out, m)
		}
		return out
	}
	evidence := func(weight float64, canary, stable, metrics int, tests ...rollout.Test) *rollout.Sequential {
		for i := range tests {
			for r := range tests[i].Logs {
				tests[i].Logs[r] = math.Log(weight)
			}
		}
		return &rollout.Sequential{Canary: canary, Stable: stable, Tests: tests, Limit: 2000, Metrics: metrics}
	}
	a.Analyses = status.Analyses([]rollout.AnalysisRun{
		{Name: "background", Phase: rollout.AnalysisRunning, Started: before(13 * time.Minute), Metrics: []rollout.MetricProgress{
			{Metric: "success-rate", Phase: rollout.AnalysisRunning, Condition: "successCondition: result[0] >= 0.95", Count: 9, Successful: 8,
				Failed: 1, Errors: 1,
				Measurements: append(series(rollout.AnalysisSuccessful, "[0.99]", "[0.991]", "[0.98]", "", "[0.99]"),
					series(rollout.AnalysisFailed, "[0.94]")...)},
			{Metric: "p99-ms", Phase: rollout.AnalysisSuccessful, Count: 5, Successful: 5,
				Measurements: series(rollout.AnalysisSuccessful, "120", "120", "120", "120", "120")},
			{Metric: "遅延", Phase: rollout.AnalysisPending, DryRun: true},
		}},
		{Name: "step-2", Phase: rollout.AnalysisFailed, Started: before(11 * time.Minute), Metrics: []rollout.MetricProgress{
			{Metric: "smoke-test-of-the-whole-checkout", Phase: rollout.AnalysisFailed,
				Message: "the Job failed: 3 of 40 checks, the first of them is the payment by invoice", Count: 1, Failed: 1,
				Measurements: series(rollout.AnalysisFailed, "Failed")},
		}},
		{Name: "step-3", Phase: rollout.AnalysisRunning, Started: before(9 * time.Minute), Metrics: []rollout.MetricProgress{
			{Metric: "errors", Phase: rollout.AnalysisRunning, Evidence: evidence(41, 1240, 4960, 1, rollout.Test{Canary: 8, Stable: 17}),
				Count: 1, Successful: 1, Measurements: series(rollout.AnalysisSuccessful, "8 of 1240 (0.645%), stable 17 of 4960 (0.343%)")},
			{Metric: "timeouts", Phase: rollout.AnalysisFailed, Evidence: evidence(2e15, 12400, 49600, 1, rollout.Test{Canary: 8000}),
				Count: 1, Failed: 1, Measurements: series(rollout.AnalysisFailed, "8000 of 12400 (64.5%), stable 0 of 49600 (0%)")},
			{Metric: "coupons", Phase: rollout.AnalysisPending},
		}},
		{Name: "step-4", Release: "h1-2", Phase: rollout.AnalysisRunning, Started: before(time.Minute), Metrics: []rollout.MetricProgress{
			{Metric: "latency", Phase: rollout.AnalysisRunning, Evidence: evidence(0.001, 1240, 4960, 2, rollout.Test{Bound: 0.1, Canary: 620,
				Stable: 2480}, rollout.Test{Bound: 0.25, Canary: 124, Stable: 496}, rollout.Test{Bound: 2.5, Canary: 12, Stable: 50}),
				Count: 1, Successful: 1, Measurements: series(rollout.AnalysisSuccessful, "12 of 1240 (0.968%), stable 50 of 4960 (1.01%)")},
			{Metric: "logins", Phase: rollout.AnalysisRunning, Evidence: evidence(3, 12, 48, 2, rollout.Test{Canary: 1}),
				Measurements: []rollout.Measurement{{At: at(), Value: "1 of 12 (8.33%), stable 0 of 48 (0%)", Phase: rollout.AnalysisPending,
					Message: "fewer than 50 requests"}}},
		}},
	}, []rollout.Metric{{Name: "coupons", Compare: &rollout.Compare{}, Config: map[string]any{"query": "x[{{elapsed}}]"}}})
	return a
}

func TestViews(t *testing.T) {
	narrow := terminal.Look{Width: 80, Now: at()}
	views := map[string]status.App{
		"canary-paused": canaryPaused(), "canary-timed": timedPauseView(), "routed": routedView(), "stalled-crash-loop": stalledCrashLoop(),
		"blue-green-preview": blueGreenPreview(), "promoting": promoting(), "degraded-rejected": degradedRejected(),
		"held-by-input": heldByInput(), "first-deployment": firstDeployment(), "plain": plainApp(),
		"wide-characters": wideCharacters(), "git-only": gitOnly(), "aborting": aborting(), "measured": measured(),
	}
	for name, a := range views {
		t.Run(name, func(t *testing.T) {
			got := terminal.App(a, narrow)
			golden(t, name, got)
			for line := range strings.Lines(got) {
				if n := terminal.Width(strings.TrimSuffix(line, "\n")); n > 80 && !strings.Contains(line, "  git ") &&
					!strings.Contains(line, "  https://") {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
	t.Run("coloured", func(t *testing.T) {
		golden(t, "coloured", terminal.App(stalledCrashLoop(), terminal.Look{Width: 80, Color: true, Now: at()}))
	})
	t.Run("all pods", func(t *testing.T) {
		golden(t, "wide", terminal.App(promoting(), terminal.Look{Width: 120, Wide: true, Now: at()}))
	})
}

func TestViewsOfSeveralApps(t *testing.T) {
	calm := heldByInput()
	calm.Held, calm.App = nil, "search"
	l := status.Listing{Cluster: "prod-eu", Apps: []status.App{blueGreenPreview(), plainApp(), calm, heldByInput(), degradedRejected()}}
	golden(t, "several", terminal.Apps(l, terminal.Look{Width: 80, Now: at()}))
	one := status.Listing{Cluster: "prod-eu", Apps: []status.App{blueGreenPreview(), calm, calm}}
	golden(t, "several-calm", terminal.Apps(one, terminal.Look{Width: 80, Now: at()}))
	golden(t, "list-80", terminal.List(l, terminal.Look{Width: 80, Now: at()}))
	golden(t, "list", terminal.List(l, terminal.Look{Now: at()}))
	golden(t, "list-empty", terminal.List(status.Listing{Cluster: "prod-eu"}, terminal.Look{Now: at()}))
	l.SetNote("shown from Git alone; pods are not observed: no answer in 15s")
	for _, a := range l.Apps {
		for i := range a.Workloads {
			a.Workloads[i].Revisions, a.Workloads[i].Unread = nil, true
		}
	}
	golden(t, "list-git-only", terminal.List(l, terminal.Look{Now: at()}))
}

// TestOneAppInDetail checks the detail view of an app in rare cases: releases with missing fields, and pods in unusual states.
func TestOneAppInDetail(t *testing.T) {
	a := canaryPaused()
	a.Held = &rollout.Held{Reason: rollout.HeldClosed, Message: "the windows are shut"}
	a.Warnings = []string{"a typo", "another"}
	a.Release.Fast, a.Release.Subject = true, ""
	a.Stable = &status.Release{Hash: "h1-2c9d0f1b77"}
	w := &a.Workloads[0]
	w.Surplus, w.Weight, w.RealWeight = "3 pods more than asked for: an analysis runs", 5, 101
	w.Steps[1].Text = strings.Repeat("long ", 12)
	w.Revisions = []status.Revision{
		{Role: "", PodHash: "0123456789abcdef", Hash: "h1-9", Pods: []status.Pod{
			{Name: strings.Repeat("checkout-of-everything-", 3) + "x", Status: "Running", Created: before(time.Minute)},
			{Name: "b", Status: "Completed", Restarts: 1, Created: before(time.Minute)},
			{Name: "c", Status: "Terminating", Created: before(time.Minute)},
			{Name: "d", Status: "Running", Ready: true, Restarts: 2, Created: before(time.Minute)}}},
		{PodHash: "1", Pods: pods("one", "Running", 7, time.Hour)},
		{PodHash: "2", Hash: "h1-8", Desired: 1, Pods: pods("two", "Running", 6, time.Hour)},
	}
	golden(t, "detail", terminal.App(a, terminal.Look{Width: 80, Color: true, Now: at()}))
	golden(t, "detail-narrow", terminal.App(a, terminal.Look{Width: 50, Now: at()}.Without(3)))
	golden(t, "detail-without-pods", terminal.App(a, terminal.Look{Width: 100, Now: at(), Wide: true}.Without(6)))
	without := plainApp()
	without.Source.Subject, without.Source.Author = "", ""
	golden(t, "plain-unknown", terminal.App(without, terminal.Look{Width: 80, Now: at()}))
	m := measured()
	m.Analyses[0].Metrics[0].Message, m.Analyses[0].Metrics[0].Measurements = "too low", nil
	for i := range 14 {
		m.Analyses[0].Metrics[0].Measurements = append(m.Analyses[0].Metrics[0].Measurements,
			rollout.Measurement{Value: "[" + strings.Repeat("1", i+1) + "]"})
	}
	m.Analyses[0].Metrics[1].Measurements[4].Value = "[1 2]"
	m.Analyses[0].Metrics[1].Measurements[3].Value = "1e999"
	golden(t, "measured-more", terminal.DrawAnalyses(m, terminal.Look{Width: 80, Color: true, Now: at()}))
}

// TestHooks checks the view of three hook Jobs: the first has succeeded, the second has failed (with the reason), the third is running.
func TestHooks(t *testing.T) {
	a := plainApp()
	a.Hooks = []rollout.HookRun{
		{Name: "shop/migrate", When: rollout.HookBefore, Release: "h1-7b4e2a91d0", Job: "migrate-7b4e2a91-1", Phase: rollout.HookSucceeded,
			Since: before(time.Hour), Attempt: 1},
		{Name: "shop/check", When: rollout.HookAfter, Release: "h1-7b4e2a91d0", Job: "check-7b4e2a91-1", Phase: rollout.HookFailed,
			Since: before(time.Minute), Attempt: 1, Message: "BackoffLimitExceeded", Log: "connected\nERROR: relation \"orders\" does not exist"},
		{Name: "shop/undo", When: rollout.HookAbort, Release: "h1-7b4e2a91d0", Job: "undo-7b4e2a91-1", Phase: rollout.HookRunning,
			Since: before(time.Second), Attempt: 1},
	}
	golden(t, "hooks", terminal.DrawHooks(a, terminal.Look{Width: 80, Color: true, Now: at()}))
	a.Held = &rollout.Held{Reason: rollout.HeldHook, Message: "release h1-7b4e2a91d0 waits for its hooks"}
	golden(t, "hooks-narrow", terminal.App(a, terminal.Look{Width: 50, Now: at()}))
}

func TestListingsWithoutMuch(t *testing.T) {
	l := status.Listing{Cluster: "prod-eu", Note: "Git cannot be read"}
	golden(t, "several-none", terminal.Apps(l, terminal.Look{Width: 80, Now: at()}))
	calm := heldByInput()
	calm.Held = nil
	l.Apps = []status.App{calm, calm}
	golden(t, "several-all-calm", terminal.Apps(l, terminal.Look{Width: 80, Now: at()}))
	golden(t, "one-calm", terminal.Apps(status.Listing{Apps: l.Apps[:1]}, terminal.Look{Width: 80, Now: at()}))
	mixed, unknown := canaryPaused(), canaryPaused()
	behind := mixed.Workloads[0]
	behind.Strategy, behind.Step, behind.Weight, behind.FullWeight = "blueGreen", 1, 10, 1000
	mixed.Workloads = append(mixed.Workloads, behind, status.Workload{Strategy: "plain", Replicas: 2, Ready: 1},
		status.Workload{Strategy: "experiment"})
	unknown.Workloads = []status.Workload{{Strategy: "plain", Replicas: 1}, {Strategy: ""}, {Strategy: "canary", Moving: true, Replicas: 3},
		{Strategy: "experiment"}}
	unknown.Release, unknown.Stable, unknown.Waiting, unknown.Reason = nil, nil, "", "it waits"
	unknown.Source = &rollout.Commit{Author: "Ann Lee <ann@example.com>"}
	healthy := unknown
	healthy.Phase, healthy.Reason, healthy.Source, healthy.Note = rollout.Healthy, "all is well", &rollout.Commit{ID: "1"}, "no cluster"
	healthy.Workloads = []status.Workload{{Strategy: "canary", Replicas: 3, Unread: true}}
	one := mixed
	one.Note, one.Workloads = "no cluster", append([]status.Workload{{Replicas: 5}}, mixed.Workloads[0])
	l.Apps = []status.App{mixed, unknown, healthy, one}
	golden(t, "list-wide", terminal.List(l, terminal.Look{Width: 60, Wide: true, Now: at()}))
	for _, columns := range []int{109, 90, 78} {
		golden(t, fmt.Sprint("list-", columns), terminal.List(l, terminal.Look{Width: columns, Now: at()}))
	}
}
