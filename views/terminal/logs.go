package terminal

import "regexp"

// escape matches control sequences, such as colours.
var escape = regexp.MustCompile("\x1b\\[[0-9;:?]*[ -/]*[@-~]")

// LogLine draws a log line after its source, in the colour of the role ("canary", "stable" …).
func LogLine(source, role, text string, k Look) string {
	k.Width = 0
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
