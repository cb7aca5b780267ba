package main

import (
	"bytes"
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

// judgedVersion returns an app whose release is measured at its second step, by a server that answers with a number.
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

// TestVerdictsArePeoplesToRead shows measurements in the proposals to promote and to revert, and in the record of the
// transition that they cause.
func TestVerdictsArePeoplesToRead(t *testing.T) {
	var load atomic.Value
	load.Store("0.7") // inconclusive
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"load": %s}`, load.Load()) }))
	t.Cleanup(server.Close)
	w := newLoopWorld(t, judgedVersion("v1", server.URL))
	p := w.start()
	p.awaitHealthy(w.repo.Head())

	second := w.push("v2", judgedVersion("v2", server.URL))
	s := p.await("inconclusive", func(s rollout.State) bool { return s.Phase == rollout.Paused && s.Progress[0].Step == 1 })
	if len(s.Analyses) != 1 || s.Analyses[0].Phase != rollout.AnalysisInconclusive || s.Analyses[0].Release != s.Release.Hash {
		t.Errorf("on record are %+v", s.Analyses)
	}
	evidence := w.app + "/step-2 load: Inconclusive, 1 inconclusive"
	if message := w.repo.Message("gitrollout/promote/test/" + w.app); !strings.Contains(message, "Measured: "+evidence) || !strings.Contains(message, "0.7 from ") {
		t.Errorf("the proposal does not name the measurements:\n%s", message)
	}
	w.repo.Merge("gitrollout/promote/test/" + w.app)
	s = p.await("at the gate", func(s rollout.State) bool { return s.Phase == rollout.Paused && s.Progress[0].Step == 2 })
	if s.Analyses[0].Accepted == "" {
		t.Errorf("the record does not say who let it go on: %+v", s.Analyses)
	}
	w.repo.Merge("gitrollout/promote/test/" + w.app)
	p.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Stable.Commit == second })

	load.Store("0.9")
	w.push("v3", judgedVersion("v3", server.URL))
	s = p.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	if len(s.Rejected) != 1 || !strings.Contains(s.Rejected[0].Reason, "failureCondition: result > 0.8") || !strings.Contains(s.Rejected[0].Reason, "0.9") {
		t.Errorf("the reason is %+v", s.Rejected)
	}
	if message := w.repo.Message("gitrollout/revert/test/" + w.app); !strings.Contains(message, "Measured: "+w.app+"/step-2 load: Failed, 1 failed; ") {
		t.Errorf("the revert does not name the measurements:\n%s", message)
	}
}

// TestAHostileMeasurementStopsNobody has a condition that would take hours or all memory: only its metric has an error.
// A server's text in records is escaped, and other apps are released meanwhile.
func TestAHostileMeasurementStopsNobody(t *testing.T) {
	for name, c := range map[string]struct{ condition, load, reason string }{
		"a text that doubles":    {`len(reduce(1..60, #acc + #acc, 'aaaaaaaa')) > 0`, `0.1`, "could not be made"},
		"loops in loops":         {"let r = 1..9000; all(r, {all(r, {all(r, {true})})})", `0.1`, "could not be made"},
		"a text with characters": {"result == 'good'", `"x\u0000y\u001b]0;owned\u0007"`, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"load": %s}`, c.load) }))
			t.Cleanup(server.Close)
			hostile := func(tag string) map[string]string {
				files := judgedVersion(tag, server.URL)
				files["load.yaml"] = strings.Replace(files["load.yaml"], "successCondition: result < 0.5\n    failureCondition: result > 0.8\n",
					`successCondition: "`+c.condition+"\"\n    consecutiveErrorLimit: 0\n", 1)
				return files
			}
			w := newLoopWorld(t, hostile("v1"))
			other := w.app + "-b"
			w.pushAs(other, "another app", version("v1", halfThenGate))
			p := w.start()
			p.awaitOf(other, "healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
			// Otherwise v2 would be deployed first.
			p.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
			w.push("hostile", hostile("v2"))
			release := w.pushAs(other, "v2 of the other", version("v2", halfThenGate))
			p.awaitOf(other, "paused", func(s rollout.State) bool { return s.Phase == rollout.Paused && s.Release.Commit == release })
			s := p.await("taken back", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
			if len(s.Rejected) != 1 || !strings.Contains(s.Rejected[0].Reason, c.reason) {
				t.Errorf("it was taken back because %+v", s.Rejected)
			}
			if message := w.repo.Message("gitrollout/state/test"); strings.ContainsFunc(strings.ReplaceAll(message, "\n", ""), unicode.IsControl) {
				t.Errorf("the record's message is %q", message)
			}
		})
	}
}

// TestGatesOfWhatIsOverAreNotAsked queries a webhook gate while its release waits for it, and not after the release was
// rolled back.
func TestGatesOfWhatIsOverAreNotAsked(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	gated := func(tag string) map[string]string {
		return with(judgedVersion(tag, server.URL), map[string]string{"load.yaml": `apiVersion: gitrollout.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: load}
spec: {metrics: [{name: gate, provider: {webhook: {url: "` + server.URL + `", type: confirm-rollout}}}]}
`})
	}
	w := newLoopWorld(t, gated("v1"))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	w.push("v2", gated("v2"))
	p.await("asking", func(rollout.State) bool { return asked.Load() > 1 })
	w.push("v1 again", gated("v1"))
	s := p.await("back", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
	if len(s.Analyses) != 1 || s.Analyses[0].Phase != rollout.AnalysisStopped {
		t.Errorf("on record are %+v", s.Analyses)
	}
	n := asked.Load()
	time.Sleep(5 * time.Second)
	if more := asked.Load() - n; more > 1 { // one was in flight
		t.Errorf("the gate is asked %d times after its release", more)
	}
}

// TestOnceMeasures completes a release with three measurements by calls of once alone.
func TestOnceMeasures(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"load": 0.1}`)
	}))
	t.Cleanup(server.Close)
	thrice := func(tag string) map[string]string {
		files := judgedVersion(tag, server.URL)
		files["load.yaml"] = strings.Replace(files["load.yaml"], "- name: load\n", "- name: load\n    count: 3\n    interval: 1s\n", 1)
		return files
	}
	w := newLoopWorld(t, thrice("v1"))
	once := func(until func(rollout.State) bool) rollout.State {
		t.Helper()
		var s rollout.State
		await(t, "the next stage of the release", func() bool {
			var out bytes.Buffer
			args := []string{"once", "--repo", w.server.URL, "--cluster", "test", "--kubeconfig", w.api.kubeconfig, "--analysis-allow-cidr", "127.0.0.0/8"}
			if code := run(t.Context(), args, strings.NewReader(""), &out, &out); code != 0 {
				t.Fatalf("once: %d\n%s", code, out.String())
			}
			s = w.state()
			return until(s)
		})
		return s
	}
	once(func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	w.push("v2", thrice("v2"))
	s := once(func(s rollout.State) bool { return s.Phase == rollout.Paused && s.Progress[0].Step == 2 })
	if p := s.Analyses[0].Metrics[0]; p.Successful != 3 || asked.Load() != 3 {
		t.Errorf("asked %d times, on record %+v", asked.Load(), p)
	}
}
