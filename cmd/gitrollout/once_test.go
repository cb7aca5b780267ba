package main

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/sopstest"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestOnceFailsWithAHeldApp checks that each `gitrollout once` fails while an app is held.
func TestOnceFailsWithAHeldApp(t *testing.T) {
	t.Parallel()
	key := sopstest.Age(t)
	for name, c := range map[string]struct {
		config string
		files  func(w *loopWorld) map[string]string
		want   string
	}{
		"a file that cannot be read": {"- path: apps/*", func(*loopWorld) map[string]string {
			return with(version("v1", halfThenGate), map[string]string{"service.yaml": "kind: [\n"})
		}, "is not valid YAML"},
		"no key": {decrypting, func(w *loopWorld) map[string]string { return w.encrypted("v1", "hunter2", key) }, "its keys cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v0", halfThenGate))
			w.configure(w.config(c.config))
			w.push("v1", c.files(w))
			for range 3 {
				w.wantText(w.clusterCommand(exitHeld, "once"), "app "+w.app+" is held: apps/", c.want)
			}
		})
	}
}

// TestWhatOnceFailsWith checks that `gitrollout once` fails if an app is held and needs a user's action. A freeze, or an app that is no
// longer held, causes no error.
func TestWhatOnceFailsWith(t *testing.T) {
	told := &transitions{held: map[string]string{}}
	tell := func(app string, held *rollout.Held) {
		told.tell(report.Report{Apps: []report.App{{Decision: strategies.Decision{State: rollout.State{App: app, Held: held}}}}})
	}
	tell("shut", &rollout.Held{Reason: rollout.HeldClosed, Message: "a freeze"})
	tell("again", &rollout.Held{Reason: rollout.HeldPolicy, Message: "a rule"})
	tell("again", nil)
	if err := told.heldApps(); err != nil {
		t.Errorf("error %v", err)
	}
	tell("b", &rollout.Held{Reason: rollout.HeldPolicy, Message: "a rule"})
	tell("a", &rollout.Held{Reason: rollout.HeldInvalidInput, Message: "a file"})
	if err := told.heldApps(); codeOf(err) != exitHeld || err.Error() != "app a is held: a file\napp b is held: a rule" {
		t.Errorf("code %d, error %v", codeOf(err), err)
	}
}
