package strategies_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestRestarts checks how many pods are deleted five seconds after the request, when the deletions begin. Ten pods of web were created
// before the request, and at most 2 may be missing at the same time.
func TestRestarts(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) { s.MinReadySeconds = 10 })
	stable := h.at(commitID(0)).Release()
	request := func(in *strategies.Input) *rollout.Promotion {
		return &rollout.Promotion{Release: stable, Decision: rollout.Restart, RestartAt: in.Now}
	}
	inDocument := func(in *strategies.Input, at time.Time) {
		specs := in.Source.Specs
		in.Source = &rollout.Render{Commit: in.Source.Commit, Objects: in.Source.Objects, Templates: in.Source.Templates,
			Specs: []rollout.Spec{specs[0]}}
		in.Source.Specs[0].RestartAt, in.Promotion = at, nil
	}
	const text = "the restart of shop/web: 10 pods created before 2026-11-20T13:00:00Z"
	const planned = "the restart of shop/web: planned for 2026-11-20T13:01:00Z"
	for name, tc := range map[string]struct {
		change func(*strategies.Input)
		want   int
		text   string
		due    time.Duration // time from the check until the next decision; 0 without a requeue
	}{
		"now":                {nil, 2, text, 0},
		"without a request":  {func(in *strategies.Input) { in.Promotion = nil }, 0, "", 0},
		"of another version": {func(in *strategies.Input) { in.Promotion.Release = "h1-other" }, 0, "", 0},
		"another decision":   {func(in *strategies.Input) { in.Promotion.Decision = rollout.Promote }, 0, "", 0},
		"a minute later": {func(in *strategies.Input) { in.Promotion.RestartAt = in.Now.Add(time.Minute) }, 0,
			planned, time.Minute},
		"pods that are as old": {func(in *strategies.Input) { in.Promotion.RestartAt = noon }, 0, "", 0},
		"by the document":      {func(in *strategies.Input) { inDocument(in, in.Now) }, 2, text, 0},
		"later by the document": {func(in *strategies.Input) { inDocument(in, in.Now.Add(time.Second)) }, 0,
			strings.Replace(text, "00Z", "01Z", 1), time.Second},
		"after a rejected version": {func(in *strategies.Input) { in.State.Phase = rollout.Degraded }, 2, text, 0},
		"during a rollback":        {func(in *strategies.Input) { in.State.Phase = rollout.Aborting }, 0, "", 0},
		"a first deployment":       {func(in *strategies.Input) { in.State.Phase = rollout.Progressing }, 0, "", 0},
		"while old pods are kept":  {func(in *strategies.Input) { in.State.Draining = &rollout.Draining{} }, 0, "", 0},
		"without a watch":          {func(in *strategies.Input) { in.Observed.Unseen = "the watch of pods is broken" }, 0, "", 0},
		"before the controller":    {withLive(func(live *rollout.ObservedWorkload) { live.Synced = false }), 0, "", 0},
		"a gone Deployment":        {func(in *strategies.Input) { delete(in.Observed.Workloads, web) }, 0, "", 0},
		"a pod that serves soon": {withLive(func(live *rollout.ObservedWorkload) {
			live.Revisions[0].ReadySince[9], live.Replicas = noon.Add(time.Hour-2*time.Second), 11
		}), 0, text, 3 * time.Second},
	} {
		in := world(h)
		in.Promotion = request(&in)
		changeLive(&in, web, func(live *rollout.ObservedWorkload) { live.Revisions[0].Members = membersOf(live.Revisions[0]) })
		if tc.change != nil {
			tc.change(&in)
		}
		in.Now = in.Now.Add(5 * time.Second)
		if got := strategies.Evictions(in); len(got) != tc.want {
			t.Errorf("%s: %d pods are deleted, want %d", name, len(got), tc.want)
		}
		text, due := strategies.Restarting(in)
		if want := in.Now.Add(tc.due); text != tc.text || !due.Equal(want) && tc.due != 0 || tc.due == 0 && !due.IsZero() {
			t.Errorf("%s: %q, due %v; want %q, due after %v", name, text, due, tc.text, tc.due)
		}
	}
}

func membersOf(r rollout.Revision) (all []rollout.Pod) {
	for i := range r.Pods {
		all = append(all, rollout.Pod{Name: r.Name + "-" + string(rune('a'+i)), Ready: i < r.Ready(), Created: noon})
	}
	return all
}

// TestRestartIsTold checks that a decision reports a restart, requeues the app for the next pod, and does not change the recorded state.
func TestRestartIsTold(t *testing.T) {
	h := oneWeb(nil)
	in := world(h)
	in.Promotion = &rollout.Promotion{Release: in.State.Stable.Hash, Decision: rollout.Restart, RestartAt: in.Now.Add(time.Minute),
		Digest: "a"}
	changeLive(&in, web, func(live *rollout.ObservedWorkload) { live.Revisions[0].Members = membersOf(live.Revisions[0]) })
	d := strategies.Decide(in)
	const want = "the restart of shop/web: planned for 2026-11-20T13:01:00Z"
	if d.Waiting != want || !d.Requeue.Equal(in.Now.Add(65*time.Second)) {
		t.Errorf("it waits for %q until %v, want %q until five seconds after the requested time", d.Waiting, d.Requeue, want)
	}
	if !d.State.Equal(&in.State) || d.Subject != "" {
		t.Errorf("%s: the restart is recorded: %+v", d.Subject, d.State)
	}
	h.push(version("v2"))
	in.Head = h.headInput()
	if d := strategies.Decide(in); d.State.Release == nil || strings.Contains(d.Waiting, "restart") {
		t.Errorf("a new version does not start: %+v, waits for %q", d.State.Release, d.Waiting)
	}
	if got := strategies.Evictions(strategies.Input{State: rollout.State{Phase: rollout.Healthy}}); got != nil {
		t.Errorf("without a source %v are deleted", got)
	}
}
