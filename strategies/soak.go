package strategies

import (
	"cmp"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// withSoaked records evidence for later stages: an app was Healthy at its commit for its stage's soak time. A commit
// without a new version has no release that waits for pods, so the app must also be healthy for a minute.
func withSoaked(in, given Input, d Decision) Decision {
	s, was, stage := &d.State, given.State, in.Stage
	isWell := func(s rollout.State) bool { return s.Release == nil && s.Shown() == rollout.Healthy }
	isNew := was.Stable != nil && was.Stable.Commit == s.Source
	switch stays := s.Source == was.Source && isWell(was); {
	case d.Stale:
		return d
	case s.Source == "" || !isWell(*s) || s.HasSoaked(s.Source) || stage == nil && !stays:
		s.SoaksSince = time.Time{}
		return d
	case stage == nil: // fleet.yaml may be unusable for a while
		return d
	case s.SoaksSince.IsZero() || !stays:
		s.SoaksSince = rollout.Second(in.Now)
	}
	in.State = *s
	due, since := s.SoaksSince.Add(stage.Soak), in.Health.HealthySince
	if !isNew {
		due = rollout.Later(due, rollout.Later(since, s.SoaksSince).Add(wellFor))
	}
	if in.Now.Before(due) {
		d.Requeue = rollout.Soonest(d.Requeue, due)
		d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s soaks at %s", s.App, rollout.ShortID(s.Source)))
	} else if !since.IsZero() && len(unhealthy(in)) == 0 {
		all := append([]rollout.Soaked{{Commit: s.Source, At: rollout.Second(in.Now)}}, s.Soaked...)
		s.Soaked, s.SoaksSince = all[:min(len(all), rollout.MaxHistory)], time.Time{}
		d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s has soaked at %s", s.App, rollout.ShortID(s.Source)))
	}
	return d
}
