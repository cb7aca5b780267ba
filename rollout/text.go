package rollout

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// MaxText is the most characters that are recorded, told or shown of a text of others.
const MaxText = 500

// Printable is a text of others, such as a server's answer or a measured value, as it may stand in the record, in a
// commit's message or on a terminal: one line without control characters, of at most MaxText.
func Printable(text string) string { return Cut(OneLine(text), MaxText) }

// varying is what texts of others have in them that differs each time: numbers, addresses, ids of requests.
var varying = regexp.MustCompile(`[\w.:+/=-]*[0-9][\w.:+/=-]*`)

// SameText reports whether two texts of others say the same, whatever numbers and ids are in them and in whatever order
// they list reasons: "used: 3 of 10" and "used: 4 of 10", or an answer with another request's id.
func SameText(a, b string) bool { return a == b || slices.Equal(sortedWords(a), sortedWords(b)) }

func sortedWords(text string) []string {
	words := strings.FieldsFunc(varying.ReplaceAllString(Printable(text), "#"), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(",;[]", r)
	})
	slices.Sort(words)
	return words
}

// Cut shortens a text to a number of characters, the last of which then is "…".
func Cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// Count is a number of things: 1 app, 2 apps.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Share is a weight as people read it: 20%, or 5/1000 where everything is not 100.
func Share(weight, full int) string {
	if full == 100 {
		return fmt.Sprintf("%d%%", weight)
	}
	return fmt.Sprintf("%d/%d", weight, full)
}

// OneLine joins the words of a text by single spaces, and leaves out what is no character: control characters, marks
// that turn the direction of text, and bytes that are no UTF-8.
func OneLine(text string) string {
	return strings.Join(strings.Fields(characters(text)), " ")
}

// characters has spaces where there is any kind of them, and nothing that cannot be seen.
func characters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text)
}

// Tail is the end of a text of others, in whole lines of so many bytes together at most, without what OneLine leaves
// out. A line that is longer by itself is cut.
func Tail(text string, most int) string {
	var lines []string
	for _, line := range slices.Backward(strings.Split(text, "\n")) {
		line = strings.TrimRight(characters(line), " ")
		switch {
		case len(lines) == 0 && line == "":
			continue
		case len(lines) == 0:
			line = strings.ToValidUTF8(line[max(0, len(line)-most):], "")
		}
		most -= len(line) + 1
		if most < -1 {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// Printable is the state with the texts of others in it as they may be recorded. The state that was given is not
// changed.
func (s State) Printable() State {
	s.Reason = Printable(s.Reason)
	if s.Held != nil {
		held := *s.Held
		held.Message, s.Held = Printable(held.Message), &held
	}
	for _, r := range []**Release{&s.Stable, &s.Release} {
		if *r != nil {
			release := **r
			release.Author, release.Subject = Printable(release.Author), Printable(release.Subject)
			*r = &release
		}
	}
	s.Rejected, s.Progress = slices.Clone(s.Rejected), slices.Clone(s.Progress)
	for i := range s.Rejected {
		s.Rejected[i].Reason = Printable(s.Rejected[i].Reason)
	}
	for i := range s.Progress {
		s.Progress[i].Opened = Printable(s.Progress[i].Opened)
	}
	return s
}
