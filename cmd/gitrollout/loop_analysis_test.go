package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// judgedVersion is an app whose release is measured at its second step, by a server
// that answers with a number.
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

// TestVerdictsArePeoplesToRead: what was measured is in the proposal that asks
// somebody to decide, in the one that takes a bad release back, and in the record
// of the transition that it caused.
func TestVerdictsArePeoplesToRead(t *testing.T) {
	var load atomic.Value
	load.Store("0.7") // neither good nor bad
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
		t.Errorf("the proposal does not say what was measured:\n%s", message)
	}
	w.repo.Merge("gitrollout/promote/test/" + w.app)
	s = p.await("at the gate", func(s rollout.State) bool { return s.Phase == rollout.Paused && s.Progress[0].Step == 2 })
	if s.Analyses[0].Accepted == "" {
		t.Errorf("nobody is on record as having let it go on: %+v", s.Analyses)
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
		t.Errorf("the revert does not say what was measured:\n%s", message)
	}
}
