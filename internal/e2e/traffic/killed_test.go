package traffic

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// failures counts the failed measurements of an app's only analysis.
func failures(s rollout.State) int {
	if len(s.Analyses) != 1 {
		return 0
	}
	return s.Analyses[0].Metrics[0].Failed
}

// killedWhileMeasuring kills gitrollout twice during an analysis. Failed measurements are in Git, so a bad version is rejected after as
// many failures as without kills. Successful measurements are repeated after a kill, so a good version is measured a little longer.
func killedWhileMeasuring(t *testing.T) {
	t.Parallel()
	steps := []string{"setWeight: 20", inline}
	w := newMeasured(t,
		measured{name: "bad", steps: steps, metric: failuresBelow("0.05", "interval: 2s", "count: 20", "failureLimit: 4")},
		measured{name: "good", steps: steps, metric: failuresBelow("0.05", "interval: 2s", "count: 4")})
	bad, good := w.app("bad"), w.app("good")
	w.users(50)
	_, pushed := w.push("v2", func(s shop) shop {
		if s.version = "v2"; s.name == "bad" {
			s.version = "v2-fail0.2"
		}
		return s
	})
	begun := bad.await(pushed, "one failed measurement is on record", func(s rollout.State) bool { return failures(s) == 1 })
	w.killAndStart()
	bad.await(begun.at, "three failed measurements are on record", func(s rollout.State) bool { return failures(s) == 3 })
	w.killAndStart()
	bad.awaitRejected(pushed)
	healthy := good.awaitReleased(pushed)

	was, is := begun.states[bad.name].Analyses[0], bad.runs()[0]
	if !is.Started.Equal(was.Started) || is.Phase != rollout.AnalysisFailed || is.Metrics[0].Failed != 5 || is.Metrics[0].Errors != 0 {
		t.Errorf("after two kills the run is %+v, before it was %+v", is, was)
	}
	for i := 1; i < 5; i++ {
		bad.await(pushed, "each failed measurement is a commit", func(s rollout.State) bool { return failures(s) == i })
	}
	started := good.await(pushed, "it has begun", func(s rollout.State) bool { return s.Release != nil && len(s.Analyses) == 1 })
	if is := good.runs()[0]; is.Phase != rollout.AnalysisSuccessful || is.Metrics[0].Successful != 4 ||
		!is.Started.Equal(started.states[good.name].Analyses[0].Started) {
		t.Errorf("the good version's run is %+v", is)
	}
	t.Logf("killed twice: the bad version is back %s after its analysis began, the good one through after %s",
		bad.awaitRejected(pushed).at.Sub(was.Started).Round(100*time.Millisecond), healthy.at.Sub(started.at).Round(100*time.Millisecond))
}

// prometheusIsAwayForAWhile checks that an analysis continues after a few consecutive measurement errors.
func prometheusIsAwayForAWhile(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newMeasured(t, measured{name: "good", steps: []string{"setWeight: 20", inline},
		metric: failuresBelow("0.05", "interval: 1s", "count: 8")})
	a := w.app("good")
	w.users(50)
	_, pushed := w.release("v2")
	a.await(pushed, "it has begun", func(s rollout.State) bool { return len(s.Analyses) == 1 })
	time.Sleep(3 * time.Second)
	w.prometheus.stop()
	away := time.Now()
	a.await(pushed, "an error is on record", func(s rollout.State) bool {
		return len(s.Analyses) == 1 && s.Analyses[0].Metrics[0].ConsecutiveErrors == 1
	})
	w.prometheus.start()
	t.Logf("Prometheus was away for %s", time.Since(away).Round(100*time.Millisecond))
	a.awaitReleased(pushed)
	if m := a.runs()[0].Metrics[0]; m.Successful != 8 || m.Errors == 0 || m.Phase != rollout.AnalysisSuccessful {
		t.Errorf("the metric is %+v", m)
	}
	a.load.Stop().WantNoFailure(t, "users")
}
