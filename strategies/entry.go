package strategies

import (
	"cmp"
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// heldBehind decides for an app that waits for a shared change and is also held for another reason, such as a freeze.
// Until that hold ends, other apps' progress in the shared change changes no record of the app.
func heldBehind(in Input) (d Decision, is bool) {
	e, s := in.Entry, in.State
	if e == nil || e.Open || e.Hold == "" || in.Source == nil || s.Release != nil || s.Phase == rollout.Aborting {
		return d, false
	}
	in.Entry = nil
	d = Decide(in)
	isOwn := func(h *rollout.Held) bool {
		return h != nil && !h.Is(rollout.HeldCohort, rollout.HeldShared, rollout.HeldStage, rollout.HeldFleet,
			rollout.HeldHook)
	}
	stays := d.State.Source == s.Source && d.State.Release == nil && isOwn(d.State.Held)
	asks := d.Ask != nil && d.Ask.Accept != "" // d asks whether the API server still refuses the head
	return d, stays && d.State.Held.Is(rollout.HeldClosed) || isOwn(s.Held) && (stays || asks)
}

// withEntry holds an app at rest until the app may take a shared change, and records the entry.
func withEntry(in, given Input, d Decision) Decision {
	e := in.Entry
	if e == nil || d.Stale {
		return d
	}
	s := &d.State
	if e.Open {
		switch takes := s.Source == in.Head.Commit.ID && s.Source != given.State.Source && !d.Rollback; {
		case takes && e.Held == "":
			s.Entered = &rollout.Entered{At: rollout.Second(in.Now), Commit: s.Source, Place: e.Place}
			s.Entered.Was = given.State.Source
		case takes && e.Note != "" && d.Subject != "":
			d.Subject += "; " + e.Note
		}
		return d
	}
	d.Requeue = rollout.Soonest(d.Requeue, laterOnly(e.Due, in.Now))
	old := given.State.Held
	isFirst := s.Source == "" && s.Held.Is(rollout.HeldStage, rollout.HeldFleet) // s.Held is the head's error
	if s.Release != nil || s.Phase == rollout.Aborting || s.Held != nil && !isFirst {
		return d
	}
	if e.Hold == "" {
		if e.Held != "" && old != nil {
			s.Held, d.Waiting = old, e.Waits // keep the hold until the answer is known
		}
		return d
	}
	h := &rollout.Held{Reason: rollout.HeldCohort, Commit: e.Commit.ID, Author: e.Commit.Author, Message: e.Message()}
	if h.Reason = cmp.Or(e.Held, h.Reason); e.Asks {
		h.Reason = rollout.HeldShared
	}
	if old != nil && old.Reason == h.Reason && untilOnly(old.Message) == untilOnly(h.Message) &&
		old.Commit == h.Commit { // promotion files name the commit
		h = old // a new process may not know the author
	}
	if s.Held, d.Waiting = h, e.Waits; (d.Subject == "" || isFirst) && h != given.State.Held {
		d.Subject = fmt.Sprintf("%s held: %s", s.App, h.Message)
	}
	return d
}

// withWell records when an app became healthy with a shared change that makes no new version.
func withWell(in, _ Input, d Decision) Decision {
	s := &d.State
	e := s.Entered
	if d.Stale || e == nil || !e.Well.IsZero() || s.Phase != rollout.Healthy || s.Unhealthy != "" || s.IsNewSince(e.At) {
		return d
	}
	since := in.Health.HealthySince
	if due := rollout.Later(since, e.At).Add(wellFor); in.Now.Before(due) {
		d.Requeue = rollout.Soonest(d.Requeue, due)
	} else if !since.IsZero() {
		well := *e
		well.Well, s.Entered = rollout.Second(in.Now), &well
		d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s is healthy with %s", s.App, rollout.ShortID(e.Commit)))
	}
	return d
}
