// Package schedule computes when recurring windows are open. It uses no clock, and searches are bounded.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule is a cron expression in a time zone. A minute that clocks show twice (autumn) matches twice. For a skipped
// minute (spring), the first minute after the gap matches.
type Schedule struct {
	spec cron.Schedule
	zone *time.Location
}

// maxExpression characters suffice to list all minutes.
const maxExpression = 500

// Parse reads a cron expression with five fields, and a time zone ("": UTC). Errors quote the invalid text.
func Parse(expression, zone string) (*Schedule, error) {
	location, err := Zone(zone)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(expression)
	switch {
	case text == "":
		return nil, errors.New("is missing")
	case len(text) > maxExpression:
		return nil, fmt.Errorf("has %d characters, more than %d", len(text), maxExpression)
	case strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ="):
		return nil, fmt.Errorf("%q has a time zone, which belongs in timeZone", text)
	case strings.HasPrefix(text, "@"):
		return nil, fmt.Errorf("%q is a shorthand; write five cron fields, such as 0 0 * * *", text)
	}
	spec, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return nil, fmt.Errorf("%q is not a schedule: %s", text, strings.Join(strings.Fields(err.Error()), " "))
	}
	s := &Schedule{spec: spec, zone: location}
	// The search covers 30 years, because within 28 years, each date falls on each weekday.
	if s.named(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%q names a day that does not exist", text)
	}
	return s, nil
}

// Zone reads a time zone, "" for UTC. It refuses "Local", which differs between machines.
func Zone(name string) (*time.Location, error) {
	location, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("%q is not a time zone", name)
	}
	return location, nil
}

// Next returns the first matching minute after a time, or zero if none is within ten years.
func (s *Schedule) Next(after time.Time) time.Time {
	// Between two clock changes (a stretch), the UTC offset is constant. So matches are computed as if local time were
	// UTC.
	after = after.Truncate(time.Second)
	limit := after.AddDate(10, 0, 0)
	distance, end := s.stretch(after)
	wall := shown(after, distance)
	for next := s.named(wall); ; {
		if next.IsZero() {
			return time.Time{}
		}
		at := next.Add(-distance)
		if end.IsZero() || at.Before(end) {
			return at.In(s.zone)
		}
		if end.After(limit) {
			return time.Time{}
		}
		change := end
		distance, end = s.stretch(change)
		if next.Before(shown(change, distance)) {
			return change.In(s.zone)
		}
		// After the clock is set back, an earlier match is possible.
		if now := shown(change, distance).Add(-time.Second); now.Before(wall) {
			wall, next = now, s.named(now)
		}
	}
}

func (s *Schedule) stretch(t time.Time) (distance time.Duration, end time.Time) {
	_, seconds := t.In(s.zone).Zone()
	for end = t; end.Before(t.AddDate(11, 0, 0)); {
		_, bound := end.In(s.zone).ZoneBounds()
		if bound.IsZero() {
			return time.Duration(seconds) * time.Second, bound
		}
		if !bound.After(end) { // package time returns wrong bounds at the end of some years after 2037
			bound = end.Add(24 * time.Hour)
		}
		end = bound
		if _, then := end.In(s.zone).Zone(); then != seconds { // otherwise, only the zone's name changes
			break
		}
	}
	return time.Duration(seconds) * time.Second, end
}

func shown(t time.Time, distance time.Duration) time.Time { return t.UTC().Add(distance) }

// named returns the next match as if local time were UTC. It searches in a loop, because the cron library searches only
// five years.
func (s *Schedule) named(after time.Time) time.Time {
	for range 6 {
		if next := s.spec.Next(after); !next.IsZero() {
			return next
		}
		after = time.Date(after.Year()+5, 1, 1, 0, 0, -1, 0, time.UTC)
	}
	return time.Time{}
}

// Window is a time span after each match of Begins.
type Window struct {
	Deny   bool // true: no release advances in the window; false: releases advance only in such windows
	Begins *Schedule
	Length time.Duration // elapsed time, despite clock changes
}

// Answer is the result of At.
type Answer struct {
	Open  bool
	By    int       // index of the first denying window; -1 if Open, or without a denying window
	Until time.Time // shut until then; zero if Open, or if the windows never open
	Exact bool      // true: open at Until; false: the bounded search ended there
}

// maxLooks bounds At's search: three years of daily windows.
const maxLooks = 1000

// At reports whether t is outside all denying windows and, if there are allowing windows, inside one.
func At(windows []Window, t time.Time) Answer {
	first, until, shut := shutAt(windows, t)
	if !shut {
		return Answer{Open: true, By: -1}
	}
	for range maxLooks {
		if until.IsZero() {
			return Answer{By: first} // none begins within ten years
		}
		_, next, shut := shutAt(windows, until)
		if !shut {
			return Answer{By: first, Until: until, Exact: true}
		}
		until = next
	}
	return Answer{By: first, Until: until}
}

// shutAt reports whether windows are shut at t, the denying window's index (or -1), and the earliest possible end
// (zero: never).
func shutAt(windows []Window, t time.Time) (by int, until time.Time, shut bool) {
	allows, inside := false, false
	by = -1
	for i, w := range windows {
		// begun is the oldest start whose window covers t. The window of a later start may also cover t, so At repeats
		// shutAt.
		begun := w.Begins.Next(t.Add(-w.Length))
		covers := !begun.IsZero() && !begun.After(t)
		switch {
		case !w.Deny:
			allows, inside = true, inside || covers
		case covers:
			if end := begun.Add(w.Length); end.After(until) {
				until = end
			}
			if by < 0 {
				by = i
			}
		}
	}
	if by >= 0 || !allows || inside {
		return by, until, by >= 0
	}
	for _, w := range windows {
		if w.Deny {
			continue
		}
		if begin := w.Begins.Next(t); !begin.IsZero() && (until.IsZero() || begin.Before(until)) {
			until = begin
		}
	}
	return -1, until, true
}
