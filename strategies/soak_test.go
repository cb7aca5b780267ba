package strategies_test

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// soaking returns an app at rest whose version became stable at noon.
func soaking(ready int) strategies.Input {
	in := resting(ready)
	in.State.Inventory = []rollout.Ref{web.Ref()}
	in.State.Stable = &rollout.Release{Commit: "c1", Hash: "h1-a", Since: noon}
	in.Stage = &rollout.Stage{Name: "staging", Soak: 10 * time.Minute}
	return in
}

// TestSoaked checks the minute in which a commit is recorded as soaked. The commit must be recorded only once.
func TestSoaked(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(minute int, in *strategies.Input)
		want   int // minute; -1: never
	}{
		"a version":                   {func(int, *strategies.Input) {}, 10},
		"content":                     {func(_ int, in *strategies.Input) { in.State.Stable.Commit = "c0" }, 10},
		"no stage":                    {func(_ int, in *strategies.Input) { in.Stage = nil }, -1},
		"no soak time":                {func(_ int, in *strategies.Input) { in.Stage.Soak = 0 }, 0},
		"content without a soak time": {func(_ int, in *strategies.Input) { in.State.Stable.Commit, in.Stage.Soak = "c0", 0 }, 1},
		"Degraded":                    {func(_ int, in *strategies.Input) { in.State.Phase = rollout.Degraded }, -1},
		"recorded as unhealthy": {func(minute int, in *strategies.Input) {
			if minute == 5 {
				in.State.Unhealthy = "Deployment shop/web: 1 of 5 pods is ready"
			}
		}, 15},
		"a rejection": {func(_ int, in *strategies.Input) {
			in.State.Rejected = []rollout.Rejection{{Hash: "h1-b", At: noon.Add(time.Hour)}}
		}, 10},
		"unready pods": {func(minute int, in *strategies.Input) {
			if minute >= 5 && minute < 13 {
				in.Observed = soaking(3).Observed
			}
		}, 13},
		"soaked before": {func(_ int, in *strategies.Input) { in.State.Soaked = []rollout.Soaked{{Commit: "c1"}} }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var h strategies.Health
			state, got := rollout.State{}, -1
			for minute := range 20 {
				in := soaking(5)
				if minute > 0 {
					in.State.Soaked, in.State.SoaksSince = state.Soaked, state.SoaksSince
				}
				in.Now = noon.Add(time.Duration(minute) * time.Minute)
				tt.change(minute, &in)
				h = h.Seen(in)
				in.Health = h
				had := len(in.State.Soaked)
				d := strategies.Decide(in)
				if state = d.State; len(state.Soaked) > had {
					if got >= 0 {
						t.Errorf("recorded again in minute %d", minute)
					}
					got = minute
					compare.CheckNamed(t, "evidence", rollout.Soaked{Commit: "c1", At: in.Now}, state.Soaked[0])
					compare.CheckNamed(t, "subject", "shop has soaked at c1", d.Subject)
				}
			}
			compare.CheckNamed(t, "minute", tt.want, got)
		})
	}
}

// TestSoakedAfterARestart checks that a soak continues in a new process. For a commit without a new version, the process first observes the
// pods for a minute. A soak begins when the app gets a stage, or becomes Healthy again.
func TestSoakedAfterARestart(t *testing.T) {
	const now = time.Hour
	for name, tt := range map[string]struct {
		change func(*strategies.Input)
		due    time.Duration // 0: recorded now
	}{
		"a version":        {func(*strategies.Input) {}, 0},
		"content":          {func(in *strategies.Input) { in.State.Stable.Commit = "c0" }, now + time.Minute},
		"Healthy again":    {func(in *strategies.Input) { in.State.SoaksSince = noon.Add(55 * time.Minute) }, 65 * time.Minute},
		"from before":      {func(in *strategies.Input) { in.State.SoaksSince = time.Time{} }, now + 10*time.Minute},
		"a refused object": {func(in *strategies.Input) { in.Health.Why = "Service shop/web: refused" }, now + time.Minute},
	} {
		in := soaking(5)
		in.State.SoaksSince, in.Now = noon, noon.Add(now)
		in.Health = strategies.Health{}.Seen(in)
		tt.change(&in)
		d := strategies.Decide(in)
		compare.CheckNamed(t, name, tt.due == 0, len(d.State.Soaked) > 0)
		in.State, in.Stage = d.State, nil
		compare.CheckNamed(t, name+", while fleet.yaml is unusable", d.State.SoaksSince, strategies.Decide(in).State.SoaksSince)
		if due := noon.Add(tt.due); tt.due > 0 && name != "a refused object" && !d.Requeue.Equal(due) {
			t.Errorf("%s: due at %s, want %s", name, d.Requeue, due)
		}
	}
}

// TestSoakedKeepsTheNewest checks that the record has the newest ten entries.
func TestSoakedKeepsTheNewest(t *testing.T) {
	in := soaking(5)
	for i := range rollout.MaxHistory {
		in.State.Soaked = append(in.State.Soaked, rollout.Soaked{Commit: fmt.Sprint("c", 20-i)})
	}
	in.Now, in.State.SoaksSince = noon.Add(time.Hour), noon
	in.Health = strategies.Health{}.Seen(in)
	got := strategies.Decide(in).State.Soaked
	if len(got) != rollout.MaxHistory || got[0].Commit != "c1" || got[9].Commit != "c12" {
		t.Errorf("%+v", got)
	}
}
