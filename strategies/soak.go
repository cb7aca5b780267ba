package strategies

import (
	"cmp"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// withSoaked records evidence for later stages: an app was Healthy at its commit for its stage's soak time. Only this
// cluster's clock counts. Content without a new version soaks for at least a minute.
func withSoaked(in, _ Input, d Decision) Decision {
	s, h, stage := &d.State, in.Health, in.Stage
	if stage == nil || d.Stale || s.Source == "" || s.Release != nil || s.Shown() != rollout.Healthy ||
		h.At != s.Source || h.AtSince.IsZero() || s.HasSoaked(s.Source) {
		return d
	}
	soak := stage.Soak
	if in.State.Stable == nil || in.State.Stable.Commit != s.Source {
		soak = max(soak, wellFor)
	}
	if due := h.AtSince.Add(soak); in.Now.Before(due) {
		d.Requeue = rollout.Soonest(d.Requeue, due)
	} else if !h.HealthySince.IsZero() {
		all := append([]rollout.Soaked{{Commit: s.Source, At: rollout.Second(in.Now)}}, s.Soaked...)
		s.Soaked = all[:min(len(all), rollout.MaxHistory)]
		d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s has soaked at %s", s.App, rollout.ShortID(s.Source)))
	}
	return d
}

// atSince returns since when the record is Healthy at its commit. The record has this time only for a new version.
// Other content, and a version after a rejection, begins again after a restart.
func (h Health) atSince(in Input) time.Time {
	s := in.State
	switch {
	case s.Shown() != rollout.Healthy:
		return time.Time{}
	case h.At == s.Source && !h.AtSince.IsZero():
		return h.AtSince
	case h.At != "" || s.Stable == nil || s.Stable.Commit != s.Source,
		len(s.Rejected) > 0 && !s.Rejected[0].At.Before(s.Stable.Since):
		return in.Now
	}
	return s.Stable.Since
}
