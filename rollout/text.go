package rollout

import "strings"

// Cut shortens a text to a number of characters, the last of which then is "…".
func Cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// OneLine joins the words of a text by single spaces.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
