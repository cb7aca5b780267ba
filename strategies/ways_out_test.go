package strategies_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// TestOlderByOne checks that a recorded state is stale as soon as the objects in the cluster are one transition newer.
func TestOlderByOne(t *testing.T) {
	_, in := atStep(nil, 1)
	for serial, stale := range map[int]bool{in.State.Serial: false, in.State.Serial + 1: true} {
		changeLive(&in, web, func(live *rollout.ObservedWorkload) { live.Serial = serial })
		if d := strategies.Decide(in); d.Stale != stale {
			t.Errorf("with serial %d in the cluster and %d on record it is stale: %t", serial, in.State.Serial, d.Stale)
		}
	}
}

// TestFullPromotionWhilePaused checks that paused: true keeps a release at its step even after a full promotion.
func TestFullPromotionWhilePaused(t *testing.T) {
	h, in := atStep(nil, 1)
	follow := func(paused bool) {
		h.push(func(s *source) { s.workloads[0].spec.Paused = paused })
		in.Head = h.headInput()
		in.State.Source, in.Source = h.headID(), in.Head.Render
	}
	follow(true)
	in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Promote, Through: rollout.Full}
	if d := strategies.Decide(in); d.State.Progress[0].Step != 1 || !strings.Contains(d.Waiting, "paused: true") {
		t.Errorf("it goes to %+v, waits for %q", d.State.Progress, d.Waiting)
	}
	follow(false)
	checkPhase(t, "then", in, rollout.Promoting)
}

// TestNobodyOvertakesWithWhatWasRejected checks that a full promotion of another version ends a rollback, and that a full promotion of the
// rejected version does not end the rollback.
func TestNobodyOvertakesWithWhatWasRejected(t *testing.T) {
	h, in := atStep(nil, 1)
	in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Abort, Digest: "1"}
	transition(&in, h)
	full := &rollout.Promotion{Release: in.Head.Render.Release(), Decision: rollout.Promote, Through: rollout.Full, Digest: "2"}
	in.Promotion = full
	checkPhase(t, "for the rejected version", in, rollout.Aborting)
	h.push(version("v3"))
	in.Head = h.headInput()
	full.Release = in.Head.Render.Release()
	checkPhase(t, "for the next version", in, rollout.Promoting)
	full.Since = noon
	checkPhase(t, "promoted by the file of a try that is over", in, rollout.Aborting)
}

// TestWhatHasBegunIsFinished checks that a blue-green release ignores windows from its promotion step on. The previous step waits until a
// window opens.
func TestWhatHasBegunIsFinished(t *testing.T) {
	_, in := atStep(func(s *rollout.Spec) {
		s.Scaling, s.Canary, s.BlueGreen = rollout.Surge, nil, &rollout.BlueGreen{ActiveService: "web"}
	}, 1)
	in.Calendar = rollout.Calendar{Freeze: &rollout.Freeze{Reason: "a test"}}
	m := workloads.All(in.State, in.Head.Render.Specs, in.Observed, plan.Cache{})[0]
	for step, done := range map[int]bool{m.PromotionStep() - 1: false, m.PromotionStep(): true} {
		m.Step = step
		if v := strategies.Gates(in, m, "window"); v.Done != done {
			t.Errorf("at step %d it is done: %t", step, v.Done)
		}
	}
}

// TestRejectedIsBounded checks that the recorded state has only the newest ten rejections. With the eleventh, the state also loses soaks
// that are older than the dropped rejection. Otherwise, a later stage could take content that was rejected after its soak. The newest soak
// stays, because an app without any soak may return to a former version without evidence.
func TestRejectedIsBounded(t *testing.T) {
	for age, soaks := range map[time.Duration]int{0: 9, 24 * time.Hour: 1} { // of the newest soak
		_, in := atStep(nil, 1)
		for i := range rollout.MaxHistory {
			at := in.Now.Add(-time.Duration(i) * time.Hour)
			in.State.Rejected = append(in.State.Rejected, rollout.Rejection{Hash: rollout.Hash(fmt.Sprint("h1-", i)), At: at})
			in.State.Soaked = append(in.State.Soaked, rollout.Soaked{Commit: fmt.Sprint("c1-", i), At: at.Add(time.Second - age)})
		}
		in.State.Soaked[9].At = in.State.Rejected[9].At.Add(-age)
		in.State.Verified = []rollout.Hash{in.State.Stable.Hash, in.State.Release.Hash}
		in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Abort}
		s := strategies.Decide(in).State
		if len(s.Rejected) != rollout.MaxHistory || s.Rejected[0].Hash != in.State.Release.Hash || s.Rejected[9].Hash != "h1-8" {
			t.Errorf("got %+v", s.Rejected)
		}
		compare.CheckNamed(t, age.String(), in.State.Soaked[:soaks], s.Soaked)
		if len(s.Verified) != 1 || s.Verified[0] != in.State.Stable.Hash {
			t.Errorf("a rejected version is verified: %v", s.Verified)
		}
	}
}

// TestEachReadyPodIsProgress checks that each ready pod restarts the deadline.
func TestEachReadyPodIsProgress(t *testing.T) {
	h := twoVersions(func(s *rollout.Spec) { s.ProgressDeadlineSeconds = 60 })
	fresh := set(h, commitID(1), 2, 1)
	in := inFlight(h, 0, set(h, commitID(0), 8, 8), fresh)
	in.Now = in.Now.Add(30 * time.Second)
	late, _, _ := strategies.Overdue(in)
	fresh.ReadySince = []time.Time{fresh.ReadySince[0], in.Now}
	fresh.Desired, fresh.Pods = 3, 3
	in.Observed.Workloads[web].Revisions[1] = fresh
	if later, _, _ := strategies.Overdue(in); !later.Equal(late.Add(30 * time.Second)) {
		t.Errorf("with another ready pod it is late at %s, without at %s", later, late)
	}
}

// TestOtherStepsKeepTheRoutes checks that a change of the steps does not change the recorded routes, so that weights do not jump.
func TestOtherStepsKeepTheRoutes(t *testing.T) {
	h, in := atStep(func(s *rollout.Spec) {
		s.Scaling = rollout.Surge
		s.Canary.StableService, s.Canary.CanaryService = "web", "web-canary"
		s.Canary.Traffic = &rollout.Traffic{MaxWeight: 100, Routers: []rollout.Router{httpRoute("web")}}
	}, 1)
	routed := &rollout.Routing{Step: 0, Weight: 20, At: noon}
	in.State.Progress[0].Routed = routed
	for name, first := range map[string]int{"a later step": 20, "the step itself": 10} {
		h.push(func(s *source) {
			s.workloads[0].editCanary(func(c *rollout.Canary) { c.Steps = []rollout.Step{weight(first), aPause, weight(70)} })
		})
		in.Head = h.headInput()
		if got := strategies.Decide(in).State.Progress[0].Routed; got == nil || got.Weight != 20 || !got.At.Equal(noon) {
			t.Errorf("%s: routed is %+v, was %+v", name, got, routed)
		}
	}
}

// TestTimeoutsWhileGitCannotBeRead checks the timeout of a pause while the head is unreadable or lacks the Rollout document. The app is
// requeued for the timeout, and rolls back at that time.
func TestTimeoutsWhileGitCannotBeRead(t *testing.T) {
	h, in := atStep(func(s *rollout.Spec) {
		s.Canary.Steps[1].Pause = &rollout.Pause{Timeout: new(2 * time.Hour), OnTimeout: rollout.TimeoutAbort}
	}, 1)
	due := in.State.Progress[0].Entered.Add(2 * time.Hour)
	h.push(func(s *source) { s.workloads[0].plain = true })
	for name, head := range map[string]strategies.Head{
		"broken": {Err: errors.New("it is not valid")}, "without its document": h.headInput(),
	} {
		in.Head, in.Now = head, due.Add(-time.Hour)
		if d := strategies.Decide(in); !d.Requeue.Equal(due) || d.State.Held == nil {
			t.Errorf("%s: it is looked at again at %s, want %s; held: %+v", name, d.Requeue, due, d.State.Held)
		}
		in.Now = due
		checkPhase(t, name+", then", in, rollout.Aborting)
	}
}

// TestSupersededWithoutItsCommit checks a push during a promotion. The branch was rewritten, so a restarted process cannot fetch the
// promoted commit. The promoted version becomes stable only if all users are on it.
func TestSupersededWithoutItsCommit(t *testing.T) {
	for name, tc := range map[string]struct {
		fresh, ready, stable int // number of pods
		want                 rollout.Phase
	}{
		"NoPodIsReady": {1, 0, 10, rollout.Aborting},
		"BothServe":    {5, 5, 5, rollout.Aborting},
		"Arrived":      {10, 10, 0, rollout.Healthy},
	} {
		h := twoVersions(nil)
		in := inFlight(h, 3, set(h, commitID(1), tc.fresh, tc.ready), set(h, commitID(0), tc.stable, tc.stable))
		in.State.Phase = rollout.Promoting
		h.push(version("v3"))
		in.Head, in.Source = h.headInput(), nil
		checkPhase(t, name, in, tc.want)
	}
}
