package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"gitrollout.dev/gitrollout/rollout"
)

// judgedVersion returns a version of the app whose second step is an analysis. The analysis reads a number from the server at url.
func judgedVersion(tag, url string) map[string]string {
	return with(version(tag, `    canary:
      scaling: surge
      steps:
      - setWeight: 50
      - analysis: {templates: [{templateName: load}]}
      - pause: {}
`), map[string]string{
		"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml, load.yaml]\n",
		"load.yaml": fmt.Sprintf(`apiVersion: gitrollout.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: load}
spec:
  metrics:
  - name: load
    successCondition: result < 0.5
    failureCondition: result > 0.8
    provider: {web: {url: %s, jsonPath: "{$.load}"}}
`, url),
	})
}

// serveLoad starts a server that returns load() as a measurement, or status 403 if load() is "". asked counts the requests.
func serveLoad(t *testing.T, load func() string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if text := load(); text != "" {
			fmt.Fprintf(w, `{"load": %s}`, text)
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// TestVerdictsArePeoplesToRead checks that the proposals to promote and to revert quote the measurements. After the
// promotion is merged, the record names the user who accepted the inconclusive analysis.
func TestVerdictsArePeoplesToRead(t *testing.T) {
	var load atomic.Value
	load.Store("0.7") // inconclusive
	url, _ := serveLoad(t, func() string { return load.Load().(string) })
	w, p := newHealthyWorld(t, judgedVersion("v1", url))

	second := w.push("v2", judgedVersion("v2", url))
	s := p.await("inconclusive", pausedAt(1))
	if len(s.Analyses) != 1 || s.Analyses[0].Phase != rollout.AnalysisInconclusive || s.Analyses[0].Release != s.Release.Hash {
		t.Errorf("on record are %+v", s.Analyses)
	}
	evidence := "Measured: " + w.app + "/step-2 load: Inconclusive, 1 inconclusive"
	w.wantText(w.repo.Message(w.promotion()), evidence, "0.7 from ")
	w.repo.Merge(w.promotion())
	s = p.await("at the gate", pausedAt(2))
	if s.Analyses[0].Accepted == "" {
		t.Errorf("the record does not say who let it go on: %+v", s.Analyses)
	}
	w.repo.Merge(w.promotion())
	p.awaitHealthy(second)

	load.Store("0.9")
	w.push("v3", judgedVersion("v3", url))
	p.wantRejected("failureCondition: result > 0.8", "0.9")
	w.wantText(w.repo.Message(w.revert()), "Measured: "+w.app+"/step-2 load: Failed, 1 failed; ")
}

// TestAHostileMeasurementStopsNobody checks conditions that would take hours or all memory, and a response with control characters.
// Only the release with the hostile analysis is rejected, and other apps continue. The record has no control character.
func TestAHostileMeasurementStopsNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ condition, load, reason string }{
		"a text that doubles":    {`len(reduce(1..60, #acc + #acc, 'aaaaaaaa')) > 0`, `0.1`, "could not be made"},
		"loops in loops":         {"let r = 1..9000; all(r, {all(r, {all(r, {true})})})", `0.1`, "could not be made"},
		"a text with characters": {"result == 'good'", `"x\u0000y\u001b]0;owned\u0007"`, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := serveLoad(t, func() string { return c.load })
			hostile := func(tag string) map[string]string {
				files := judgedVersion(tag, url)
				files["load.yaml"] = strings.Replace(files["load.yaml"],
					"successCondition: result < 0.5\n    failureCondition: result > 0.8\n",
					`successCondition: "`+c.condition+"\"\n    consecutiveErrorLimit: 0\n", 1)
				return files
			}
			w := newLoopWorld(t, hostile("v1"))
			other := w.app + "-b"
			w.pushAs(other, "another app", version("v1", halfThenGate))
			p := w.start()
			p.awaitOf(other, "healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
			// Without this wait, v2 could become the first deployment, which has no analysis.
			p.awaitPhase(rollout.Healthy)
			w.push("hostile", hostile("v2"))
			release := w.pushAs(other, "v2 of the other", version("v2", halfThenGate))
			p.awaitOf(other, "paused", func(s rollout.State) bool { return s.Phase == rollout.Paused && s.Release.Commit == release })
			p.wantRejected(c.reason)
			if message := w.repo.Message(stateBranch); strings.ContainsFunc(strings.ReplaceAll(message, "\n", ""), unicode.IsControl) {
				t.Errorf("the record's message is %q", message)
			}
		})
	}
}

// TestGatesOfWhatIsOverAreNotAsked checks that gitrollout calls a webhook while the release waits for the webhook's
// approval. After the rollback of this release, gitrollout does not call the webhook again.
func TestGatesOfWhatIsOverAreNotAsked(t *testing.T) {
	url, asked := serveLoad(t, func() string { return "" })
	gated := func(tag string) map[string]string {
		return with(judgedVersion(tag, url), map[string]string{"load.yaml": `apiVersion: gitrollout.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: load}
spec: {metrics: [{name: gate, provider: {webhook: {url: "` + url + `", type: confirm-rollout}}}]}
`})
	}
	w, p := newHealthyWorld(t, gated("v1"))
	w.push("v2", gated("v2"))
	p.await("asking", func(rollout.State) bool { return asked.Load() > 1 })
	w.push("v1 again", gated("v1"))
	s := p.await("back", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
	if len(s.Analyses) != 1 || s.Analyses[0].Phase != rollout.AnalysisStopped {
		t.Errorf("on record are %+v", s.Analyses)
	}
	n := asked.Load()
	time.Sleep(5 * time.Second)
	if more := asked.Load() - n; more > 1 { // one request may have been in flight
		t.Errorf("the gate is asked %d times after its release", more)
	}
}

// TestOnceMeasures checks that repeated calls of `gitrollout once` complete an analysis with three measurements.
func TestOnceMeasures(t *testing.T) {
	url, asked := serveLoad(t, func() string { return "0.1" })
	thrice := func(tag string) map[string]string {
		files := judgedVersion(tag, url)
		files["load.yaml"] = strings.Replace(files["load.yaml"], "- name: load\n", "- name: load\n    count: 3\n    interval: 1s\n", 1)
		return files
	}
	w := newLoopWorld(t, thrice("v1"))
	once := func(until func(rollout.State) bool) rollout.State {
		t.Helper()
		var s rollout.State
		await(t, "the next stage of the release", func() bool {
			w.clusterCommand(exitOK, "once", "--analysis-allow-cidr", "127.0.0.0/8")
			s = w.state()
			return until(s)
		})
		return s
	}
	once(func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	w.push("v2", thrice("v2"))
	s := once(pausedAt(2))
	if p := s.Analyses[0].Metrics[0]; p.Successful != 3 || asked.Load() != 3 {
		t.Errorf("asked %d times, on record %+v", asked.Load(), p)
	}
}
