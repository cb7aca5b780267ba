package analysis

import "regexp"

// Window is the period that a query's result covers.
type Window int

// A sequential test needs the counts since the last look, so it needs a window with a fixed start.
const (
	WindowOther   Window = iota // a fixed length, such as the last ten minutes
	WindowWeight                // {{elapsed}}: since the present weight was reached
	WindowRelease               // {{release.elapsed}}: since the release began
)

var elapsed = regexp.MustCompile(`\{\{\s*(release\.)?elapsed\s*\}\}`)

// WindowOf returns the window of a metric's query. A query with both placeholders has the shorter window.
func WindowOf(m Metric) Window { return windowIn(m.Config) }

func windowIn(v any) (found Window) {
	join := func(w Window) {
		if w != WindowOther && (found == WindowOther || w < found) {
			found = w
		}
	}
	switch v := v.(type) {
	case string:
		for _, match := range elapsed.FindAllStringSubmatch(v, -1) {
			join(map[bool]Window{true: WindowWeight, false: WindowRelease}[match[1] == ""])
		}
	case []any:
		for _, e := range v {
			join(windowIn(e))
		}
	case map[string]any:
		for _, e := range v {
			join(windowIn(e))
		}
	}
	return found
}
