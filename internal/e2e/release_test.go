package e2e

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/tier"
)

// TestCanaryCounts runs a release for each number of replicas in the table. It checks the exact numbers of pods at each step, the lowest
// number of ready pods, and that no pod is created twice.
func TestCanaryCounts(t *testing.T) {
	t.Parallel()
	steps := []string{"setWeight: 20", "pause: {}", "setWeight: 50", "pause: {}"}
	type want struct{ c20, s20, c50, s50 int }
	for name, tc := range map[string]struct {
		n        int
		fields   string
		held     int // lowest number of ready pods up to the second pause
		floor    int // lowest number of ready pods until the release ends
		expected want
	}{
		"1 in place":       {1, "maxSurge: 1\nmaxUnavailable: 0", 1, 1, want{1, 1, 1, 1}}, // maxSurge allows a second pod
		"3 in place":       {3, "", 3, 3, want{1, 3, 2, 2}},                               // 25 %: maxSurge is 1, maxUnavailable is 0
		"5 in place":       {5, "", 4, 4, want{1, 4, 3, 3}},
		"10 in place":      {10, "", 8, 8, want{2, 8, 5, 5}},                               // 25 %: maxSurge is 3, maxUnavailable is 2
		"10 without surge": {10, "maxSurge: 0\nmaxUnavailable: 1", 9, 9, want{2, 8, 5, 5}}, // one pod is unavailable at a time
		"1 surge":          {1, "scaling: surge", 1, 1, want{1, 1, 1, 1}},
		"3 surge":          {3, "scaling: surge", 3, 3, want{1, 3, 2, 3}},
		"5 surge":          {5, "scaling: surge", 5, 4, want{1, 5, 3, 5}}, // all stable pods stay until the promotion
		"10 surge":         {10, "scaling: surge", 10, 8, want{2, 10, 5, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tier.Rows(t, "1_surge", "5_in_place", "10_surge")
			app := newShop(tc.n, tc.fields, steps...)
			w := running(t, app.files())
			w.pods.awaitReady(t, map[string]int{"v1": tc.n})

			mark := w.pods.mark()
			commit := w.stage("v2", app.at("v2").files())
			w.pods.awaitReady(t, map[string]int{"v1": tc.expected.s20, "v2": tc.expected.c20})
			w.pods.stays(t, 300*time.Millisecond)
			w.promote().awaitPause(3)
			w.pods.awaitReady(t, map[string]int{"v1": tc.expected.s50, "v2": tc.expected.c50})
			w.pods.wantReady(t, mark, tc.held)
			w.promote().awaitHealthy(commit)
			w.pods.awaitReady(t, map[string]int{"v2": tc.n})
			w.pods.wantReady(t, mark, tc.floor)
			w.pods.wantStarted(t, map[string]int{"v2": tc.n, "v1": tc.n})
		})
	}
}

// TestRevertInFlight reverts releases in Git, and checks the lowest number of ready pods and the number of started pods.
func TestRevertInFlight(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		n      int
		fields string
		floor  int
		v1     int // pods of v1 ever started
	}{
		"1 surge":     {1, "scaling: surge", 1, 1},
		"3 surge":     {3, "scaling: surge", 3, 3},
		"5 surge":     {5, "scaling: surge", 5, 5},
		"10 surge":    {10, "scaling: surge", 10, 10},
		"10 in place": {10, "", 8, 15},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tier.Rows(t, "5_surge", "10_in_place")
			app := newShop(tc.n, tc.fields, "setWeight: 50", "pause: {}")
			w := newWorld(t, app.files()).start()
			first := w.awaitHealthy(w.repo.Head())
			commit := w.stage("v2", app.at("v2").files())
			mark := w.pods.mark()
			w.wantStable(first, w.revert(commit), 0) // a revert rejects nothing
			w.pods.awaitReady(t, map[string]int{"v1": tc.n})
			w.pods.wantReady(t, mark, tc.floor)
			w.pods.wantStarted(t, map[string]int{"v1": tc.v1}) // with surge, a revert starts no pod
		})
	}
}
