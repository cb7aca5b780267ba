package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Event is a state commit that changed an app's record.
type Event struct {
	Commit string
	At     time.Time
	State  rollout.State // at this commit
}

// Outcome is how a release ended.
type Outcome string

const (
	InFlight   Outcome = "inFlight"
	Succeeded  Outcome = "healthy"    // the release became stable
	Refused    Outcome = "rejected"   // aborted or failed, without automatic retry
	Reverted   Outcome = "reverted"   // reverted in Git; the stable version serves
	Superseded Outcome = "superseded" // replaced by a newer release
	Applied    Outcome = "applied"    // an app without stages followed a commit
	Recorded   Outcome = "recorded"   // already stable in the first record
)

// History is the output of "history" and "events".
type History struct {
	App      string `json:"app"`
	Cluster  string `json:"cluster"`
	Releases []Past `json:"releases"`       // newest first
	Note     string `json:"note,omitempty"` // why older releases or events are missing
}

// Past is a release in a history.
type Past struct {
	Images      []string           `json:"images,omitempty"`
	Hash        rollout.Hash       `json:"hash,omitempty"`
	Commit      string             `json:"commit"`
	Author      string             `json:"author,omitempty"`
	Subject     string             `json:"subject,omitempty"`
	Started     time.Time          `json:"started"`
	Ended       *time.Time         `json:"ended,omitempty"` // absent if in flight
	Outcome     Outcome            `json:"outcome"`
	Reason      string             `json:"reason,omitempty"`
	Fast        bool               `json:"fast,omitempty"`
	Step        int                `json:"step"`                 // finished steps of the least advanced workload
	Of          int                `json:"of,omitempty"`         // number of steps
	Skipped     int                `json:"skipped,omitempty"`    // steps that a full promotion skipped
	PromotedBy  []string           `json:"promotedBy,omitempty"` // users, in order
	Hooks       []rollout.HookRun  `json:"hooks,omitempty"`      // oldest first
	Analyses    []Analysis         `json:"analyses,omitempty"`
	Transitions []Transition       `json:"transitions,omitempty"`
	progress    []rollout.Progress // from the newest record
}

// Transition is a state commit during a release or, if Object is set, a Kubernetes Event.
type Transition struct {
	At     time.Time     `json:"at"`
	Phase  rollout.Phase `json:"phase,omitempty"` // of the app; "" for a Kubernetes Event
	Text   string        `json:"text"`
	Commit string        `json:"commit,omitempty"` // "" for a Kubernetes Event
	Object string        `json:"object,omitempty"` // kind, namespace and name
	Type   string        `json:"type,omitempty"`   // Normal or Warning
	Reason string        `json:"reason,omitempty"`
	Count  int           `json:"count,omitempty"` // occurrences until At
	// Progress is for backtests.
	Progress []rollout.Progress `json:"-"`
	back     Outcome            // outcome, if a rollback is in progress; else ""
}

// Releases returns the releases, newest first. events are oldest first. The flag "whole" means that no event is
// missing.
func Releases(events []Event, whole bool) []Past {
	var h chronicle
	for i, e := range events {
		h.take(e, i == 0, whole)
	}
	slices.Reverse(h.past)
	return h.past
}

type chronicle struct {
	past    []Past
	last    rollout.State // of the previous event
	waiting *Past         // release whose hooks run before it begins
}

func (h *chronicle) take(e Event, first, whole bool) {
	s, was := e.State, h.last
	h.last = s
	waited := h.wait(e)
	if n := len(h.past); n > 0 {
		h.past[n-1].noteHooks(s)
	}
	before, flying := len(h.past), h.open() != nil
	if open := h.open(); open != nil && !(s.Release != nil && open.is(s.Release)) {
		open.end(e)
	}
	if n := len(h.past); n > 0 && s.Release != nil && was.Watch != nil && h.past[n-1].is(s.Release) {
		h.past[n-1].Outcome, h.past[n-1].Ended = InFlight, nil // a rollback began after the promotion
	}
	switch {
	case s.Release != nil && h.open() == nil:
		h.past = append(h.past, Past{
			Images: s.Release.Images, Hash: s.Release.Hash, Commit: s.Release.Commit, Author: s.Release.Author,
			Subject: s.Release.Subject, Started: s.Release.Since, Fast: s.Release.Fast, Outcome: InFlight,
		})
		h.open().takeUp(waited)
	case s.Release != nil:
	case s.Stable != nil && (was.Stable == nil || was.Stable.Hash != s.Stable.Hash) &&
		(len(h.past) == 0 || h.past[len(h.past)-1].Hash != s.Stable.Hash):
		p := Past{Images: s.Stable.Images, Hash: s.Stable.Hash, Commit: s.Stable.Commit, Author: s.Stable.Author,
			Subject: s.Stable.Subject, Started: s.Stable.Since, Outcome: Succeeded}
		if first {
			p.Outcome = Recorded
		}
		p.ended(s.Stable.Since)
		h.past = append(h.past, p)
	case s.Stable == nil && s.Source != "" && s.Source != was.Source && (!first || whole):
		p := Past{Commit: s.Source, Started: e.At, Outcome: Applied}
		p.ended(e.At)
		h.past = append(h.past, p)
	}
	if r, is := refusedAtRest(was, s); is && !flying && len(h.past) == before {
		p := Past{Hash: r.Hash, Commit: r.Commit, Started: r.At, Outcome: Refused, Reason: r.Reason}
		for _, run := range was.Hooks { // an ended Job has its end in Since
			if run.Release == r.Hash && run.Since.Before(p.Started) {
				p.Started = run.Since
			}
		}
		p.takeUp(waited)
		p.ended(r.At)
		h.past = append(h.past, p)
	}
	if n := len(h.past); flying || n > before {
		if flying && n > before {
			h.past[before-1].note(e) // this event also ended the previous release
		}
		h.past[n-1].note(e)
	}
}

func refusedAtRest(was, s rollout.State) (rollout.Rejection, bool) {
	if was.App == "" || s.Release != nil || len(s.Rejected) == 0 ||
		len(was.Rejected) > 0 && was.Rejected[0] == s.Rejected[0] {
		return rollout.Rejection{}, false
	}
	return s.Rejected[0], true
}

func (h *chronicle) open() *Past {
	if n := len(h.past); n > 0 && h.past[n-1].Outcome == InFlight {
		return &h.past[n-1]
	}
	return nil
}

// is also compares the start, because a retry has the earlier attempt's hash.
func (p *Past) is(r *rollout.Release) bool { return p.Hash == r.Hash && p.Started.Equal(r.Since) }

func (p *Past) ended(at time.Time) { p.Ended = new(at.UTC()) }

func (p *Past) end(e Event) {
	s := e.State
	p.ended(e.At)
	rejection, rejected := s.IsRejected(p.Hash)
	switch {
	case s.Stable != nil && s.Stable.Hash == p.Hash:
		p.Outcome = Succeeded
		p.ended(s.Stable.Since)
	case rejected && !rejection.At.Before(p.Started):
		p.Outcome, p.Reason = Refused, rejection.Reason
		p.ended(rejection.At)
	case s.Release != nil:
		p.Outcome = p.back(Superseded)
	default:
		p.Outcome = p.back(Reverted)
	}
}

func (p *Past) back(without Outcome) Outcome {
	for _, t := range p.Transitions {
		without = cmp.Or(t.back, without)
	}
	return without
}

func backOf(s rollout.State) Outcome {
	switch {
	case s.Phase != rollout.Aborting:
		return ""
	case s.Rollback != nil && s.Stable != nil && s.Rollback.To == s.Stable.Commit:
		return Superseded
	}
	return Reverted
}

func (p *Past) note(e Event) {
	s := e.State
	text := Standing(s)
	switch {
	case s.Held != nil:
		text += ", held: " + s.Held.Message
	case s.Reason != "":
		text += ": " + s.Reason
	}
	p.Transitions = append(p.Transitions, Transition{At: e.At.UTC(), Phase: s.Phase, Text: text, Commit: e.Commit,
		Progress: s.Progress, back: backOf(s)})
	p.noteHooks(s)
	if s.Release != nil && !p.is(s.Release) {
		return // the event is about the newer release, which ended p
	}
	if len(s.Analyses) > 0 {
		p.Analyses = Analyses(s.Analyses, nil)
	}
	if s.Release == nil {
		return
	}
	for i, pr := range s.Progress {
		was, known := rollout.Find(p.progress, func(was rollout.Progress) bool { return was.Workload == pr.Workload })
		if known && pr.Opened != "" && pr.Of == was.Of { // only a full promotion completes several steps at once
			p.Skipped = max(p.Skipped, pr.Step-was.Step-1)
		}
		if i == 0 || pr.Step*p.Of < p.Step*pr.Of {
			p.Step, p.Of = min(pr.Step, pr.Of), pr.Of
		}
		if pr.Opened != "" && (len(p.PromotedBy) == 0 || p.PromotedBy[len(p.PromotedBy)-1] != pr.Opened) {
			p.PromotedBy = append(p.PromotedBy, pr.Opened)
		}
	}
	p.progress = s.Progress
	if s.Phase == rollout.Aborting && s.Reason != "" {
		p.Reason = s.Reason
	}
}

// Took returns a release's duration so far.
func (p Past) Took(now time.Time) time.Duration {
	if p.Ended != nil {
		return p.Ended.Sub(p.Started)
	}
	return now.Sub(p.Started)
}

// Standing describes a record in one line: phase, steps, hashes.
func Standing(s rollout.State) string {
	text := string(s.Phase)
	for _, p := range s.Progress {
		text += fmt.Sprintf(" at step %d/%d (%s, %d%%)", min(p.Step+1, p.Of), p.Of, p.Name, p.Weight)
	}
	if s.Release != nil {
		text += fmt.Sprintf(", release %s of %s", s.Release.Hash, rollout.ShortID(s.Release.Commit))
	}
	if s.Stable != nil {
		text += fmt.Sprintf(", stable %s of %s", s.Stable.Hash, rollout.ShortID(s.Stable.Commit))
	}
	return text
}

// wait tracks a release whose hooks run before it begins. When the release stops waiting, wait returns it. If the
// release neither begins nor is rejected, wait also adds it to h.past.
func (h *chronicle) wait(e Event) (ended *Past) {
	run, waits := h.waitsFor(e.State)
	if p := h.waiting; p != nil && !(waits && run.Release == p.Hash) {
		h.waiting, ended = nil, p
		rejection, isRejected := e.State.IsRejected(p.Hash)
		isOver := isRejected && !rejection.At.Before(p.Started)
		if hasBegun := e.State.Release != nil && e.State.Release.Hash == p.Hash; !hasBegun && !isOver {
			p.Outcome = Reverted
			if waits || e.State.Release != nil {
				p.Outcome = Superseded
			}
			p.note(e)
			p.ended(e.At)
			h.past = append(h.past, *p)
		}
	}
	if waits && h.waiting == nil {
		h.waiting = &Past{Hash: run.Release, Commit: e.State.Held.Commit, Started: run.Since, Outcome: InFlight}
	}
	if h.waiting != nil {
		h.waiting.note(e)
	}
	return ended
}

func (h *chronicle) waitsFor(s rollout.State) (run rollout.HookRun, waits bool) {
	if len(s.Hooks) == 0 || s.Release != nil || s.Held == nil || h.waiting == nil && s.Held.Reason != rollout.HeldHook {
		return run, false
	}
	run = s.Hooks[len(s.Hooks)-1]
	return run, run.When == rollout.HookBefore && !run.Past && (s.Stable == nil || s.Stable.Hash != run.Release)
}

func (p *Past) takeUp(waited *Past) {
	if waited != nil && waited.Hash == p.Hash {
		p.Transitions, p.Hooks = waited.Transitions, waited.Hooks
	}
}

// noteHooks keeps known logs, because later records omit older logs.
func (p *Past) noteHooks(s rollout.State) {
	for _, run := range s.Hooks {
		i := slices.IndexFunc(p.Hooks, func(known rollout.HookRun) bool { return known.Job == run.Job })
		switch {
		case i >= 0 && (run.Log != "" || p.Hooks[i].Log == ""):
			p.Hooks[i] = run
		case i < 0 && run.Release == p.Hash && !run.Past && p.Ended == nil:
			p.Hooks = append(p.Hooks, run)
		}
	}
}
