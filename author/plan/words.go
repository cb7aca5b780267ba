package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Takes describes a stage's duration: "10m", "a promotion", "a promotion (2h: abort)", or "-".
func (s Stage) Takes() string {
	switch {
	case s.Wait == "promotion" && s.Timeout > 0:
		return fmt.Sprintf("a promotion (%s: %s)", Short(s.Timeout), s.OnTimeout)
	case s.Wait == "promotion":
		return "a promotion"
	case s.AtLeast > 0:
		return Short(s.AtLeast)
	default:
		return "-"
	}
}

// Share formats a weight, such as 20% or 3/1000.
func (w Workload) Share(weight int) string {
	return rollout.Share(weight, cmp.Or(w.Full, 100))
}

// Sizing returns the number of pods. If the number is not from the manifest, Sizing adds the source.
func (w Workload) Sizing() string {
	text := rollout.Count(w.Replicas, "pod")
	if w.Sized != "" {
		text += " (" + w.Sized + ")"
	}
	return text
}

// Cost returns, for example, "at least 25m, 2 promotions", or "" without stages.
func (a App) Cost() string {
	var parts []string
	if a.AtLeast > 0 {
		parts = append(parts, "at least "+Short(a.AtLeast))
	}
	if a.Gates > 0 {
		parts = append(parts, rollout.Count(a.Gates, "promotion"))
	}
	return strings.Join(parts, ", ")
}

// Short formats 1h0m0s as 1h.
func Short(s Span) string { return rollout.ShortSpan(time.Duration(s)) }

// Moment formats a time. It adds a weekday or a date if the time is not today.
func Moment(at, now time.Time) string {
	switch {
	case at.IsZero():
		return "unknown"
	case !at.After(now):
		return "immediately"
	case at.Sub(now) < 24*time.Hour && at.YearDay() == now.YearDay():
		return at.Format("15:04:05 MST")
	case at.Sub(now) < 6*24*time.Hour:
		return at.Format("Mon 15:04 MST")
	default:
		return at.Format("2006-01-02 15:04 MST")
	}
}
