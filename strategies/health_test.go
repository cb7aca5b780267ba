package strategies

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// resting returns a healthy app of 5 pods, of which ready are ready.
func resting(ready int) Input {
	in := Input{
		Now: noon, App: testApp, Answers: Answers{Healed: new(true)},
		State: rollout.State{App: "shop", Path: testApp.Path, Phase: rollout.Healthy, Source: "c1"},
	}
	in.Head = Head{Commit: rollout.Commit{ID: "c1"}, Render: &rollout.Render{Digest: "d", Objects: []rollout.Object{{"kind": "Deployment"}}}}
	in.Source = in.Head.Render
	in.Observed.Workloads = map[rollout.Workload]rollout.ObservedWorkload{
		{Namespace: "shop", Name: "web"}: {Replicas: 5, Revisions: []rollout.Revision{{Current: true, ReadySince: make([]time.Time, ready)}}},
	}
	return in
}

// watchHealth shows the app one observation per second, and returns its records with their seconds.
func watchHealth(t *testing.T, seconds int, at func(second int) Input) []string {
	t.Helper()
	var got []string
	var h Health
	state := resting(5).State
	state.Inventory = []rollout.Ref{
		rollout.Workload{Namespace: "shop", Name: "web"}.Ref(), {Group: "batch", Kind: "Job", Namespace: "shop", Name: "move"},
	}
	for i := range seconds {
		in := at(i)
		in.Now, in.State = noon.Add(time.Duration(i)*time.Second), state
		var refused error
		if why := in.Health.Why; why != "" {
			refused = errors.New(why)
			if in.Health.Lasts {
				refused = fmt.Errorf("%s: %w", why, rollout.ErrOverwritten)
			}
		}
		h = h.Seen(in).Applied(refused, in.Now)
		in.Health = h
		d := Decide(in)
		if d.State.Equal(&state) != (d.Subject == "") {
			t.Fatalf("second %d: %q although equal: %t", i, d.Subject, d.Subject != "")
		}
		if d.Subject != "" {
			got = append(got, fmt.Sprintf("%d %s", i, d.Subject))
		}
		state = d.State
	}
	return got
}

// TestHealthIsRecordedOnce checks that a problem is recorded after its deadline, and ends after one minute of health.
// Pods that come and go in between add no record.
func TestHealthIsRecordedOnce(t *testing.T) {
	job := rollout.Trouble{Ref: rollout.Ref{Group: "batch", Kind: "Job", Namespace: "shop", Name: "move"}, Failed: true}
	none := "shop degraded: Deployment shop/web: 0 of 5 pods are ready"
	cases := map[string]struct {
		at   func(second int) Input
		want []string
	}{
		"well":                   {func(int) Input { return resting(5) }, nil},
		"no pod is ever ready":   {func(int) Input { return resting(0) }, []string{"600 " + none}},
		"pods crash in a circle": {func(i int) Input { return resting(i % 5) }, []string{"604 shop degraded: Deployment shop/web: 4 of 5 pods are ready"}},
		"all are ready for a moment, again and again": {func(i int) Input { return resting(5 * (i / 50 % 2)) }, nil},
		"one more is ready every five minutes":        {func(i int) Input { return resting(min(5, i/300)) }, nil},
		"texts that differ": {func(i int) Input {
			in := resting(0)
			for _, live := range in.Observed.Workloads {
				live.Revisions[0].Problem = fmt.Sprintf("restarted %d times", i)
			}
			return in
		}, []string{"600 " + none + " (restarted 600 times)"}},
		"a foreign version": {func(i int) Input {
			in, w := resting(5), rollout.Workload{Namespace: "shop", Name: "web"}
			live := in.Observed.Workloads[w]
			live.Hash = "h1-mallory"
			in.Source = &rollout.Render{Digest: "d", Commit: rollout.Commit{ID: "c1"}, Templates: map[rollout.Workload]rollout.Hash{w: "h1-ours"}}
			in.Observed.Workloads[w] = live
			return in
		}, []string{"60 shop degraded: Deployment shop/web: it runs h1-mallory, and it should run h1-ours: something else has changed it"}},
		"well again, but not for long": {func(i int) Input {
			if i > 700 && i%50 < 40 {
				return resting(5)
			}
			return resting(0)
		}, []string{"600 " + none}},
		"well again": {func(i int) Input { return resting(5 * (i / 700)) }, []string{"600 " + none, "760 shop is well again"}},
		"an object says that it failed": {func(i int) Input {
			in := resting(5)
			job.Message = fmt.Sprint("failed at try ", i)
			in.Observed.Troubled = []rollout.Trouble{job}
			return in
		}, []string{"60 shop degraded: Job shop/move: failed at try 60"}},
		"an object that may be on its way": {func(int) Input {
			in := resting(5)
			in.Observed.Troubled = []rollout.Trouble{{Ref: job.Ref, Message: "0 of 1 are there"}}
			return in
		}, []string{"600 shop degraded: Job shop/move: 0 of 1 are there"}},
		"an object of its label that it does not ask for": {func(int) Input {
			in, other := resting(5), job
			other.Ref.Namespace = "another"
			in.Observed.Troubled = []rollout.Trouble{other}
			return in
		}, nil},
		"the cluster does not take it": {func(i int) Input {
			in := resting(5)
			in.Health.Why = fmt.Sprint("Deployment shop/web: refused at try ", i)
			return in
		}, []string{"61 shop degraded: Deployment shop/web: refused at try 61"}},
		"it is put back, and is another one again": {func(i int) Input {
			in := resting(5)
			if i < 300 && i%20 < 12 {
				in.Health.Why = "Deployment shop/web: is changed by mallory again and again"
			}
			return in
		}, []string{"61 shop degraded: Deployment shop/web: is changed by mallory again and again", "362 shop is well again"}},
		"another writer has changed it again and again": {func(i int) Input {
			in := resting(5)
			if i >= 15 && i < 300 {
				in.Health.Why, in.Health.Lasts = "Deployment shop/web: is changed by hpa", true
			}
			return in
		}, []string{"16 shop degraded: Deployment shop/web: is changed by hpa: overwritten again and again", "370 shop is well again"}},
		"it is taken when the minute is over": {func(i int) Input {
			in := resting(5)
			if i < 60 {
				in.Health.Why = "Deployment shop/web: the API server is not there"
			}
			return in
		}, nil},
		"it is refused now and then": {func(i int) Input {
			in := resting(5)
			if i%100 < 40 {
				in.Health.Why = "Deployment shop/web: the API server is not there"
			}
			return in
		}, nil},
		"a Deployment that says so of itself counts by its pods": {func(int) Input {
			in := resting(5)
			in.Observed.Troubled = []rollout.Trouble{{Ref: rollout.Workload{Namespace: "shop", Name: "web"}.Ref(), Message: "Available: 0/5"}}
			return in
		}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := watchHealth(t, 1300, c.at); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestHealthLooksAgain checks that the app is requeued for its deadline, and that a new process counts anew.
func TestHealthLooksAgain(t *testing.T) {
	in := resting(0)
	in.Health = Health{}.Seen(in)
	if d := Decide(in); !d.Requeue.Equal(noon.Add(10*time.Minute)) || d.Subject != "" {
		t.Errorf("%q, looks again at %s", d.Subject, d.Requeue)
	}
	in.Now, in.Health = noon.Add(time.Hour), Health{}
	if d := Decide(in); d.Subject != "" {
		t.Errorf("a process that has just started: %q", d.Subject)
	}
	in = resting(5)
	in.State.Unhealthy = "0 of 5"
	in.Health = Health{}.Seen(in)
	if d := Decide(in); d.Subject != "" || !d.Requeue.Equal(noon.Add(time.Minute)) {
		t.Errorf("%q, looks again at %s", d.Subject, d.Requeue)
	}
}
