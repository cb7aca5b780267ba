package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// run runs the loop with its goroutines, as `gitrollout run` does, until the test ends.
func (p *loopProcess) run(interval time.Duration) {
	p.w.Helper()
	ctx, stop := context.WithCancel(p.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.Run(ctx, interval); err != nil {
			p.w.Errorf("the loop ended with %v", err)
		}
	}()
	p.w.Cleanup(func() {
		p.w.server.Fault(gittest.Faults{})
		p.w.api.hold(nil)
		stop()
		<-ended
	})
}

// seen waits until a condition is true, and returns the current time.
func (w *loopWorld) seen(what string, is func() bool) time.Time {
	w.Helper()
	await(w.T, what, is)
	return time.Now()
}

// patient is the longest acceptable delay of a rollback on a busy machine. It is shorter than the delay of Git in the test.
const patient = time.Minute

// TestRetreatWhileGitHangs delays each response of Git by two minutes. A release must still be rolled back at its
// progress deadline, before the rollback can be recorded in Git.
func TestRetreatWhileGitHangs(t *testing.T) {
	const strategy = halfThenGate + "  progressDeadlineSeconds: 6\n  progressDeadlineAbort: true\n"
	w := newLoopWorld(t, version("v1", strategy))
	p := w.start()
	p.run(200 * time.Millisecond)
	w.seen("v1 is healthy", func() bool { return w.state().Phase == rollout.Healthy })
	w.push("v2", version("v2-neverready", strategy))
	w.seen("v2 is released", func() bool { return w.state().Release != nil && w.image() == "v2-neverready" })
	w.server.Fault(gittest.Faults{Delay: 2 * time.Minute})
	deadline := w.state().Progress[0].Entered.Add(6 * time.Second)
	back := w.seen("the Deployment asks for v1 again", func() bool { return w.image() == "v1" })
	if late := back.Sub(deadline); late < 0 || late > patient {
		t.Errorf("it went back %s after its deadline", late)
	}
	if s := w.state(); s.Phase != rollout.Progressing {
		t.Errorf("Git is away, and records %s", s.Phase)
	}
	w.server.Fault(gittest.Faults{})
}

// TestSlowAppHoldsUpNobody delays each write of one app to the API server by 30 seconds, as a slow admission webhook would. The release of
// another app must not be delayed.
func TestSlowAppHoldsUpNobody(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	slow := w.ns + "-slow"
	w.pushAs(slow, "a second app", version("v1", halfThenGate))
	p := w.start()
	p.run(200 * time.Millisecond)
	for _, app := range []string{w.app, slow} {
		w.seen(app+" is healthy", func() bool { return w.stateOf(app).Phase == rollout.Healthy })
	}
	held := make(chan struct{}, 100)
	w.api.hold(func(r *http.Request) {
		if r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+slow) {
			held <- struct{}{}
			select {
			case <-time.After(30 * time.Second):
			case <-r.Context().Done():
			}
		}
	})
	w.pushAs(slow, "its second version", version("v2", halfThenGate))
	<-held
	pushed := time.Now()
	commit := w.pushVersion("v2")
	paused := w.seen("the other one is at its gate", func() bool { return w.state().Phase == rollout.Paused })
	if s := w.state(); s.Release == nil || s.Release.Commit != commit {
		t.Errorf("it is at %+v", s.Release)
	}
	if took := paused.Sub(pushed); took > 30*time.Second {
		t.Errorf("it took %s beside an app whose every write takes 30s", took)
	}
	if s := w.stateOf(slow); s.Phase == rollout.Paused {
		t.Error("the slow app was not slow")
	}
}

// TestPushesAreKeptApart checks that at least the push interval passes between the pushes of two transitions.
func TestPushesAreKeptApart(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	// Only the second transition waits for the push interval.
	w.configure(w.config("- path: apps/*") + "pushInterval: 1h\n")
	p := w.start()
	p.run(200 * time.Millisecond)
	w.seen("the first deployment is recorded", func() bool { return w.state().Phase != "" })
	w.seen("its pods are ready", func() bool { return len(w.pods()["v1"]) == 2 })
	time.Sleep(2 * time.Second)
	if got := w.history(); len(got) != 1 {
		t.Errorf("the push interval is an hour, and recorded are %q", got)
	}
}
