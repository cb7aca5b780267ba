package terminal

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	eastasian "golang.org/x/text/width"
)

// Look holds drawing options.
type Look struct {
	Width int // columns; 0 means unlimited
	Color bool
	Now   time.Time
	Wide  bool // show all details
	Rows  int  // lines that fit; 0 means unlimited

	fewer int // reduces maxPods on a small terminal
}

type paint string

const (
	plain  paint = ""
	bold   paint = "1"
	dim    paint = "2"
	red    paint = "31"
	green  paint = "32"
	yellow paint = "33"
	cyan   paint = "36"
)

// paint colours visible text. All drawn text goes through paint.
func (l Look) paint(p paint, text string) string {
	text = visible(text)
	if !l.Color || p == plain || text == "" {
		return text
	}
	return "\x1b[" + string(p) + "m" + text + "\x1b[0m"
}

type span struct {
	text  string
	color paint
}

func (l Look) line(spans ...span) string {
	var b strings.Builder
	left := l.Width
	for _, s := range spans {
		text := s.text
		if l.Width > 0 {
			text = Truncate(text, left)
			left -= width(text)
		}
		b.WriteString(l.paint(s.color, text))
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// apart draws one span at the right edge. If needed, it cuts the longest left span, so that two columns stay empty
// before the right span.
func (l Look) apart(right span, spans ...span) string {
	used, longest := width(right.text), 0
	for i, s := range spans {
		used += width(s.text)
		if width(s.text) > width(spans[longest].text) {
			longest = i
		}
	}
	if over := used + 2 - l.Width; l.Width > 0 && over > 0 && len(spans) > 0 {
		long := &spans[longest]
		long.text = Truncate(long.text, max(8, width(long.text)-over))
		used = used - over
	}
	gap := max(2, l.columns()-used)
	return l.line(append(spans, span{text: strings.Repeat(" ", gap)}, right)...)
}

// columns returns the width for aligned output: at most 100, and 80 if Width is 0.
func (l Look) columns() int {
	if l.Width <= 0 {
		return 80
	}
	return min(l.Width, 100)
}

func (l Look) field(label, text string, labelColor, color paint) string {
	return l.beside(text, l.columns(), color, span{Pad("  "+label, labelWidth), labelColor})
}

func (l Look) below(indent int, text string, color paint) string {
	if text == "" {
		return ""
	}
	return l.beside(text, l.columns(), color, span{strings.Repeat(" ", indent), plain})
}

func (l Look) beside(text string, columns int, color paint, left ...span) string {
	var b strings.Builder
	used := 0
	for _, s := range left {
		used += width(s.text)
	}
	for _, part := range wrap(text, columns-used) {
		b.WriteString(l.line(append(left, span{part, color})...))
		left = []span{{strings.Repeat(" ", used), plain}}
	}
	return b.String()
}

// width returns a text's columns. A wide East Asian character or emoji has two, a combining mark none.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Cc) {
		return 0
	}
	switch eastasian.LookupRune(r).Kind() {
	case eastasian.EastAsianWide, eastasian.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Clean returns an untrusted text as one trimmed line without control characters.
func Clean(s string) string { return strings.TrimSpace(visible(s)) }

// visible removes control characters and direction marks, because these could fake output.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) || (unicode.Is(unicode.Cf, r) && r != 0x200d) { // keep the joiner in emoji
			return -1
		}
		return r
	}, s)
}

// CleanLines applies Clean to each line, but keeps the indentation. Each line ends with a newline.
func CleanLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		words := strings.TrimLeft(line, " ")
		b.WriteString(strings.Repeat(" ", len(line)-len(words)) + Clean(words) + "\n")
	}
	return b.String()
}

// Pad adds spaces on the right up to n columns.
func Pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-width(s))) }

func padLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-width(s))) + s }

// Truncate cuts a text to n columns, with an ellipsis.
func Truncate(s string, n int) string {
	switch {
	case width(s) <= n:
		return s
	case n < 1:
		return ""
	}
	return cut(s, n-1) + "…"
}

func wrap(s string, n int) []string {
	n = max(n, 20)
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		for width(word) > n {
			room := n - width(line) - 1
			if line == "" {
				room = n
			} else if room < n/2 {
				lines, line = append(lines, line), ""
				continue
			}
			head := cut(word, room)
			lines, line = append(lines, strings.TrimSpace(line+" "+head)), ""
			word = word[len(head):]
		}
		switch {
		case line == "":
			line = word
		case width(line)+1+width(word) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

func cut(s string, n int) string {
	used := 0
	for i, r := range s {
		if used += runeWidth(r); used > n {
			return s[:i]
		}
	}
	return s
}

// age formats a duration as kubectl does: 45s, 12m, 3h, 5d.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

func countdown(d time.Duration) string {
	if d <= 0 {
		return "0s"
	}
	return (d + time.Second - 1).Truncate(time.Second).String()
}

func person(author string) string {
	name, address, _ := strings.Cut(author, "<")
	if name = strings.TrimSpace(name); name != "" {
		return Clean(name)
	}
	return Clean(strings.TrimSuffix(address, ">"))
}

func widest[T any](all []T, drawn func(T) string) (columns int) {
	for _, t := range all {
		columns = max(columns, width(drawn(t)))
	}
	return columns
}

var escape = regexp.MustCompile("\x1b\\[[0-9;:?]*[ -/]*[@-~]")

// LogLine draws a source and its log line, in the colour of the role ("canary", "stable" …).
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

// Diff colours a unified diff.
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
