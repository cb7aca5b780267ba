package analysis

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Window is the period that a query's result covers.
type Window int

// A sequential test counts the requests since its last look, as the difference of two results. So the window's start
// must be fixed.
const (
	WindowOther   Window = iota // a fixed length, such as the last ten minutes
	WindowWeight                // {{elapsed}}: since the present weight was reached
	WindowRelease               // {{release.elapsed}}: since the release began
)

var elapsed = regexp.MustCompile(`\{\{\s*(release\.)?elapsed\s*\}\}`)

// WindowOf returns the shortest window of a metric's queries.
func WindowOf(m Metric) (found Window) {
	for _, match := range elapsed.FindAllStringSubmatch(fmt.Sprint(m.Config), -1) {
		if match[1] == "" {
			return WindowWeight
		}
		found = WindowRelease
	}
	return found
}

// WithElapsed fills in {{elapsed}} and {{release.elapsed}} in whole seconds. No window begins before the release.
func (k Known) WithElapsed(text string) string {
	return elapsed.ReplaceAllStringFunc(text, func(found string) string {
		since := k.ReleaseSince
		if elapsed.FindStringSubmatch(found)[1] == "" {
			since = rollout.Later(since, k.Since)
		}
		return strconv.Itoa(max(1, int(k.At.Sub(since)/time.Second)))
	})
}
