package e2e

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// analysed is an app whose canary is measured at its second step.
func analysed(template, steps string) map[string]string {
	files := shop{version: "v1", replicas: "replicas: 4", strategy: canary("scaling: surge", strings.Split(steps, "\n")...)}.files()
	files["kustomization.yaml"] += "- errors.yaml\n"
	files["errors.yaml"] = template
	return files
}

func version2(files map[string]string, tag string) map[string]string {
	out := map[string]string{}
	for name, content := range files {
		out[name] = strings.Replace(content, "image: shop:v1", "image: shop:"+tag, 1)
	}
	return out
}

const analysisStep = `analysis: {templates: [{templateName: errors}], args: [{name: hash, valueFrom: {podTemplateHashValue: Latest}}]}`

// TestBadReleaseGoesBack: a version that fails a fifth of its requests is noticed
// by a real Prometheus, goes back by itself, and Git says why.
func TestBadReleaseGoesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop{version: "v1", replicas: "replicas: 4", strategy: canary("scaling: surge", "setWeight: 25")}.files())
	p := startPrometheus(t, w)
	files := analysed(errorRate(p.URL, `    interval: 1s
    count: 10
    failureLimit: 2
    onNoData: wait
    successCondition: result[0] < 0.05`), "setWeight: 25\n"+analysisStep+"\npause: {}")
	first := w.push("with an analysis", files)
	w.start()
	w.awaitHealthy(first)
	u := startUsers(t, w, 40)

	pushed := time.Now()
	w.push("v2 fails", version2(files, "v2-fail0.2"))
	s := w.await("back and rejected", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	took := time.Since(pushed)
	firstBad := time.Unix(0, u.firstBad.Load())
	t.Logf("from the first bad request to stable: %s, %d of %d requests failed (%.2f%%), %s after the push",
		time.Since(firstBad).Round(100*time.Millisecond), u.bad.Load(), u.sent.Load(), u.share(), took.Round(100*time.Millisecond))
	if len(s.Rejected) != 1 || !strings.Contains(s.Rejected[0].Reason, "error-rate") || !strings.Contains(s.Rejected[0].Reason, "successCondition: result[0] < 0.05") {
		t.Errorf("Git says %+v", s.Rejected)
	}
	if len(s.Analyses) != 1 || s.Analyses[0].Phase != rollout.AnalysisFailed || len(s.Analyses[0].Metrics[0].Measurements) < 3 {
		t.Errorf("the evidence in Git is %+v", s.Analyses)
	}
	if share := u.share(); share > 10 {
		t.Errorf("%.2f%% of all requests failed", share)
	}
	if w.repo.Ref("gitrollout/revert/test/"+w.app) == "" {
		t.Error("no revert is proposed")
	}

	good := w.push("v3 works", version2(files, "v3"))
	w.awaitStep(2, rollout.Paused)
	w.promote()
	w.awaitHealthy(good)
}

// TestKilledDuringAnalysis: a reconciler that is killed between two measurements
// goes on with what was recorded, and comes to the same verdict.
func TestKilledDuringAnalysis(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop{version: "v1", replicas: "replicas: 4", strategy: canary("scaling: surge", "setWeight: 25")}.files())
	p := startPrometheus(t, w)
	files := analysed(errorRate(p.URL, `    interval: 2s
    count: 20
    failureLimit: 3
    onNoData: wait
    successCondition: result[0] < 0.05`), "setWeight: 25\n"+analysisStep)
	first := w.push("with an analysis", files)
	w.start()
	w.awaitHealthy(first)
	startUsers(t, w, 40)
	w.push("v2 fails", version2(files, "v2-fail0.5"))
	before := w.await("a failed measurement is on record", func(s rollout.State) bool {
		return len(s.Analyses) == 1 && s.Analyses[0].Metrics[0].Failed >= 1
	})
	w.restartAfterKill()
	after := w.await("back and rejected", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	if got := after.Analyses[0]; !got.Started.Equal(before.Analyses[0].Started) || got.Metrics[0].Failed != 4 {
		t.Errorf("after the restart the run is %+v, before it was %+v", got, before.Analyses[0])
	}
}

// TestPrometheusIsAway: what cannot be measured is not taken for good.
func TestPrometheusIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop{version: "v1", replicas: "replicas: 2", strategy: canary("scaling: surge", "setWeight: 50")}.files())
	files := analysed(errorRate("http://127.0.0.1:1", `    count: 1
    consecutiveErrorLimit: 0
    successCondition: result[0] < 0.05`), "setWeight: 50\n"+analysisStep)
	first := w.push("with an analysis", files)
	w.start()
	w.awaitHealthy(first)
	w.push("v2", version2(files, "v2"))
	s := w.await("back and rejected", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	if !strings.Contains(s.Rejected[0].Reason, "could not be made") {
		t.Errorf("Git says %s", s.Rejected[0].Reason)
	}
}
