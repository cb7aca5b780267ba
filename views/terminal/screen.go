package terminal

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Screen shows a changing text. It rewrites only changed lines, so that the screen does not flicker and the scroll-back
// stays.
type Screen struct {
	Out io.Writer

	columns int
	rows    int
	last    []string
}

// Draw draws the result of the function text. On a small terminal, it draws fewer pods.
func (s *Screen) Draw(k Look, columns, rows int, text func(Look) string) error {
	k.Rows = rows - 1
	var drawn string
	for _, k.fewer = range []int{0, maxPods / 2, maxPods - 1, maxPods} {
		drawn = text(k)
		if height(strings.Split(strings.TrimSuffix(drawn, "\n"), "\n"), columns) <= k.Rows {
			break
		}
	}
	return s.show(drawn, columns, rows)
}

// show cuts the text at the terminal's last row, because the cursor cannot move above the top row.
func (s *Screen) show(text string, columns, rows int) error {
	lines := fit(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), columns, rows-1)
	var b strings.Builder
	if (columns != s.columns || rows != s.rows) && s.last != nil { // after a resize, the terminal has moved the old lines
		b.WriteString("\x1b[H\x1b[2J")
		s.last = nil
	}
	s.columns, s.rows = columns, rows
	if n := height(s.last, columns); n > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(n) + "A\r")
	}
	same, cleared := true, false // same: all lines so far are in their old rows
	for i, line := range lines {
		same = same && i < len(s.last) && height(s.last[i:i+1], columns) == height([]string{line}, columns)
		if same && s.last[i] == line {
			b.WriteString(strings.Repeat("\n", height([]string{line}, columns)))
			continue
		}
		if !same && !cleared {
			b.WriteString("\x1b[J") // clears the rows below
			cleared = true
		}
		b.WriteString("\x1b[2K" + line + "\n")
	}
	if same && len(s.last) > len(lines) {
		b.WriteString("\x1b[J")
	}
	s.last = lines
	_, err := io.WriteString(s.Out, b.String())
	return err
}

func fit(lines []string, columns, rows int) []string {
	if rows < 2 || height(lines, columns) <= rows {
		return lines
	}
	n := len(lines)
	for height(lines, columns) > rows-1 {
		lines = lines[:len(lines)-1]
	}
	return append(lines[:len(lines):len(lines)], fmt.Sprintf("… %d more lines; the window is too small for them",
		n-len(lines)))
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

func height(lines []string, columns int) int {
	n := 0
	for _, line := range lines {
		n += max(1, (width(sgr.ReplaceAllString(line, ""))+columns-1)/max(1, columns))
	}
	return n
}
