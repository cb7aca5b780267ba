package terminal

import "regexp"

// escape matches a control sequence, such as a colour in a program's log.
var escape = regexp.MustCompile("\x1b\\[[0-9;:?]*[ -/]*[@-~]")

// LogLine draws a log line after its source. The role ("canary", "stable" …) gives the colour.
func LogLine(source, role, text string, k Look) string {
	k.Width = 0 // so that the line is not cut
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
