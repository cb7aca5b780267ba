package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// reconcilerPage serves the part of a reconciler's API that the commands use: all apps, one app by name, and 404 for an unknown app.
func reconcilerPage(t *testing.T) *httptest.Server {
	t.Helper()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /base/api/v1/apps", func(w http.ResponseWriter, _ *http.Request) { answer(w, shownFleet()) })
	mux.HandleFunc("GET /base/api/v1/apps/{name}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") != "shop" {
			http.Error(w, "no such app", http.StatusNotFound)
			return
		}
		answer(w, struct { // a newer server may send more fields
			status.App
			Weather string `json:"weather"`
		}{shownFleet().Apps[0], "fair"})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// shownFleet returns a listing of three apps: shop is Paused and has measurements, shop-eu is Degraded, and web is Stalled.
func shownFleet() status.Listing {
	metric := rollout.MetricProgress{Metric: "success-rate", Phase: rollout.AnalysisRunning}
	for _, value := range []string{"[0.99]", "[0.991]", "[0.98]", "", "[0.99]", "[0.94]"} {
		m := rollout.Measurement{Value: value, Phase: rollout.AnalysisSuccessful}
		if value == "" {
			m.Phase = rollout.AnalysisErrored
		}
		metric.Measurements = append(metric.Measurements, m)
	}
	run := rollout.AnalysisRun{Name: "background", Phase: rollout.AnalysisRunning, Metrics: []rollout.MetricProgress{metric}}
	return status.Listing{Cluster: "prod-eu", Apps: []status.App{
		{App: "shop", Cluster: "prod-eu", Phase: rollout.Paused, Release: &status.Release{Hash: "h1-1"},
			Analyses: status.Analyses([]rollout.AnalysisRun{run}, nil), Workloads: []status.Workload{
				{Workload: "shop/checkout", Strategy: "canary", Moving: true, Opened: "Carl Fey <carl@example.com>"}}},
		{App: "shop-eu", Cluster: "prod-eu", Phase: rollout.Degraded},
		{App: "web", Cluster: "prod-eu", Phase: rollout.Stalled},
	}}
}

// TestMeasurementsOfTheReconciler checks that `get` adds measurements from the reconciler's page only if the page and Git show the same
// release.
func TestMeasurementsOfTheReconciler(t *testing.T) {
	page := shownFleet().Apps[0]
	for name, c := range map[string]struct {
		change func(*status.App) // changes the app as recorded in Git
		page   string
		want   int // the number of measurements shown
	}{
		"the same release": {func(*status.App) {}, "/base", 6},
		"another release":  {func(a *status.App) { a.Release = &status.Release{Hash: "h1-2"} }, "/base", 0},
		"another cluster":  {func(a *status.App) { a.Cluster = "prod-us" }, "/base", 0},
		"no release":       {func(a *status.App) { a.Release = nil }, "/base", 0},
		"another program":  {func(*status.App) {}, "", 0},
	} {
		recorded := page
		recorded.Analyses = status.Analyses([]rollout.AnalysisRun{{Name: "background",
			Metrics: []rollout.MetricProgress{{Metric: "success-rate"}}}}, nil)
		c.change(&recorded)
		v := measuredView{&listings{{recorded}}, reconcilerPage(t).URL + c.page}
		l, err := v.Listing(t.Context(), []string{"shop"}, time.Now())
		must(t, err)
		compare.CheckNamed(t, name, c.want, len(l.Apps[0].Analyses[0].Metrics[0].Measurements))
	}
}

func TestServerView(t *testing.T) {
	server := reconcilerPage(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not\x1b[2J ready", http.StatusServiceUnavailable)
	}))
	t.Cleanup(broken.Close)
	base := server.URL + "/base"
	for name, c := range map[string]struct {
		args string
		code exitCode
		want []string
	}{
		"one app": {
			"get shop --server " + base, exitOK,
			[]string{"‖ shop  Paused", "success-rate", "██▆×█▁", "by Carl Fey", "prod-eu"},
		},
		"all": {
			"list --phase Degraded,Stalled --server " + base + "/", exitOK,
			[]string{"\nshop-eu  -          Degraded", "\nweb      -          Stalled"},
		},
		"json": {"get shop -o json --server " + base, exitOK, []string{`"app": "shop"`}},
		"no such app": {
			"get shpo --server " + base, exitFailed, []string{`has no app "shpo": there is no such app; did you mean shop?`},
		},
		"not an address":    {"get --server 127.0.0.1:3100", exitUsage, []string{"write http://127.0.0.1:3100"}},
		"not ready":         {"list --server " + broken.URL, exitFailed, []string{`503 Service Unavailable: "not\x1b[2J ready`}},
		"another page":      {"list --server " + server.URL, exitFailed, []string{"404"}},
		"no server answers": {"list --server http://127.0.0.1:1", exitFailed, []string{"connection refused", "to read Git instead"}},
		"one or the other":  {"list --cluster-only --server " + server.URL, exitUsage, []string{"exclude each other"}},
	} {
		t.Run(name, func(t *testing.T) { compare.Contains(t, wantExit(t, c.code, strings.Fields(c.args)...), c.want...) })
	}
	t.Run("by the environment", func(t *testing.T) {
		t.Setenv("GITROLLOUT_SERVER", base)
		compare.Contains(t, wantExit(t, exitOK, "get", "shop"), "success-rate")
	})
}
