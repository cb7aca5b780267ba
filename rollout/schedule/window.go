package schedule

import "time"

// Window is a stretch of time that begins at each match of a schedule.
type Window struct {
	Deny   bool // releases may not advance within it; otherwise only within it
	Begins *Schedule
	Length time.Duration // elapsed time, even if clocks change
}

// Answer is the result of a list of windows for a moment.
type Answer struct {
	Open  bool
	By    int       // the window that shuts: the first that denies, or -1 outside all that allow
	Until time.Time // not open before; zero while it is open, and if it never opens
	Exact bool      // it opens at Until; otherwise the search ended there
}

// maxLooks bounds the search for the opening: most of a day for minutely windows, nearly three years for daily ones.
const maxLooks = 1000

// At returns whether windows are open, and else when next. They are shut if one denies, or if none of some allows.
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

// shutAt reports whether a list is closed, by which window, and until when at least: zero if for good.
func shutAt(windows []Window, t time.Time) (by int, until time.Time, shut bool) {
	allows, inside := false, false
	by = -1
	for i, w := range windows {
		// Of the begun windows, the first ends first. The next call, at its end, finds the next.
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
