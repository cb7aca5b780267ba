package schedule

import "time"

// Window is a stretch of time that begins whenever a schedule says.
type Window struct {
	Deny   bool // nothing moves within it; otherwise nothing moves outside of it
	Begins *Schedule
	Length time.Duration // elapsed, whatever clocks do meanwhile
}

// Answer is what a list of windows says of a moment.
type Answer struct {
	Open  bool
	By    int       // which window shuts it: the first one that denies, or -1 for being outside of all that allow
	Until time.Time // not open before; zero while it is open, and if it never will be
	Exact bool      // and open then; otherwise the search ended there
}

// maxLooks bounds the search for the moment at which a list opens. Windows that begin each minute are searched for most
// of a day; those that follow each other daily, for nearly three years.
const maxLooks = 1000

// At says whether a list of windows is open at a moment and, if not, when it opens. It is open unless a window that
// denies covers the moment, or there are windows that allow and none of them does.
func At(windows []Window, t time.Time) Answer {
	first, until, shut := shutAt(windows, t)
	if !shut {
		return Answer{Open: true, By: -1}
	}
	for range maxLooks {
		if until.IsZero() {
			return Answer{By: first} // no window that allows begins within ten years
		}
		_, next, shut := shutAt(windows, until)
		if !shut {
			return Answer{By: first, Until: until, Exact: true}
		}
		until = next
	}
	return Answer{By: first, Until: until}
}

// shutAt says whether something shuts it at a moment, what, and until when at least: the zero time if for good.
func shutAt(windows []Window, t time.Time) (by int, until time.Time, shut bool) {
	allows, inside := false, false
	by = -1
	for i, w := range windows {
		// Of the beginnings that still last, the first one ends first. The next look, at its end, finds the one after it.
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
