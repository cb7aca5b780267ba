package terminal

import "regexp"

// escape matches a control sequence, such as the colour of a program's log level.
var escape = regexp.MustCompile("\x1b\\[[0-9;:?]*[ -/]*[@-~]")

// LogLine draws a line of a log after its source. The role ("canary", "stable" …) gives the colour of the source.
func LogLine(source, role, text string, k Look) string {
	k.Width = 0 // an unlimited width, so that the line is not cut
	return k.line(span{source + " | ", roleColor(role)}, span{escape.ReplaceAllString(text, ""), plain})
}

func roleColor(role string) paint {
	switch role {
	case "canary", "preview":
		return cyan
	case "stable", "active":
		return green
	}
	return dim
}
