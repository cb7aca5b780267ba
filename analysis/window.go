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

// A sequential test counts since the last look, so it needs a fixed start.
const (
	WindowOther   Window = iota // a fixed length, such as the last ten minutes
	WindowWeight                // {{elapsed}}: since the present weight
	WindowRelease               // {{release.elapsed}}: since the release began
)

var elapsed = regexp.MustCompile(`\{\{\s*(release\.)?elapsed\s*\}\}`)

// WindowOf returns the shorter window of a metric's queries.
func WindowOf(m Metric) (found Window) {
	for _, match := range elapsed.FindAllStringSubmatch(fmt.Sprint(m.Config), -1) {
		if match[1] == "" {
			return WindowWeight
		}
		found = WindowRelease
	}
	return found
}

// WithElapsed fills in {{elapsed}} and {{release.elapsed}} in whole seconds. A window begins at the release or later.
func (k Known) WithElapsed(text string) string {
	return elapsed.ReplaceAllStringFunc(text, func(found string) string {
		since := k.ReleaseSince
		if elapsed.FindStringSubmatch(found)[1] == "" {
			since = rollout.Later(since, k.Since)
		}
		return strconv.Itoa(max(1, int(k.At.Sub(since)/time.Second)))
	})
}
