package rollout

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Printable returns a third party's text as one line of at most 500 characters, for records and terminals.
func Printable(text string) string { return Cut(OneLine(text), 500) }

var varying = regexp.MustCompile(`[\w.:+/=-]*[0-9][\w.:+/=-]*`)

// SameText reports whether texts differ only in numbers, ids and order of words: "3 of 10" equals "4 of 10".
func SameText(a, b string) bool { return a == b || slices.Equal(sortedWords(a), sortedWords(b)) }

func sortedWords(text string) []string {
	words := strings.FieldsFunc(varying.ReplaceAllString(Printable(text), "#"), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(",;[]", r)
	})
	slices.Sort(words)
	return words
}

// Cut shortens a text to a number of characters, including a final "…".
func Cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// Count returns "1 app" or "2 apps".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Share formats a weight: "20%", or "5/1000" if full is not 100.
func Share(weight, full int) string {
	if full == 100 {
		return fmt.Sprintf("%d%%", weight)
	}
	return fmt.Sprintf("%d/%d", weight, full)
}

// OneLine joins words by spaces. It removes control characters, direction marks and invalid UTF-8.
func OneLine(text string) string {
	return strings.Join(strings.Fields(characters(text)), " ")
}

var quotedNode = regexp.MustCompile(`( for the following resource|: node contents|(invalid map key)): .*`)
var quotedValue = regexp.MustCompile(
	"(anchor) '.*'( referenced| value)|(!!\\w+) `.*`( as a | into )|(nsupported map key .*?), value: .*")

// YAMLText returns a YAML parser's error as one line, without the file's values, because these may be secret.
func YAMLText(err string) string {
	return quotedValue.ReplaceAllString(quotedNode.ReplaceAllString(OneLine(err), "$2"), "$1$2$3$4$5")
}

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

// Tail returns the last lines that fit into a number of bytes.
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

// Printable returns a copy with printable texts.
func (s State) Printable() State {
	s.Reason, s.Unhealthy = Printable(s.Reason), Printable(s.Unhealthy)
	s.Kept, s.Ignored = Printable(s.Kept), Printable(s.Ignored)
	if s.Held != nil {
		held := *s.Held
		held.Message, held.Author, s.Held = Printable(held.Message), Printable(held.Author), &held
	}
	for _, r := range []**Release{&s.Stable, &s.Release} {
		if *r != nil {
			release := **r
			release.Author, release.Subject = Printable(release.Author), Printable(release.Subject)
			release.Images = Mapped(release.Images, Printable)
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

// DidYouMean returns a question with the most similar names, or "".
func DidYouMean(name string, names []string) string {
	if near := Closest(name, names); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// Closest returns at most three similar names, the most similar first. It returns nil for names too long for
// Kubernetes, because their comparison is slow.
func Closest(name string, names []string) []string {
	if len(name) > 253 {
		return nil
	}
	var near []string
	distance := map[string]int{}
	far := max(1, len(name)/3)
	if len(name) > 3 {
		far = max(2, far) // two swapped letters count as two edits
	}
	name = strings.ToLower(name)
	for _, other := range names {
		d := editDistance(name, strings.ToLower(other))
		if d <= far || (len(name) > 1 && strings.HasPrefix(other, name)) {
			near, distance[other] = append(near, other), d
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return distance[a] - distance[b] })
	return near[:min(3, len(near))]
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			if a[i] != b[j] {
				diagonal++
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal)
		}
	}
	return row[len(b)]
}
