package strategies_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// resting returns an app without a release in flight. The given number of its 5 pods is ready.
func resting(ready int) strategies.Input {
	r := &rollout.Render{Digest: "d", Objects: []rollout.Object{{"kind": "Deployment"}}}
	return strategies.Input{
		Now: noon, App: testApp, Answers: healed, Head: strategies.Head{Commit: rollout.Commit{ID: "c1"}, Render: r}, Source: r,
		State: rollout.State{App: "shop", Path: testApp.Path, Phase: rollout.Healthy, Source: "c1"},
		Observed: rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{
			web: {Replicas: 5, Revisions: []rollout.Revision{{Current: true, ReadySince: make([]time.Time, ready)}}},
		}},
	}
}

// watchHealth calls Decide once for each second. For each changed state, it returns the second and the commit subject.
func watchHealth(t *testing.T, seconds int, at func(second int) strategies.Input) string {
	t.Helper()
	var got []string
	var h strategies.Health
	state := resting(5).State
	state.Inventory = []rollout.Ref{web.Ref(), {Group: "batch", Kind: "Job", Namespace: "shop", Name: "move"}}
	for i := range seconds {
		in := at(i)
		in.Now, in.State = noon.Add(time.Duration(i)*time.Second), state
		var lasting, other error
		if lasts := in.Health.Lasts; lasts != "" {
			lasting = fmt.Errorf("%s: %w", lasts, rollout.ErrOverwritten)
		}
		if why := in.Health.Why; why != "" {
			other = errors.New(why)
		} else { // the last error of an apply
			lasting, other = nil, lasting
		}
		h = h.Seen(in).Applied(lasting, other, in.Now)
		in.Health = h
		d := strategies.Decide(in)
		if d.State.Equal(&state) != (d.Subject == "") {
			t.Fatalf("second %d: %q although equal: %t", i, d.Subject, d.Subject != "")
		}
		if d.Subject != "" {
			got = append(got, fmt.Sprintf("%d %s", i, d.Subject))
		}
		state = d.State
	}
	return strings.Join(got, ", ")
}

// TestHealthIsRecordedOnce checks that a problem is recorded after its deadline and removed after a minute of health. Pods that become
// ready and unready meanwhile cause no commit.
func TestHealthIsRecordedOnce(t *testing.T) {
	at := func(text string, second int) string { return strings.Replace(text, "#", fmt.Sprint(second), 1) }
	troubled := func(trouble rollout.Trouble) func(int) strategies.Input {
		return func(i int) strategies.Input {
			in, now := resting(5), trouble
			now.Message = at(now.Message, i)
			in.Observed.Troubled = []rollout.Trouble{now}
			return in
		}
	}
	refused := func(why string, is func(second int) bool) func(int) strategies.Input {
		return func(i int) strategies.Input {
			in := resting(5)
			if is(i) {
				in.Health.Why = at(why, i)
			}
			return in
		}
	}
	// 4 of 5 pods are always ready. A restart deletes one old pod each minute, until the given number of deletions.
	restarting := func(deletes int, change func(i int, in *strategies.Input)) func(int) strategies.Input {
		return func(i int) strategies.Input {
			in := resting(4)
			in.Source = &rollout.Render{Digest: "d", Specs: []rollout.Spec{{Workload: web, RestartAt: noon, ProgressDeadlineSeconds: 100}}}
			changeLive(&in, web, func(live *rollout.ObservedWorkload) {
				live.Synced = true
				live.Revisions[0].Members = slices.Repeat([]rollout.Pod{{Created: noon.Add(-time.Hour)}}, 30-min(i/60, deletes))
			})
			change(i, &in)
			return in
		}
	}
	requested := func(after time.Duration) func(int, *strategies.Input) {
		return func(_ int, in *strategies.Input) { in.Source.Specs[0].RestartAt = noon.Add(after) }
	}
	job := rollout.Ref{Group: "batch", Kind: "Job", Namespace: "shop", Name: "move"}
	elsewhere := job
	elsewhere.Namespace = "another"
	const none, four = "shop degraded: Deployment shop/web: 0 of 5 pods are ready", "shop degraded: Deployment shop/web: 4 of 5 pods are ready"
	const absent, mallory = "Deployment shop/web: the API server is not there", "Deployment shop/web: is changed by mallory again and again"
	cases := map[string]struct {
		at   func(second int) strategies.Input
		want string
	}{
		"well":                   {func(int) strategies.Input { return resting(5) }, ""},
		"no pod is ever ready":   {func(int) strategies.Input { return resting(0) }, "600 " + none},
		"pods crash in a circle": {func(i int) strategies.Input { return resting(i % 5) }, "604 " + four},
		"all are ready for a moment, again and again": {func(i int) strategies.Input { return resting(5 * (i / 50 % 2)) }, ""},
		"one more is ready every five minutes":        {func(i int) strategies.Input { return resting(min(5, i/300)) }, ""},
		"a restart that is longer than the deadline":  {restarting(99, requested(0)), ""},
		"a restart whose new pods are not ready":      {restarting(3, requested(0)), "280 " + four},
		"a restart to come":                           {restarting(99, requested(24*time.Hour)), "100 " + four},
		"a restart that begins after a deletion":      {restarting(1, requested(56*time.Second)), "100 " + four},
		"a restart that begins before a deletion":     {restarting(1, requested(54*time.Second)), "160 " + four},
		"a later request for the new pods, too": {restarting(0, func(i int, in *strategies.Input) {
			requested(time.Duration(i/90)*80*time.Second)(i, in)
			in.Observed.Workloads[web].Revisions[0].Members[0].Created = noon.Add(time.Minute)
		}), "100 " + four},
		"pods go while a watch fails": {restarting(99, func(_ int, in *strategies.Input) { in.Observed.Unseen = "broken" }), "100 " + four},
		"a watch fails for a moment": {restarting(0, func(i int, in *strategies.Input) {
			if i == 50 {
				in.Observed.Unseen = "broken"
			}
		}), "100 " + four},
		"pods go before the controller has seen the Deployment": {restarting(99, func(_ int, in *strategies.Input) {
			changeLive(in, web, func(live *rollout.ObservedWorkload) { live.Synced = false })
		}), "100 " + four},
		"the last old pod goes": {restarting(1, func(_ int, in *strategies.Input) {
			changeLive(in, web, func(live *rollout.ObservedWorkload) { live.Revisions[0].Members = live.Revisions[0].Members[29:] })
		}), "160 " + four},
		"texts that differ": {func(i int) strategies.Input {
			in := resting(0)
			in.Observed.Workloads[web].Revisions[0].Problem = fmt.Sprintf("restarted %d times", i)
			return in
		}, "600 " + none + " (restarted 600 times)"},
		"a foreign version": {func(i int) strategies.Input {
			in := resting(5)
			in.Source = &rollout.Render{Digest: "d", Commit: rollout.Commit{ID: "c1"}, Templates: map[rollout.Workload]rollout.Hash{web: "h1-ours"}}
			changeLive(&in, web, func(live *rollout.ObservedWorkload) { live.Hash = "h1-mallory" })
			return in
		}, "60 shop degraded: Deployment shop/web: it runs h1-mallory and should run h1-ours: another client has changed the object"},
		"well again, but not for long": {func(i int) strategies.Input {
			if i > 700 && i%50 < 40 {
				return resting(5)
			}
			return resting(0)
		}, "600 " + none},
		"well again": {func(i int) strategies.Input { return resting(5 * (i / 700)) }, "600 " + none + ", 760 shop is well again"},
		"an object says that it failed": {troubled(rollout.Trouble{Ref: job, Failed: true, Message: "failed at try #"}),
			"60 shop degraded: Job shop/move: failed at try 60"},
		"an object that may be on its way": {troubled(rollout.Trouble{Ref: job, Message: "0 of 1 are there"}),
			"600 shop degraded: Job shop/move: 0 of 1 are there"},
		"an object of its label that it does not ask for": {
			troubled(rollout.Trouble{Ref: elsewhere, Failed: true, Message: "failed at try #"}), ""},
		"the cluster does not take it": {refused("Deployment shop/web: refused at try #", func(int) bool { return true }),
			"61 shop degraded: Deployment shop/web: refused at try 61"},
		"it is put back, and is another one again": {refused(mallory, func(i int) bool { return i < 300 && i%20 < 12 }),
			"61 shop degraded: " + mallory + ", 362 shop is well again"},
		"another writer has changed it again and again": {func(i int) strategies.Input {
			in := resting(5)
			if i >= 15 && i < 300 {
				in.Health.Lasts = "Deployment shop/web: is changed by hpa"
			}
			return in
		}, "16 shop degraded: Deployment shop/web: is changed by hpa: overwritten again and again, 370 shop is well again"},
		"a short failure beside another writer": {func(i int) strategies.Input {
			in := refused(absent, func(i int) bool { return i >= 10 && i < 40 })(i)
			if i >= 15 {
				in.Health.Lasts = "Deployment shop/web: is changed by hpa"
			}
			return in
		}, "15 shop degraded: Deployment shop/web: is changed by hpa: overwritten again and again"},
		"it is taken when the minute is over": {refused(absent, func(i int) bool { return i < 60 }), ""},
		"it is refused now and then":          {refused(absent, func(i int) bool { return i%100 < 40 }), ""},
		"a Deployment that says so of itself counts by its pods": {
			troubled(rollout.Trouble{Ref: web.Ref(), Message: "Available: 0/5"}), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			compare.Check(t, c.want, watchHealth(t, 1300, c.at))
		})
	}
}

// TestHealthLooksAgain checks that an app is requeued for the deadline of a problem, and that a restarted process starts the deadline anew.
func TestHealthLooksAgain(t *testing.T) {
	in := resting(0)
	in.Health = strategies.Health{}.Seen(in)
	if d := strategies.Decide(in); !d.Requeue.Equal(noon.Add(10*time.Minute)) || d.Subject != "" {
		t.Errorf("%q, looks again at %s", d.Subject, d.Requeue)
	}
	in.Now, in.Health = noon.Add(time.Hour), strategies.Health{}
	if d := strategies.Decide(in); d.Subject != "" {
		t.Errorf("a process that has just started: %q", d.Subject)
	}
	in = resting(5)
	in.State.Unhealthy = "0 of 5"
	in.Health = strategies.Health{}.Seen(in)
	if d := strategies.Decide(in); d.Subject != "" || !d.Requeue.Equal(noon.Add(time.Minute)) {
		t.Errorf("%q, looks again at %s", d.Subject, d.Requeue)
	}
}

// TestLastingFailureInARelease checks that a release records a failure that no retry ends, and that a short failure beside it makes no
// commit.
func TestLastingFailureInARelease(t *testing.T) {
	unlabelled := fmt.Errorf("%w: %w", rollout.ErrUnlabelled, errors.New("no right to patch pods"))
	fights := fmt.Errorf("Deployment shop/web is changed by hpa: %w", rollout.ErrOverwritten)
	short := errors.New("the API server is not there")
	both := fights.Error() + " " + unlabelled.Error()
	_, in := atStep(nil, 1)
	for _, step := range []struct {
		name           string
		lasting, other error
		reason         string
	}{
		{"a short failure", nil, short, ""},
		{"lasting failures", errors.Join(fights, unlabelled), nil, both},
		{"a short failure beside them", errors.Join(fights, unlabelled), short, both},
		{"no failure", nil, nil, ""},
	} {
		was := in.State.Reason
		in.Health = strategies.Health{}.Applied(step.lasting, step.other, in.Now)
		d := strategies.Decide(in)
		compare.CheckNamed(t, step.name, []any{step.reason, step.reason != was}, []any{d.State.Reason, d.Subject != ""})
		in.State = d.State
	}
}
