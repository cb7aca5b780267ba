package rollout_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestWholeNumbersStayWhole checks that FromJSON decodes whole numbers as int64, because Kubernetes refuses 1.0 as an integer. By default,
// package encoding/json decodes every number as float64.
func TestWholeNumbersStayWhole(t *testing.T) {
	got, err := rollout.FromJSON[any]([]byte(`{"a": [1, -9007199254740993, 1.0, 1e3, 18446744073709551615], "A": "1"}`))
	must(t, err)
	compare.Check(t, any(map[string]any{"a": []any{int64(1), int64(-9007199254740993), 1.0, 1000.0, 18446744073709551615.0}, "A": "1"}), got)
	for _, wrong := range []string{"", "{", "1 2", "5m", "nul"} {
		if got, err := rollout.FromJSON[any]([]byte(wrong)); err == nil {
			t.Errorf("%q is read as %v", wrong, got)
		}
	}
}

// TestNumbersOfForms checks which values and notations documents accept for durations and other numbers.
func TestNumbersOfForms(t *testing.T) {
	for _, c := range []struct {
		raw  any
		want string // the expected value or the start of the expected error
	}{
		{int64(0), "0s"}, {int64(30), "30s"}, {"30", "30s"}, {"1h30m", "1h30m0s"}, {"0s", "0s"}, {int64(2147483647), "596523h14m7s"},
		{int64(2147483648), "2147483648 is more than Kubernetes can hold"}, {1.5, "must be a duration, not 1.5"},
		{true, "must be a duration, not true"},
		{"2147483648", `"2147483648" is not a duration`}, {strings.Repeat("x", 61), `"` + strings.Repeat("x", 59) + `…" is not a duration`},
		{strings.Repeat("x", 60), `"` + strings.Repeat("x", 60) + `" is not a duration`},
	} {
		var f struct {
			Wait time.Duration `json:"wait"`
		}
		err := rollout.Read("", map[string]any{"wait": c.raw}, &f)
		if got := f.Wait.String(); err == nil && got != c.want || err != nil && !strings.HasPrefix(err.Error(), "wait: "+c.want) {
			t.Errorf("%v: %s, %v, want %s", c.raw, got, err, c.want)
		}
	}
	for raw, want := range map[any]string{int64(0): "must be more than 0, not 0", "0s": `must be more than 0, not the string "0s"`,
		"0": `must be more than 0, not the string "0"`, "-1s": "is negative", int64(1): ""} {
		var f struct {
			Wait time.Duration `json:"wait" min:"1"`
		}
		err := rollout.Read("", map[string]any{"wait": raw}, &f)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", raw, err, want)
		}
	}
	for raw, want := range map[any]string{
		int64(5): "", 5.0: "", int64(6): "whole: 6 is not within 0..5; give 5", 0.5: "whole: must be a whole number, not 0.5",
		"5": "whole: must be a whole number",
	} {
		var f struct {
			Whole int     `json:"whole" max:"5" fix:"give 5"`
			Share float64 `json:"share"`
		}
		err := rollout.Read("", map[string]any{"whole": raw, "share": int64(2)}, &f)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) || want == "" && f.Whole != 5 || f.Share != 2 {
			t.Errorf("%v: %+v, %v, want %s", raw, f, err, want)
		}
	}
	var most struct {
		Whole int    `json:"whole"`
		Word  string `json:"word" oneOf:"only"`
	}
	if err := rollout.Read("", map[string]any{"whole": int64(2147483647), "word": "other"}, &most); most.Whole != 2147483647 || err == nil ||
		err.Error() != `word: "other" is not only` {
		t.Errorf("%+v, %v", most, err)
	}
}

// TestAmountsAreRead checks that an Amount accepts only a number of pods or a percentage.
func TestAmountsAreRead(t *testing.T) {
	for raw, want := range map[any]string{
		int64(3): "3", "25%": "25%", "0%": "0%", int64(0): "0", "2147483647%": "2147483647%",
		"3":   "3%", // a text means a percentage, with or without the sign %
		"+3%": `"+3%" is neither`, "": `"" is neither`, "x%": `"x%" is neither`, 1.5: "must be a whole number, not 1.5",
		int64(-1): "-1 is negative", "-1%": `"-1%" is negative`, int64(2147483648): "2147483648 is more than Kubernetes can hold",
	} {
		var a rollout.Amount
		err := a.ReadValue(raw)
		if got := a.String(); err == nil && got != want || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %s, %v, want %s", raw, got, err, want)
		}
	}
}
