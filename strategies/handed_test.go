package strategies_test

import (
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestPauseBeginsOnce checks that a pause begins with its first decision, even if Decide repeats the decision because the record's push is
// late. If this push is much later, the pause begins anew, because Git did not show the pause before.
func TestPauseBeginsOnce(t *testing.T) {
	pause := rollout.Step{Pause: &rollout.Pause{Duration: new(time.Minute)}}
	at := func() strategies.Input {
		_, in := atStep(func(s *rollout.Spec) { s.Canary.Steps = []rollout.Step{weight(20), pause, weight(50), pause} }, 0)
		return in
	}
	first := strategies.Decide(at()).State
	if pr := first.Progress[0]; pr.Step != 1 {
		t.Fatalf("it is at step %d, not at its pause", pr.Step)
	}
	for name, tt := range map[string]struct {
		change func(*strategies.Input, *rollout.State)
		after  time.Duration
		want   time.Duration // how long after the first decision the pause begins
	}{
		"soon":            {nil, 900 * time.Millisecond, 0},
		"late":            {nil, 6 * time.Second, 6 * time.Second},
		"nothing waits":   {func(in *strategies.Input, _ *rollout.State) { in.Handed = nil }, time.Second, time.Second},
		"another release": {func(_ *strategies.Input, s *rollout.State) { s.Release.Hash = "r1-other" }, time.Second, time.Second},
		"another list":    {func(_ *strategies.Input, s *rollout.State) { s.Progress[0].Plan = "other" }, time.Second, time.Second},
		"another step":    {func(_ *strategies.Input, s *rollout.State) { s.Progress[0].Step = 3 }, time.Second, time.Second},
		"a clock set back": {func(in *strategies.Input, s *rollout.State) {
			s.Progress[0].Entered = s.Progress[0].Entered.Add(time.Hour)
		}, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in, handed := at(), first
			release := *first.Release
			handed.Release, handed.Progress = &release, slices.Clone(first.Progress)
			in.Now, in.Handed = in.Now.Add(tt.after), &handed
			if tt.change != nil {
				tt.change(&in, &handed)
			}
			compare.CheckNamed(t, "the pause begins after", tt.want, strategies.Decide(in).State.Progress[0].Entered.Sub(first.Progress[0].Entered))
		})
	}
}
