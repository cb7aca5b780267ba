package strategies

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// StartOver returns an app's record on a new cluster without workloads: in a rollback to stable, after which Git's
// version is released from its first step. It is false for an app that was never stable: it gets a first deployment.
func StartOver(s rollout.State, now time.Time) (rollout.State, bool) {
	if s.Stable == nil {
		return rollout.State{}, false
	}
	to := s.Stable.Commit
	if s.Release == nil && s.Source != "" && s.Phase == rollout.Healthy {
		to = s.Source // a later commit that changed no version
	}
	stable := *s.Stable
	s.Phase, s.Reason = rollout.Aborting, "this cluster is new: stable first"
	s.Release, s.Progress, s.Draining, s.Held, s.Hooks = &stable, nil, nil, nil, nil
	s.Rollback = &rollout.Rollback{Routed: rollout.Second(now), Drain: rollout.Second(now), To: to}
	s.Source = to
	s.Serial++
	return s, true
}
