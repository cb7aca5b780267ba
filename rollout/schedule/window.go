package schedule

import "time"

// Window is a span of time that begins at each match of a schedule.
type Window struct {
	Deny   bool // true: releases may not advance in the window; false: only in the window
	Begins *Schedule
	Length time.Duration // elapsed time, also across a change of clocks
}

// Answer says whether a list of windows is open at a time.
type Answer struct {
	Open  bool
	By    int       // index of the first window that denies; -1 if open, or if no window allows
	Until time.Time // the windows are shut until then; zero if Open, or if they never open
	Exact bool      // true: the windows open at Until; false: the search ended at Until
}

// maxLooks bounds the search for an opening. With daily windows, the search covers three years.
const maxLooks = 1000

// At reports whether windows are open at t: no denying window covers t and, if there are allowing windows, one does.
func At(windows []Window, t time.Time) Answer {
	first, until, shut := shutAt(windows, t)
	if !shut {
		return Answer{Open: true, By: -1}
	}
	for range maxLooks {
		if until.IsZero() {
			return Answer{By: first} // no allowing window begins within ten years
		}
		_, next, shut := shutAt(windows, until)
		if !shut {
			return Answer{By: first, Until: until, Exact: true}
		}
		until = next
	}
	return Answer{By: first, Until: until}
}

// shutAt reports whether windows are shut, and by which window. They stay shut up to the time "until" (zero: forever).
func shutAt(windows []Window, t time.Time) (by int, until time.Time, shut bool) {
	allows, inside := false, false
	by = -1
	for i, w := range windows {
		// begun is when the oldest window that covers t began. Later windows may overlap its end, so At calls shutAt again.
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
