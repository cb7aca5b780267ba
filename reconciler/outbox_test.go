package reconciler

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestPushAt checks that one push records the transitions that arrive together, and that the wait for further
// transitions is limited. A rollback does not wait.
func TestPushAt(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		last, earliest time.Duration // times since the first transition
		urgent         bool
		want           time.Duration
	}{
		"alone":                    {0, -time.Hour, false, gathering},
		"others come":              {200 * ms, -time.Hour, false, 200*ms + gathering},
		"others come all the time": {499 * ms, -time.Hour, false, mostGathering},
		"after another push":       {200 * ms, 900 * ms, false, 900 * ms},
		"a rollback among them":    {200 * ms, 900 * ms, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			since := time.Now()
			compare.CheckNamed(t, "pushed after", tt.want, pushAt(since, since.Add(tt.last), since.Add(tt.earliest), tt.urgent).Sub(since))
		})
	}
}

// TestHanded checks that outbox.queued returns a queued transition only if the transition was decided from the given serial. After the
// transition is dropped, outbox.queued returns nil.
func TestHanded(t *testing.T) {
	h := newOutbox(nil, func(string) {})
	waits := func(when string, serial int, want bool) {
		t.Helper()
		compare.CheckNamed(t, when, want, h.queued("shop", serial) != nil)
	}
	waits("before the first handover", 3, false)
	s := transition{app: &appView{App: rollout.App{Name: "shop"}}, before: rollout.State{Serial: 3},
		decision: strategies.Decision{State: rollout.State{Serial: 4}}}
	h.enqueue(s)
	if got := h.queued("shop", 3); got == nil || got.Serial != 4 {
		t.Errorf("handed over is %v", got)
	}
	waits("after another record", 4, false)
	h.cancel("shop")
	waits("after it was dropped", 3, false)
}
