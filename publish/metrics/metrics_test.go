package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/publish/metrics"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func newTest(t *testing.T) *metrics.Metrics {
	t.Helper()
	m := metrics.New(metrics.Options{Cluster: "prod", Branch: "main", Version: "v1", Now: func() time.Time { return noon }})
	for i, counter := range [][2]string{
		{"gitrollout_git_requests_total"}, {"gitrollout_git_received_bytes_total"}, {"gitrollout_git_sent_bytes_total"},
		{"gitrollout_kubernetes_requests_total", "read"}, {"gitrollout_kubernetes_requests_total", "write"},
		{"gitrollout_kubernetes_requests_total", "dry_run"}, {"gitrollout_kubernetes_events_lost_total"},
		{"gitrollout_builds_total"},
	} {
		m.Count(counter[0], counter[1], func() float64 { return float64(i + 1) })
	}
	return m
}

// served returns the response to a scrape, without comment lines.
func served(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.Code != 200 {
		t.Fatalf("status %d: %v\n%s", answer.Code, err, body)
	}
	return regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(body), "")
}

func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in\n%s", line, regexp.MustCompile(`(?m)^(go|process)_.*\n`).ReplaceAllString(text, ""))
		}
	}
}

// look returns a pass's report about the app shop, with the states before and after.
func look(before, after rollout.State) report.App {
	return report.App{Before: before, Input: strategies.Input{Now: noon.Add(10 * time.Minute), App: rollout.App{Name: "shop"}, State: after}}
}

// tell calls m.Tell with the report of a pass that had the given apps.
func tell(m *metrics.Metrics, apps ...report.App) { m.Tell(report.Report{Apps: apps}) }

// lacks checks that a text contains none of the parts.
func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		compare.CheckNamed(t, part+" is in\n"+text, false, strings.Contains(text, part))
	}
}

// TestLifeOfARelease checks the metrics after each pass of a release, in one process and in a process that starts during the release.
func TestLifeOfARelease(t *testing.T) {
	inFlight, done := flying(), serving(9*time.Minute)
	m := newTest(t)
	tell(m, look(atRest(), atRest()))
	lacks(t, served(t, m), `gitrollout_releases_total{`)
	tell(m, look(atRest(), inFlight))
	wants(t, served(t, m),
		`gitrollout_releases_started_total 1`, `gitrollout_releases_total{app="shop",outcome="promoted"} 0`,
		`gitrollout_apps{phase="Progressing"} 1`, `gitrollout_apps{phase="Healthy"} 0`, `gitrollout_app_phase{app="shop",phase="Progressing"} 1`,
		fmt.Sprintf(`gitrollout_app_release_started_timestamp_seconds{app="shop"} %v`, float64(noon.Unix())),
		`gitrollout_transitions_total{phase="Progressing"} 1`)

	again := newTest(t)
	tell(again, look(inFlight, inFlight))
	wants(t, served(t, again), `gitrollout_releases_started_total 0`, `gitrollout_releases_total{app="shop",outcome="promoted"} 0`)
	for _, m := range []*metrics.Metrics{m, again} {
		tell(m, look(inFlight, done))
		tell(m, look(done, done))
		wants(t, served(t, m), `gitrollout_releases_total{app="shop",outcome="promoted"} 1`, `gitrollout_release_lead_time_seconds_sum 540`,
			`gitrollout_release_lead_time_seconds_count 1`, `gitrollout_apps{phase="Healthy"} 1`)
	}
	m.Tell(report.Report{Gone: []string{"shop"}})
	lacks(t, served(t, m), `"shop"`)
	tell(m, look(inFlight, inFlight))
	wants(t, served(t, m), `gitrollout_releases_total{app="shop",outcome="promoted"} 0`)
}

// TestSeriesBeginAtZero checks that series exist before their first event. If a series began at 1, Prometheus would see no increase.
func TestSeriesBeginAtZero(t *testing.T) {
	text := served(t, newTest(t))
	for name, labels := range map[string][]string{
		"transitions_total":                {`phase="Paused"`},
		"analysis_runs_total":              {`verdict="Successful"`, `verdict="Failed"`, `verdict="Error"`, `verdict="Inconclusive"`},
		"waiting_for_people_seconds_count": {`on="promotion"`, `on="revert"`}, "pass_duration_seconds_count": {`result="ok"`, `result="error"`},
		"apply_duration_seconds_count": {`result="ok"`, `result="error"`},
		"git_request_duration_seconds_count": {`operation="fetch",result="ok"`, `operation="push",result="error"`,
			`operation="push",result="conflict"`},
	} {
		for _, l := range labels {
			wants(t, text, "gitrollout_"+name+"{"+l+"} 0")
		}
	}
	wants(t, text, "gitrollout_releases_started_total 0", "gitrollout_release_lead_time_seconds_count 0",
		"gitrollout_release_time_to_reject_seconds_count 0",
		"gitrollout_retreat_duration_seconds_count 0", "gitrollout_leading 0", "gitrollout_last_pass_timestamp_seconds 0",
		`gitrollout_build_info{goversion="",revision="",version="v1"} 1`)
	if !strings.Contains(text, "\ngo_goroutines ") && !strings.HasPrefix(text, "go_") ||
		!strings.Contains(text, "\nprocess_start_time_seconds ") {
		t.Error("nothing is said of the Go runtime or of the process")
	}
}

// TestWayBack checks the metrics of a rejected release and of its rollback. It also checks the outcome of a release that a commit reverts.
func TestWayBack(t *testing.T) {
	inFlight := with(flying(), func(s *rollout.State) {
		s.Analyses = []rollout.AnalysisRun{{Name: "a", Started: noon, Phase: rollout.AnalysisRunning}}
	})
	back := with(inFlight, func(s *rollout.State) {
		s.Phase, s.Rollback = rollout.Aborting, &rollout.Rollback{Reject: true, Routed: noon.Add(4 * time.Minute)}
		s.Rejected = []rollout.Rejection{{Hash: fresh, At: noon.Add(3 * time.Minute)}}
		s.Analyses = []rollout.AnalysisRun{{Name: "a", Started: noon, Phase: rollout.AnalysisFailed}}
	})
	m := newTest(t)
	tell(m, look(inFlight, back))
	over := with(back, func(s *rollout.State) { s.Phase, s.Release, s.Rollback = rollout.Degraded, nil, nil })
	tell(m, look(back, over))
	wants(t, served(t, m), `gitrollout_releases_total{app="shop",outcome="rejected"} 1`, `gitrollout_release_time_to_reject_seconds_sum 180`,
		`gitrollout_retreat_duration_seconds_sum 360`, `gitrollout_analysis_runs_total{verdict="Failed"} 1`)
	reverted := look(inFlight, with(inFlight, func(s *rollout.State) { s.Phase, s.Rollback = rollout.Aborting, &rollout.Rollback{} }))
	reverted.Input.State.Stable.Hash = rollout.ReleaseHash(nil)
	reverted.Before.Stable = reverted.Input.State.Stable
	reverted.Input.Head.Render = &rollout.Render{}
	m.Tell(report.Report{Gone: []string{"shop"}})
	tell(m, reverted)
	wants(t, served(t, m), `gitrollout_releases_total{app="shop",outcome="reverted"} 1`)
}

// TestBreakGlass checks that a rollback by a user's annotation is counted once: when gitrollout applies it, before Git records it.
func TestBreakGlass(t *testing.T) {
	b := rollout.BreakGlass{Release: fresh, Serial: 1, By: "ann", Reason: "v2 burns", At: noon}
	rollback := func(reason string, happened bool) report.App {
		a := look(flying(), flying())
		a.Happened, a.Decision = happened, strategies.Decision{Rollback: true, State: rollout.State{Phase: rollout.Aborting, Reason: reason}}
		a.Input.Observed.Workloads = map[rollout.Workload]rollout.ObservedWorkload{{Name: "shop"}: {BreakGlass: b.Encode()}}
		return a
	}
	m := newTest(t)
	wantAfter := func(a report.App, n int) {
		t.Helper()
		tell(m, a)
		wants(t, served(t, m), fmt.Sprintf(`gitrollout_break_glass_total{app="shop"} %d`, n))
	}
	wantAfter(look(flying(), flying()), 0)
	wantAfter(rollback("no progress for 600s", true), 0)
	wantAfter(rollback(b.Text(), true), 1)
	wantAfter(rollback(b.Text(), false), 1)
	m.Tell(report.Report{Gone: []string{"shop"}})
	lacks(t, served(t, m), "break_glass_total{")
}

// TestFirstPassAfterStart checks that a transition is counted even if it happens in the first pass with the app.
func TestFirstPassAfterStart(t *testing.T) {
	m := newTest(t)
	tell(m, look(atRest(), flying()))
	wants(t, served(t, m), `gitrollout_releases_started_total 1`)
}

// TestFailingEnds checks that an app does not count as failing any more after a pass without an error.
func TestFailingEnds(t *testing.T) {
	m := newTest(t)
	app := look(atRest(), atRest())
	app.Err = errors.New("no")
	tell(m, app)
	wants(t, served(t, m), `gitrollout_app_failing{app="shop"} 1`)
	tell(m, look(atRest(), atRest()))
	lacks(t, served(t, m), "gitrollout_app_failing{", "gitrollout_app_held{")
}

func TestWaitingForARevert(t *testing.T) {
	degraded := with(atRest(), func(s *rollout.State) {
		s.Phase, s.Rejected = rollout.Degraded, []rollout.Rejection{{Hash: fresh, At: noon}}
	})
	m := newTest(t)
	tell(m, look(degraded, degraded))
	wants(t, served(t, m), fmt.Sprintf(`gitrollout_app_waiting_since_timestamp_seconds{app="shop",on="revert"} %v`, float64(noon.Unix())))
	tell(m, look(degraded, with(degraded, func(s *rollout.State) { s.Phase = rollout.Healthy })))
	text := served(t, m)
	wants(t, text, `gitrollout_waiting_for_people_seconds_sum{on="revert"} 600`)
	lacks(t, text, "gitrollout_app_waiting_since")
}

func TestLoop(t *testing.T) {
	m := newTest(t)
	clock := noon
	m.SetClock(func() time.Time { clock = clock.Add(time.Second); return clock })
	pass := func(part report.Part, decided int, err error) {
		_, ended := m.Trace(func() report.Stats { return report.Stats{Decided: decided} })(context.Background(), part, "")
		ended(err)
	}
	pass(report.PartFetch, 0, nil)
	looked := clock
	pass(report.PartFetch, 1, errors.New("no"))
	wants(t, served(t, m), fmt.Sprintf(`gitrollout_git_last_fetch_timestamp_seconds %v`, float64(looked.Unix())),
		`gitrollout_decisions_total 1`, fmt.Sprintf(`gitrollout_last_pass_timestamp_seconds %v`, float64(clock.Unix())),
		`gitrollout_git_request_duration_seconds_sum{operation="fetch",result="ok"} 1`)
	pass(report.PartPush, 1, nil)
	wants(t, served(t, m), fmt.Sprintf(`gitrollout_git_last_fetch_timestamp_seconds %v`, float64(looked.Unix())))
	pass(report.PartPass, 1, nil)
	wants(t, served(t, m), fmt.Sprintf(`gitrollout_last_pass_timestamp_seconds %v`, float64(clock.Unix())))
	for is, want := range map[bool]string{true: "gitrollout_leading 1", false: "gitrollout_leading 0"} {
		m.Leading(is)
		wants(t, served(t, m), want)
	}

	m = newTest(t)
	stats := report.Stats{Decided: 3, Commits: 2, Lost: 1}
	trace := m.Trace(func() report.Stats { return stats })
	for part, err := range map[report.Part]error{
		report.PartPass: nil, report.PartFetch: nil, report.PartPush: rollout.ErrConflict,
		report.PartRender: errors.New("no"), report.PartDecide: nil, report.PartApply: nil,
	} {
		_, end := trace(context.Background(), part, "shop")
		end(err)
	}
	_, end := trace(context.Background(), report.PartPass, "")
	stats.Decided = 5
	end(errors.New("no"))
	m.Tell(report.Report{Apps: []report.App{{Err: errors.New("no"),
		Input: strategies.Input{App: rollout.App{Name: "shop"}, State: with(atRest(), func(s *rollout.State) {
			s.Held = &rollout.Held{Reason: "InvalidInput"}
		})}}}})
	wants(t, served(t, m),
		`gitrollout_pass_duration_seconds_count{result="ok"} 1`, `gitrollout_pass_duration_seconds_count{result="error"} 1`,
		`gitrollout_git_request_duration_seconds_count{operation="push",result="conflict"} 1`,
		`gitrollout_git_request_duration_seconds_count{operation="fetch",result="ok"} 1`,
		`gitrollout_render_duration_seconds_count{result="error"} 1`, `gitrollout_decisions_total 5`, `gitrollout_state_commits_total 2`,
		`gitrollout_lost_races_total 1`, fmt.Sprintf(`gitrollout_last_pass_timestamp_seconds %v`, float64(noon.Unix())),
		`gitrollout_app_held{app="shop",reason="InvalidInput"} 1`, `gitrollout_app_failing{app="shop"} 1`,
		`gitrollout_kubernetes_requests_total{verb="dry_run"} 6`,
		`gitrollout_kubernetes_requests_total{verb="read"} 4`, `gitrollout_kubernetes_requests_total{verb="write"} 5`,
		`gitrollout_git_requests_total 1`,
		`gitrollout_decide_duration_seconds_count{result="ok"} 1`, `gitrollout_apply_duration_seconds_count{result="ok"} 1`,
		`gitrollout_cluster_info{branch="main",cluster="prod"} 1`)
}

// TestFamilies checks that families.yaml, from which the reference is generated, has exactly the registered metrics.
func TestFamilies(t *testing.T) {
	m := newTest(t)
	waits := with(atRest(), func(s *rollout.State) {
		s.Phase, s.Release, s.Held, s.Rejected = rollout.Degraded, release(fresh, 0), &rollout.Held{Reason: "x"},
			[]rollout.Rejection{{Hash: fresh}}
	})
	m.Tell(report.Report{Apps: []report.App{{Input: strategies.Input{App: rollout.App{Name: "shop"}, State: waits}, Err: errors.New("no")}}})
	listed := map[string]string{"gitrollout_app_release_weight_ratio": "gauge"} // this test's release has no weight
	got, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range got {
		if strings.HasPrefix(f.GetName(), "gitrollout_") {
			listed[f.GetName()] = strings.ToLower(f.GetType().String())
		}
	}
	for _, f := range metrics.ReadFamilies() {
		compare.CheckNamed(t, f.Name, kindOf(f), listed[f.Name])
		delete(listed, f.Name)
	}
	for name := range listed {
		t.Errorf("%s is not listed", name)
	}
}

// BenchmarkScrape measures a scrape of 2,000 apps, each with a release in flight.
func BenchmarkScrape(b *testing.B) {
	m := metrics.New(metrics.Options{Now: func() time.Time { return noon }})
	var looks []report.App
	for i := range 2000 {
		l := look(atRest(), flying())
		l.Input.App.Name = fmt.Sprintf("app-%d", i)
		looks = append(looks, l)
	}
	tell(m, looks...)
	for b.Loop() {
		answer := httptest.NewRecorder()
		m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		b.ReportMetric(float64(answer.Body.Len()), "bytes")
	}
}

// kindOf returns a metric's kind. The name of a counter ends in _total, and no other metric's name does.
func kindOf(f metrics.Family) string {
	switch {
	case strings.HasSuffix(f.Name, "_total"):
		return "counter"
	case f.Buckets != "":
		return "histogram"
	default:
		return "gauge"
	}
}
