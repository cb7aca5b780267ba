package terminal_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/views/terminal"
)

func TestLogLine(t *testing.T) {
	for name, c := range map[string]struct {
		role, text string
		look       terminal.Look
		want       string
	}{
		"plain":             {"canary", "GET /  200", terminal.Look{}, "web-0 app | GET /  200\n"},
		"empty":             {"canary", "", terminal.Look{}, "web-0 app |\n"},
		"canary":            {"canary", "x", terminal.Look{Color: true}, "\x1b[36mweb-0 app | \x1b[0mx\n"},
		"active":            {"active", "x", terminal.Look{Color: true}, "\x1b[32mweb-0 app | \x1b[0mx\n"},
		"no version":        {"", "x", terminal.Look{Color: true}, "\x1b[2mweb-0 app | \x1b[0mx\n"},
		"never cut":         {"", strings.Repeat("x", 99), terminal.Look{Width: 20}, "web-0 app | " + strings.Repeat("x", 99) + "\n"},
		"colour of the log": {"", "\x1b[1;31mERROR\x1b[0m failed", terminal.Look{}, "web-0 app | ERROR failed\n"},
		"control":           {"", "a\x1b]0;owned\ab\tc\rd\xff", terminal.Look{}, "web-0 app | a]0;ownedb cd\ufffd\n"},
	} {
		t.Run(name, func(t *testing.T) { compare.Check(t, c.want, terminal.LogLine("web-0 app", c.role, c.text, c.look)) })
	}
}
