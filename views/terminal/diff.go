package terminal

import "strings"

// Diff colours a unified diff, without lines that begin with "diff".
func Diff(text string, k Look) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		color := plain
		switch {
		case strings.HasPrefix(line, "diff "):
			continue // "---" and "+++" repeat the names
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			color = bold
		case strings.HasPrefix(line, "@@"):
			color = cyan
		case strings.HasPrefix(line, "-"):
			color = red
		case strings.HasPrefix(line, "+"):
			color = green
		}
		b.WriteString(k.paint(color, line) + "\n")
	}
	return b.String()
}
