package doctor

import (
	"errors"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestAFindingIsOneLine has a server's answer contain newlines, and characters that turn text or clear the terminal.
func TestAFindingIsOneLine(t *testing.T) {
	var e Examination
	e.Add("cluster", Problem, "", "it does not answer: %v", errors.New("first\n\tsecond \x1b]0;owned\a"))
	compare.Check(t, "it does not answer: first second ]0;owned", e.Findings[0].Message)
}
