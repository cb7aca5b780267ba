package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const deployDir = "../../deploy"

// freeAddress returns an unused address of this machine.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func getPage(t testing.TB, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, string(body)
}

// prometheus is Debian's Prometheus, which make test installs.
type prometheus struct {
	URL string
	cmd *exec.Cmd
}

// runPrometheus starts Prometheus with the given configuration.
func runPrometheus(t *testing.T, content string) *prometheus {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("prometheus is not installed: apt-get install prometheus")
	}
	address := freeAddress(t)
	p := &prometheus{URL: "http://" + address}
	p.cmd = exec.Command(path, "--config.file="+tempFile(t, "prometheus.yml", content), "--storage.tsdb.path="+t.TempDir(),
		"--web.listen-address="+address, "--log.level=warn")
	log := &lockedBuffer{}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	must(t, p.cmd.Start())
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("Prometheus' log:\n%s", log)
		}
	})
	eventually(t, "Prometheus is ready", func() bool {
		code, _ := getPage(t, p.URL+"/-/ready")
		return code == http.StatusOK
	}, func() any { return log })
	return p
}

func (p *prometheus) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// query evaluates an expression and returns its labels and values.
func (p *prometheus) query(t *testing.T, expr string) (results []struct {
	Metric map[string]string
	Value  [2]any
}) {
	t.Helper()
	code, body := getPage(t, p.URL+"/api/v1/query?query="+url.QueryEscape(expr))
	var answer struct {
		Status, Error string
		Data          struct{ Result json.RawMessage }
		Warnings      []string
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || code != 200 || answer.Status != "success" || len(answer.Warnings) > 0 {
		t.Fatalf("query %s: status %d: %s", expr, code, body)
	}
	if err := json.Unmarshal(answer.Data.Result, &results); err != nil {
		t.Fatalf("query %s: %v\n%s", expr, err, body)
	}
	return results
}

// awaitValue waits until an expression has one result with the given value.
func (p *prometheus) awaitValue(t *testing.T, expr, want string) {
	t.Helper()
	awaitEqual(t, "the results of "+expr, want, func() string {
		results := p.query(t, expr)
		if len(results) != 1 {
			return fmt.Sprint(results)
		}
		return fmt.Sprint(results[0].Value[1])
	})
}

// dashboardQueries returns the expressions of the Grafana dashboard, and replaces the dashboard's variables by values.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ RefID, Expr string }
		}
	}
	must(t, json.Unmarshal([]byte(readText(t, filepath.Join(deployDir, "grafana", "gitrollout.json"))), &dashboard))
	fill := strings.NewReplacer("$job", ".*", "$__rate_interval", "1m", "$__range", "1h")
	queries := map[string]string{}
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			queries[p.Title+"/"+target.RefID] = fill.Replace(target.Expr)
		}
	}
	if len(queries) < 40 {
		t.Fatalf("found %d queries in the dashboard: is it read right?", len(queries))
	}
	return queries
}

// loadedRules returns the expressions of the alerts that Prometheus has loaded, by name. It checks that Prometheus can evaluate them.
func (p *prometheus) loadedRules(t *testing.T) map[string]string {
	t.Helper()
	_, body := getPage(t, p.URL+"/api/v1/rules")
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Query, Health, LastError string }
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	rules := map[string]string{}
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			if rules[r.Name] = r.Query; r.Health != "ok" {
				t.Errorf("alert %s is %s: %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	return rules
}

// TestMonitoring scrapes gitrollout during a promotion, a rejection and an invalid commit, and evaluates every
// expression of the dashboard and the alerts.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	app := newShop(2, "", "setWeight: 50", "pause: {}")
	w := newWorld(t, app.files())
	address := freeAddress(t)
	w.start("--metrics-address", address, "--log-format", "json")
	rules, err := filepath.Abs(filepath.Join(deployDir, "prometheus", "rules.yaml"))
	must(t, err)
	p := runPrometheus(t, fmt.Sprintf(`global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
- job_name: gitrollout
  static_configs: [{targets: [%q]}]
`, rules, address))
	commit := w.repo.Head()
	w.awaitHealthy(commit)
	if code, body := getPage(t, "http://"+address+"/readyz"); code != 200 {
		t.Errorf("readyz: %d %s", code, body)
	}
	if code, _ := getPage(t, "http://"+address+"/debug/pprof/"); code != 404 {
		t.Errorf("profiles are served where they were not asked for: %d", code)
	}
	series := func(outcome string) string {
		return fmt.Sprintf(`gitrollout_releases_total{app=%q,outcome=%q}`, w.app, outcome)
	}
	p.awaitValue(t, series("promoted"), "1") // the first deployment counts as promoted

	commit = w.stage("v2", app.at("v2").files())
	p.awaitValue(t, fmt.Sprintf(`gitrollout_app_release_weight_ratio{app=%q,workload="%s/shop"}`, w.app, w.ns), "0.5")
	p.awaitValue(t, fmt.Sprintf(`time() - gitrollout_app_waiting_since_timestamp_seconds{app=%q,on="promotion"} < bool 60`, w.app), "1")
	w.promote().awaitHealthy(commit)
	p.awaitValue(t, series("promoted"), "2")
	p.awaitValue(t, `gitrollout_waiting_for_people_seconds_count{on="promotion"}`, "1")
	p.awaitValue(t, "gitrollout_release_lead_time_seconds_count", "2")

	w.stage("v3", app.at("v3").files())
	w.abort()
	p.awaitValue(t, series("rejected"), "1")
	p.awaitValue(t, "gitrollout_retreat_duration_seconds_count", "1")
	w.push("nonsense",
		map[string]string{"rollout.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {name: shop}\nspec: {nonsense: 1}\n"})
	p.awaitValue(t, fmt.Sprintf(`gitrollout_app_held{app=%q,reason="InvalidInput"}`, w.app), "1")

	p.awaitValue(t, `count(ALERTS{alertname="GitrolloutReleaseRejected",alertstate="firing"})`, "1")
	_, body := getPage(t, p.URL+"/api/v1/label/__name__/values")
	queries := dashboardQueries(t)
	for name, query := range p.loadedRules(t) {
		queries["alert "+name] = query
	}
	for name, query := range queries {
		p.query(t, query)
		for _, metric := range regexp.MustCompile(`\b(gitrollout|process)_[a-z_]+`).FindAllString(query, -1) {
			// gitrollout_app_failing exists only after a failing pass. The tests of publish/metrics check this metric.
			if metric != "gitrollout_app_failing" && !strings.Contains(body, `"`+metric+`"`) {
				t.Errorf("%s asks for %s, which was never scraped", name, metric)
			}
		}
	}
	if n := len(queries); n < 50 {
		t.Errorf("%d queries of dashboard and alerts: are they read right?", n)
	}
	w.checkEvents()
	w.checkLog()
}

// TestAlertRules checks the alert rules and runs their tests with promtool. Each alert must fire in a test.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	rules, tests := filepath.Join(deployDir, "prometheus", "rules.yaml"), filepath.Join(deployDir, "prometheus", "rules_test.yaml")
	output(t, exec.Command("promtool", "check", "rules", rules))
	output(t, exec.Command("promtool", "test", "rules", tests))
	var fired []string
	for _, m := range regexp.MustCompile(`alertname: (\w+)\n +exp_alerts:\n +- exp_labels`).FindAllStringSubmatch(readText(t, tests), -1) {
		fired = append(fired, m[1])
	}
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(readText(t, rules), -1) {
		if !slices.Contains(fired, m[1]) {
			t.Errorf("no test makes %s fire", m[1])
		}
	}
}

// checkEvents checks that each kind of transition has an Event with its reason, type and text.
func (w *world) checkEvents() {
	w.t.Helper()
	events, err := w.cluster.Kube.EventsV1().Events(w.ns).List(context.Background(), metav1.ListOptions{})
	must(w.t, err)
	told := map[string]string{}
	var all []string
	for _, e := range events.Items {
		if strings.HasPrefix(e.ReportingController, "gitrollout") && e.Regarding.Name == "shop" && e.Regarding.UID != "" {
			told[e.Reason+" "+e.Type] += e.Note + "\n"
			all = append(all, e.Reason+" "+e.Type+" "+e.Note)
		}
	}
	for kind, says := range map[string]string{
		"Progressing Normal": "release h1-", "Paused Normal": "step 2/2 pause", "Promoting Normal": "promoted by", "Healthy Normal": "healthy at",
		"Aborting Warning": "aborted by Ann", "Degraded Warning": "was rejected", "InvalidInput Warning": "nonsense",
	} {
		if !strings.Contains(told[kind], says) {
			w.t.Errorf("no Event %s says %q:\n%s", kind, says, strings.Join(all, "\n"))
		}
	}
}

// checkLog checks that the log has lines with the documented fields of transitions.
func (w *world) checkLog() {
	w.t.Helper()
	lines := map[string]map[string]any{}
	for _, text := range strings.Split(w.log.String(), "\n") {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == "transition" {
			lines[fmt.Sprint(line["phase"], line["held"])] = line
		}
	}
	for what, fields := range map[string]string{
		"Pausednil":   "app cluster phase release commit author step weight what waiting",
		"Abortingnil": "release commit author reason step weight",
		"Healthynil":  "release commit author", "Degradednil": "release commit reason", "DegradedInvalidInput": "held message",
	} {
		line := lines[strings.ReplaceAll(what, "nil", "<nil>")]
		for _, field := range strings.Fields(fields) {
			if line[field] == nil {
				w.t.Errorf("the line of %s has no %s: %v", what, field, line)
			}
		}
	}
}
