package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestWatchSurvivesKills kills gitrollout during a watch (analysis after a promotion), and again after the first failed measurement. The
// watch continues from the state in Git. A version that becomes bad is rolled back once, after as many failed measurements as without
// kills. A good version's watch does not end before the time in the state.
func TestWatchSurvivesKills(t *testing.T) {
	t.Parallel()
	for name, isBad := range map[string]bool{"rolled back": true, "ended": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked, bad atomic.Int64 // bad: how many of the next answers are bad
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				fmt.Fprintf(rw, `{"worse": %t}`, bad.Add(-1) >= 0)
			}))
			defer server.Close()
			length := map[bool]string{true: "2h", false: "20s"}[isBad]
			app := newShop(2, "watch: {for: "+length+", templates: [{templateName: quality}]}", "setWeight: 50")
			app.more = map[string]string{"quality.yaml": fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: quality}
spec:
  metrics:
  - {name: worse, interval: 500ms, failureLimit: 2, failureCondition: result.worse, provider: {web: {url: %q}}}
`, server.URL)}
			w := running(t, app.files())
			first := w.state()
			commit := w.push("v2", app.at("v2").files())
			begun := w.await("a watch", func(s rollout.State) bool { return s.Watch != nil && len(s.Analyses) == 1 })
			measured := func(more int64) {
				t.Helper()
				before := asked.Load()
				w.until("measurements", func() bool { return asked.Load() >= before+more })
			}
			measured(2)
			w.restartAfterKill()
			measured(2)
			compare.CheckNamed(t, "the watch after a kill", begun.Watch, w.state().Watch)
			if !isBad {
				end := w.await("the end of the watch", func(s rollout.State) bool { return s.Watch == nil })
				if time.Now().Before(begun.Watch.Until) || end.Stable.Commit != commit || len(end.Rejected) > 0 {
					t.Errorf("the watch until %s has ended at %s with stable %+v and rejected %+v", begun.Watch.Until, time.Now(), end.Stable,
						end.Rejected)
				}
				return
			}
			bad.Store(1)
			w.await("a failed measurement", func(s rollout.State) bool { return len(s.Analyses) == 1 && s.Analyses[0].Metrics[0].Failed == 1 })
			w.restartAfterKill()
			bad.Store(2)
			back := w.await("rolled back", func(s rollout.State) bool { return s.Phase == rollout.Degraded && s.Release == nil })
			w.wantStable(first, back, 1)
			compare.Contains(t, back.Rejected[0].Reason, "after the promotion, analysis shop/watch failed: metric worse: 3 of ")
			if run := back.Analyses[0]; back.Watch != nil || !run.Started.Equal(begun.Analyses[0].Started) || run.Metrics[0].Failed != 3 {
				t.Errorf("the watch is %+v, and its run %+v began with %+v", back.Watch, run, begun.Analyses[0])
			}
			w.restartAfterKill()
			w.pods.awaitReady(t, map[string]int{"v1": 2})
			w.pods.stays(t, 300*time.Millisecond)
			backs := strings.Count(strings.Join(w.log0(), "\n"), "after the promotion")
			if backs != 1 {
				t.Errorf("%d rollbacks:\n%s", backs, strings.Join(w.log0(), "\n"))
			}
		})
	}
}
