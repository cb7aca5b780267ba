package terminal

import "regexp"

// escape matches a control sequence, such as the colour of a program's log level.
var escape = regexp.MustCompile("\x1b\\[[0-9;:?]*[ -/]*[@-~]")

// LogLine draws a line of a log with its source. The colour is the version's: "canary", "stable" and so on.
func LogLine(source, role, text string, k Look) string {
	k.Width = 0 // a cut line would hide its end
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
