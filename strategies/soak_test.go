package strategies

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// soaking returns an app at rest whose version became stable at noon.
func soaking(ready int) Input {
	in := resting(ready)
	in.State.Inventory = []rollout.Ref{web.Ref()}
	in.State.Stable = &rollout.Release{Commit: "c1", Hash: "h1-a", Since: noon}
	in.Stage = &rollout.Stage{Name: "staging", Soak: 10 * time.Minute}
	return in
}

// TestSoaked checks at which minute evidence is recorded, and that each state is recorded once. A process that restarts begins the soak of
// content without a version again.
func TestSoaked(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(minute int, in *Input)
		want   int // minute; -1: never
	}{
		"a version":                   {func(int, *Input) {}, 10},
		"content":                     {func(_ int, in *Input) { in.State.Stable.Commit = "c0" }, 10},
		"no stage":                    {func(_ int, in *Input) { in.Stage = nil }, -1},
		"no soak time":                {func(_ int, in *Input) { in.Stage.Soak = 0 }, 0},
		"content without a soak time": {func(_ int, in *Input) { in.State.Stable.Commit, in.Stage.Soak = "c0", 0 }, 1},
		"Degraded":                    {func(_ int, in *Input) { in.State.Phase = rollout.Degraded }, -1},
		"recorded as unhealthy": {func(minute int, in *Input) {
			in.State.Unhealthy = map[bool]string{true: "Deployment shop/web: 1 of 5 pods is ready"}[minute == 5]
		}, 16},
		"a rejection": {func(_ int, in *Input) {
			in.State.Rejected = []rollout.Rejection{{Hash: "h1-b", At: noon.Add(time.Hour)}}
		}, 10},
		"unready pods": {func(minute int, in *Input) {
			if minute < 13 {
				in.Observed = soaking(3).Observed
			}
		}, 13},
		"soaked before": {func(_ int, in *Input) { in.State.Soaked = []rollout.Soaked{{Commit: "c1"}} }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var h Health
			state, got := rollout.State{}, -1
			for minute := range 20 {
				in := soaking(5)
				if minute > 0 {
					in.State.Soaked = state.Soaked
				}
				in.Now = noon.Add(time.Duration(minute) * time.Minute)
				tt.change(minute, &in)
				h = h.Seen(in)
				in.Health = h
				had := len(in.State.Soaked)
				d := Decide(in)
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

// TestSoakedAfterARestart checks that the soak of a version continues in a new process, and that a rejection since then begins it again.
func TestSoakedAfterARestart(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Input)
		want   bool
	}{
		"a version":           {func(*Input) {}, true},
		"content":             {func(in *Input) { in.State.Stable.Commit = "c0" }, false},
		"a version, rejected": {func(in *Input) { in.State.Rejected = []rollout.Rejection{{At: noon.Add(time.Second)}} }, false},
	} {
		in := soaking(5)
		tt.change(&in)
		in.Now = noon.Add(time.Hour)
		in.Health = Health{}.Seen(in)
		d := Decide(in)
		compare.CheckNamed(t, name, tt.want, len(d.State.Soaked) > 0)
		if due := in.Now.Add(in.Stage.Soak); !tt.want && !d.Requeue.Equal(due) {
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
	in.Now = noon.Add(time.Hour)
	in.Health = Health{}.Seen(in)
	got := Decide(in).State.Soaked
	if len(got) != rollout.MaxHistory || got[0].Commit != "c1" || got[9].Commit != "c12" {
		t.Errorf("%+v", got)
	}
}
