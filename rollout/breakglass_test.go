package rollout_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestParseBreakGlass checks that ParseBreakGlass accepts the values of Encode, and refuses all other values.
func TestParseBreakGlass(t *testing.T) {
	b := rollout.BreakGlass{Release: "h1-7b4e2a91d0", Serial: 4, By: "ann", Reason: "v2 burns",
		At: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	got, err := rollout.ParseBreakGlass(b.Encode())
	compare.CheckNamed(t, "error", nil, err)
	compare.Check(t, b, got)
	for value, want := range map[string]string{
		"":                                   "is not valid",
		"v2 burns":                           "is not valid",
		`{"release":"h1-7b4e2a91d0"}`:        "lacks a release or a serial",
		`{"serial":4}`:                       "lacks a release or a serial",
		`{"release":"h1-7","serial":"four"}`: "is not valid",
		`{"release":"h1-7","serial":4,"to":"v3"}`: "was not written by",
		b.Encode() + "{}":                         "is not valid", " " + b.Encode(): "was not written by gitrollout",
		strings.Replace(b.Encode(), `"by":"ann"`, `"by":"eve","by":"ann"`, 1): "was not written by gitrollout",
	} {
		if _, err := rollout.ParseBreakGlass(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
}

// TestBreakGlassText checks the text of a rollback's reason. The text must not have the annotation's control characters.
func TestBreakGlassText(t *testing.T) {
	for _, c := range []struct{ by, reason, want string }{
		{"ann", "v2 burns", "aborted by break glass of ann: v2 burns"}, {"", "", "aborted by break glass"},
		{"ann\n", "\x1b[31mred", "aborted by break glass of ann: [31mred"},
	} {
		b, err := rollout.ParseBreakGlass(rollout.BreakGlass{Release: "h1-7", Serial: 1, By: c.by, Reason: c.reason}.Encode())
		compare.CheckNamed(t, "error", nil, err)
		compare.Check(t, c.want, b.Text())
	}
}
