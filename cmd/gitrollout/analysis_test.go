package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// fakePrometheus answers a query with value(query, time), and records the queries and times.
type fakePrometheus struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newPrometheus(t *testing.T, value func(query, at string) string) *fakePrometheus {
	p := &fakePrometheus{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, at := r.FormValue("query"), r.FormValue("time")
		p.mu.Lock()
		p.asked = append(p.asked, strings.TrimSpace(at+" "+query))
		p.mu.Unlock()
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,%q]}]}}`, value(query, at))
	}))
	t.Cleanup(p.Close)
	return p
}

// template returns an AnalysisTemplate with one metric.
func template(name, metric string) string {
	return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: %s}
spec:
  args: [{name: hash, value: none}, {name: limit}]
  metrics:
  - {name: rate, successCondition: "result[0] < {{args.limit}}", provider: {prometheus: {query: "errors-{{args.hash}}"}}, %s}
`, name, metric)
}

// ran runs the program, and returns its output, its errors and its exit code.
func ran(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

// TestAnalysisRun checks the verdicts, the exit codes and the errors of "analysis run".
func TestAnalysisRun(t *testing.T) {
	p := newPrometheus(t, func(string, string) string { return "0.02" })
	dir := t.TempDir()
	write := func(name, content string) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	write("base/errors.yaml", "# the templates\n---\n"+template("errors", "count: 1")+"---\n"+template("job", "count: 1"))
	write("chart/templates/x.yaml", "kind: AnalysisTemplate\n{{ if .Values.x }}\n")
	write("other/endless.yml", template("endless", "interval: 1s"))
	write("a.yaml", template("twice", "count: 1"))
	write("b.yaml", template("twice", "count: 1"))
	write("mild.yaml", template("mild", `count: 1, failureCondition: "result[0] > 1"`))
	for _, c := range []struct {
		args, out, err string
		code           int
	}{
		{"errors --arg limit=0.05", "errors: Successful", "", 0},
		{"errors --arg limit=0.01", "errors: Failed, metric rate: 1 of 1 measurements failed", "", 1},
		{"mild --arg limit=0.01", "mild: Inconclusive", "", 8},
		{"errors --arg limit=0.05 --arg hash=Latest --latest 7c9f", "rate: Successful, 1 ok; [0.02]", "", 0},
		{"endless --arg limit=0.05 --duration 1500ms", "endless: Stopped", "", 0},
		{"endless --arg limit=0.01 --duration 1h", "endless: Failed", "", 1},
		{"endless --arg limit=0.05", "", "metric rate is measured without end: add --duration", 2},
		{"errors --arg limit=0.05 --arg hash=Latest", "", "add --latest", 2},
		{"errors", "", "the argument limit has no value; give it by --arg NAME=VALUE", 5},
		{"errors --arg limit=1 --arg limt=2", "", "the template has no argument limt; did you mean limit?", 2},
		{"errors --arg limit", "", "--arg limit must be NAME=VALUE", 2},
		{"error --arg limit=1", "", "has no AnalysisTemplate error; did you mean errors?", 2},
		{"twice --arg limit=1", "", "choose one file by -f", 2},
	} {
		args := append([]string{"analysis", "run", "-f", dir, "--address", p.URL}, strings.Fields(c.args)...)
		out, errs, code := ran(t, "", args...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.err) {
			t.Errorf("%s: exit code %d, want %d, and %q, %q\n%s%s", c.args, code, c.code, c.out, c.err, out, errs)
		}
	}
	p.mu.Lock()
	if !slices.Contains(p.asked, "errors-7c9f") || !slices.Contains(p.asked, "errors-none") {
		t.Errorf("asked %q", p.asked)
	}
	p.mu.Unlock()
	out, errs, code := ran(t, template("errors", "interval: 10ms, count: 12"), "analysis", "run", "errors", "-f", "-", "--address", p.URL,
		"--arg", "limit=0.05", "-o", "json")
	var got rollout.AnalysisRun
	must(t, json.Unmarshal([]byte(out), &got))
	compare.Check(t, []any{0, 12, 12}, []any{code, len(got.Metrics[0].Measurements), strings.Count(errs, "Successful")})
}

// TestReplay replays recorded releases. Prometheus is queried at the times of the release, and {{elapsed}} is the time since the step
// began.
func TestReplay(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	web := rollout.Workload{Namespace: "shop", Name: "web"}
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	step := func(n, weight, entered int) status.Transition {
		return status.Transition{At: at(entered), Phase: rollout.Progressing, Progress: []rollout.Progress{{Workload: web, Step: n, Of: 4,
			Weight: weight, Entered: at(entered), PodHash: "new", StablePodHash: "old"}}}
	}
	release := func(of ...status.Transition) *replay {
		return &replay{Workload: web, Started: noon, past: status.Past{Ended: new(at(200)), Transitions: of}}
	}
	aborting := step(2, 20, 90)
	aborting.Phase = rollout.Aborting
	bare := step(1, 20, 60)
	bare.Progress[0].PodHash = ""
	for name, c := range map[string]struct {
		of           *replay
		bad          string // the time from which all requests fail
		verdict      rollout.AnalysisPhase
		message      string
		first, last  string // the first and the last query
		verdictAfter int    // seconds
	}{
		"good": {of: release(step(0, 20, 0), step(1, 20, 60), step(2, 40, 120), step(4, 40, 150)), bad: "9", verdict: rollout.AnalysisStopped,
			first: "1795176060 up{new}[1s]", last: "1795176150 up{new}[30s]"},
		"bad": {of: release(step(0, 20, 0), step(1, 20, 60), step(2, 40, 120), step(4, 40, 150)), bad: "1795176100",
			verdict: rollout.AnalysisFailed, message: "1 of 3 measurements failed", first: "1795176060 up{new}[1s]",
			last: "1795176120 up{new}[1s]", verdictAfter: 120},
		"rolled back": {of: release(step(0, 20, 0), step(1, 20, 60), aborting), bad: "9", verdict: rollout.AnalysisStopped,
			first: "1795176060 up{new}[1s]", last: "1795176090 up{new}[30s]"},
		"first step": {of: release(step(0, 20, 0)), message: "the release ended at its first step"},
		"no hash":    {of: release(step(0, 20, 0), bare), message: "the record lacks the versions' pod hashes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPrometheus(t, func(_, at string) string { return map[bool]string{true: "1", false: "0"}[at >= c.bad] })
			o := backtestCommand{streams: streams{err: os.Stderr, globalOptions: &globalOptions{}}}
			o.address, o.namespace = p.URL, "shop"
			o.replay(t.Context(), c.of, []rollout.Metric{{Name: "rate", Interval: 30 * time.Second, Provider: "prometheus", Retention: 10,
				Config:           map[string]any{"address": p.URL, "query": "up{{{args.hash}}}[{{elapsed}}s]"},
				SuccessCondition: "result[0] < 0.5", Pods: map[string]string{"hash": "Latest"}}})
			if c.of.Verdict != c.verdict || !strings.Contains(c.of.Message, c.message) {
				t.Errorf("the verdict is %q: %s", c.of.Verdict, c.of.Message)
			}
			if c.first == "" {
				compare.CheckNamed(t, "questions", 0, len(p.asked))
				return
			}
			compare.CheckNamed(t, "the first and the last question", [2]string{c.first, c.last}, [2]string{p.asked[0], p.asked[len(p.asked)-1]})
			if c.verdictAfter > 0 {
				compare.CheckNamed(t, "the time of the verdict", at(c.verdictAfter), *c.of.At)
			}
		})
	}
}

// TestBacktestSummary checks the last line of a backtest.
func TestBacktestSummary(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	b := backtest{Releases: []replay{
		{Workload: rollout.Workload{Name: "web"}, Commit: "0123456789", Started: noon, Outcome: status.Refused, Verdict: rollout.AnalysisFailed,
			At: new(noon.Add(time.Minute)), Message: "metric rate: too bad"},
		{Started: noon, Outcome: status.Refused, Verdict: rollout.AnalysisStopped},
		{Started: noon, Outcome: status.Succeeded, Verdict: rollout.AnalysisFailed, At: new(noon)},
		{Started: noon, Outcome: status.Succeeded, Verdict: rollout.AnalysisSuccessful},
		{Started: noon, Outcome: status.Succeeded, Message: "the release ended at its first step"},
	}}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	compare.Check(t, "2026-11-20 12:00Z  web               0123456  rejected    Failed after 1m0s: metric rate: too bad", lines[0])
	compare.Check(t, "4 releases replayed, 2 would have been rejected: 1 of 2 that were rejected, and 1 of 2 others", lines[5])
}

// TestPowerRefusesTooMuch checks that "analysis power" refuses simulations that would take too long, and runs all others.
func TestPowerRefusesTooMuch(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--count 1000000000 --canary-rate 0.001": "--runs 400 and --metrics 1 need the work of 4e+11 measurements; at most 5e7",
		"--runs 1000000000":                      "--count 60, --runs 1000000000",
		"--metrics 1000000 --runs 1":             "--metrics 1000000",
		"--count 9223372036854775807":            "between 1 and 1e9 can be simulated",
		"--runs 3 --metrics 2 --count 5":         "",
	} {
		out, errs, code := ran(t, "", append([]string{"analysis", "power"}, strings.Fields(args)...)...)
		if refused := want != ""; refused != (code == int(exitUsage)) || !strings.Contains(errs, want) || !refused && out == "" {
			t.Errorf("%s: exit code %d\n%s%s", args, code, out, errs)
		}
	}
}

// TestCheckedFilesChooseNoServer checks how `validate` measures traffic. Untrusted files cannot choose the server, and no server gets their
// Secrets and headers. Without GITROLLOUT_PROMETHEUS_ADDRESS, no server is asked.
func TestCheckedFilesChooseNoServer(t *testing.T) {
	var asked []string
	server := func(name string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, fmt.Sprintf("%s %s %q %q", name, r.FormValue("query"), r.Header.Get("Authorization"), r.Header.Get("X-Key")))
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[
				{"metric":{"n":"bad"},"value":[1,"3"]},{"metric":{"n":"of"},"value":[1,"3000"]}]}}`)
		}))
		t.Cleanup(s.Close)
		return s
	}
	files, own := server("files'"), server("own")
	query := "up{{{args.hash}}}[{{elapsed}}s]"
	spec := rollout.Spec{Workload: rollout.Workload{Namespace: "shop", Name: "web"}, Canary: &rollout.Canary{}}
	spec.Canary.Analysis = &rollout.Analysis{Metrics: []rollout.Metric{
		{Name: "errors", Compare: &rollout.Compare{}, Provider: "prometheus", Pods: map[string]string{"hash": "Latest"}, Retention: 10,
			Secrets: map[string]rollout.SecretRef{"key": {Name: "metrics", Key: "key"}}, Config: map[string]any{
				"address": files.URL, "query": query, "headers": []any{map[string]any{"key": "X-Key", "value": "{{args.key}}"}},
				"authentication": map[string]any{"basic": map[string]any{"username": "ann", "password": "secret"}}}},
		{Name: "leak", Compare: &rollout.Compare{}, Provider: "prometheus", Pods: map[string]string{"hash": "Latest"}, Retention: 10,
			Secrets: map[string]rollout.SecretRef{"key": {Name: "metrics", Key: "key"}}, Config: map[string]any{
				"address": files.URL, "query": query + "{{args.key}}"}},
	}}
	measure := func() (rollout.AnalysisRun, string) {
		var errs strings.Builder
		s := streams{err: &errs, globalOptions: &globalOptions{}}
		return s.traffic(t.Context(), func(context.Context, rollout.Workload) string { return "7c9f" }, spec, false), errs.String()
	}
	t.Setenv("GITROLLOUT_PROMETHEUS_ADDRESS", "")
	t.Setenv("ARGO_ROLLOUTS_PROMETHEUS_ADDRESS", "")
	if run, errs := measure(); run.Metrics[0].Evidence != nil || !strings.Contains(errs, "set GITROLLOUT_PROMETHEUS_ADDRESS") || asked != nil {
		t.Errorf("without an address: asked %q, noted %s", asked, errs)
	}
	t.Setenv("GITROLLOUT_PROMETHEUS_ADDRESS", own.URL)
	run, errs := measure()
	if e := run.Metrics[0].Evidence; e == nil || e.Stable != 3000 || !strings.Contains(errs, "the plan assumes the traffic of web") {
		t.Errorf("with an address: %+v, noted %s", run.Metrics, errs)
	}
	compare.Check(t, []string{`own up{7c9f}[300s] "" ""`, `own up{7c9f}[300s] "" ""`}, asked)
}
