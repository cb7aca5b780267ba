package main

import (
	"io"
	"strconv"
	"strings"
)

// screen draws texts over each other. It moves the cursor up and rewrites the
// lines that differ, so that nothing flickers and what was on the terminal
// before stays in its scroll-back.
type screen struct {
	out  io.Writer
	last []string
}

func (s *screen) show(text string) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var b strings.Builder
	if n := len(s.last); n > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(n) + "A")
	}
	for i, line := range lines {
		if i < len(s.last) && s.last[i] == line {
			b.WriteString("\n")
			continue
		}
		b.WriteString("\r\x1b[2K" + line + "\n")
	}
	if len(s.last) > len(lines) {
		b.WriteString("\x1b[J")
	}
	s.last = lines
	_, err := io.WriteString(s.out, b.String())
	return err
}
