package schedule

import "time"

// Window is a span from each match of a schedule.
type Window struct {
	Deny   bool // true: no release advances in the window; false: releases advance only in such windows
	Begins *Schedule
	Length time.Duration // elapsed time, despite clock changes
}

// Answer is the result of At.
type Answer struct {
	Open  bool
	By    int       // index of the first denying window; -1 if Open or without one
	Until time.Time // shut until then; zero if Open, or if the windows never open
	Exact bool      // true: open at Until; false: the bounded search ended there
}

// maxLooks bounds At's search: three years of daily windows.
const maxLooks = 1000

// At reports whether no denying window covers t and, if there are allowing windows, one does.
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

// shutAt reports whether windows are shut at t, by which denying window, and at least until when (zero: forever).
func shutAt(windows []Window, t time.Time) (by int, until time.Time, shut bool) {
	allows, inside := false, false
	by = -1
	for i, w := range windows {
		// begun starts the oldest window that covers t. A later window may overlap, so At repeats shutAt.
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
