package rollout

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout/schedule"
)

// Window is a recurring span in which releases may (Allow) or may not (Deny) advance.
type Window struct {
	Kind     WindowKind
	Schedule string        // cron expression for starts
	Duration time.Duration // elapsed time, despite clock changes
	TimeZone string        // IANA name; "" is UTC
	Apps     []string      // globs for apps' names; empty: all apps

	field  string // windows[i], for messages
	window schedule.Window
}

// WindowKind is a window's effect on releases.
type WindowKind string

// Deny wins over Allow.
const (
	Allow WindowKind = "allow"
	Deny  WindowKind = "deny"
)

type windowFile struct {
	Kind     WindowKind `json:"kind" needs:"use allow or deny" oneOf:"allow deny"`
	Schedule string     `json:"schedule" needs:"write five fields: minute, hour, day of the month, month, day of the week"`
	Duration string     `json:"duration" needs:"write 8h, 90m or the like" like:"span"`
	TimeZone string     `json:"timeZone"`
	Apps     []string   `json:"apps" like:"glob"`
}

func parseWindow(file, field string, raw windowFile) (*Window, error) {
	w := &Window{Kind: raw.Kind, Schedule: raw.Schedule, TimeZone: raw.TimeZone, Apps: raw.Apps, field: field}
	at := place{file, field}
	begins, wrong := ReadSchedule(field+".schedule", raw.Schedule, field+".timeZone", raw.TimeZone)
	if wrong != nil {
		wrong.File = file
		return nil, wrong
	}
	var err error
	if w.Duration, err = time.ParseDuration(raw.Duration); err != nil {
		return nil, at.invalid("duration", "write 8h, 90m or the like", "%q is not a duration", raw.Duration)
	}
	if w.Duration < time.Minute || w.Duration > 366*24*time.Hour { // cron schedules have a resolution of a minute
		return nil, at.invalid("duration", "use 1m or more, and 8784h (366 days) or less", "%q is out of range", raw.Duration)
	}
	if err := checkGlobs(file, field+".apps", raw.Apps); err != nil {
		return nil, err
	}
	w.window = schedule.Window{Deny: w.Kind == Deny, Begins: begins, Length: w.Duration}
	return w, nil
}

// ReadSchedule reads a cron expression and time zone. An error has the expression's path (at) or the zone's path
// (zoneAt).
func ReadSchedule(at, expression, zoneAt, zone string) (*schedule.Schedule, *InvalidError) {
	if _, err := schedule.Zone(zone); err != nil {
		return nil, &InvalidError{Field: zoneAt, Msg: err.Error(),
			Fix: "use a name of the IANA database, such as Europe/Berlin or UTC"}
	}
	s, err := schedule.Parse(expression, zone)
	if err != nil {
		return nil, &InvalidError{Field: at, Msg: err.Error(), Fix: "write five fields: minute, hour, day of the month, " +
			"month, day of the week (0-6 or SUN-SAT), such as 0 9 * * 1-5"}
	}
	return s, nil
}

func checkGlobs(file, field string, globs []string) error {
	for i, glob := range globs {
		_, err := path.Match(glob, "")
		if err != nil || glob == "" || strings.Contains(glob, "/") {
			return Invalidf(file, fmt.Sprintf("%s[%d]", field, i), "%q is not a pattern for app names", glob).
				WithFix("name an app, with * ? [] for parts of the name: shop-*")
		}
	}
	return nil
}

func concerns(globs []string, app string) bool {
	return len(globs) == 0 || matchesAny(globs, app)
}

// Calendar has an app's windows and freeze.
type Calendar struct {
	Windows []Window
	Freeze  *Freeze
}

// CalendarOf returns an app's calendar. f may be nil.
func (c *Config) CalendarOf(app string, f *Freeze) Calendar {
	isOthers := func(w Window) bool { return !concerns(w.Apps, app) }
	calendar := Calendar{Windows: slices.DeleteFunc(slices.Clone(c.Windows), isOthers)}
	if f != nil && concerns(f.Apps, app) {
		calendar.Freeze = f
	}
	return calendar
}

// Equal reports whether calendars have the same effect.
func (c Calendar) Equal(o Calendar) bool {
	same := func(a, b Window) bool {
		return a.Kind == b.Kind && a.Schedule == b.Schedule && a.Duration == b.Duration && a.TimeZone == b.TimeZone &&
			a.field == b.field
	}
	return slices.EqualFunc(c.Windows, o.Windows, same) && c.Freeze.Equal(o.Freeze)
}

// Shut says why releases do not advance.
type Shut struct {
	Freeze *Freeze   // nil for a window
	Window *Window   // the Deny window; nil for a freeze, or if no Allow window is open
	Until  time.Time // releases do not advance before Until; zero if unknown
	Exact  bool      // true: releases may advance at Until; false: perhaps only later
}

// ShutAt returns why releases may not advance at a time, or false.
func (c Calendar) ShutAt(t time.Time) (Shut, bool) {
	windows := Mapped(c.Windows, func(w Window) schedule.Window { return w.window })
	if c.Freeze.At(t) {
		s := Shut{Freeze: c.Freeze, Until: c.Freeze.Until, Exact: !c.Freeze.Until.IsZero()}
		if s.Exact {
			if after := schedule.At(windows, s.Until); !after.Open {
				s.Until, s.Exact = after.Until, after.Exact
			}
		}
		return s, true
	}
	a := schedule.At(windows, t)
	if a.Open {
		return Shut{}, false
	}
	s := Shut{Until: a.Until, Exact: a.Exact}
	if a.By >= 0 {
		s.Window = &c.Windows[a.By]
	}
	return s, true
}

// Cause returns "the end of windows[1] (deny 0 0 24 12 * for 336h)".
func (s Shut) Cause() string {
	switch {
	case s.Freeze != nil:
		return fmt.Sprintf("the end of the freeze %q", s.Freeze.Reason)
	case s.Window != nil:
		zone := ""
		if s.Window.TimeZone != "" {
			zone = " " + s.Window.TimeZone
		}
		return fmt.Sprintf("the end of %s (deny %s%s for %s)", s.Window.field, s.Window.Schedule, zone,
			ShortSpan(s.Window.Duration))
	}
	return "a release window"
}

// ShortSpan formats a duration as "8h", not "8h0m0s".
func ShortSpan(d time.Duration) string { return shortSpan.Replace(d.String()) }

var shortSpan = strings.NewReplacer("h0m0s", "h", "m0s", "m")

// When returns Until as the end of a sentence, or "" if unknown.
func (s Shut) When() string {
	switch {
	case s.Until.IsZero():
		return ""
	case !s.Exact:
		return ", after " + s.Until.Format(time.RFC3339)
	}
	return ", until " + s.Until.Format(time.RFC3339)
}
