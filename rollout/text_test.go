package rollout_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestCut(t *testing.T) {
	for text, want := range map[string]string{"": "", "abcde": "abcde", "abcdef": "abcd…", "äöüäöü": "äöüä…"} {
		compare.CheckNamed(t, text, want, rollout.Cut(text, 5))
	}
	compare.Check(t, "…", rollout.Cut("abc", 1))
}

func TestCountAndShare(t *testing.T) {
	for n, want := range map[int]string{0: "0 apps", 1: "1 app", 2: "2 apps"} {
		compare.Check(t, want, rollout.Count(n, "app"))
	}
	compare.Check(t, "20%", rollout.Share(20, 100))
	compare.Check(t, "5/1000", rollout.Share(5, 1000))
}

func TestOneLine(t *testing.T) {
	compare.Check(t, "no such thing", rollout.OneLine("  no\r\n such\t\tthing \n"))
}

// TestPrintable checks that any text becomes one printable line of at most 500 characters.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"x\x00y": "xy", "\x1b]0;owned\x07shop\x1b[2J": "]0;ownedshop[2J", "one\ntwo\u2028three": "one two three",
		"\u202eabc\u2066": "abc", "a\xffb": "ab", "Zoë 👩\u200d🚀": "Zoë 👩\u200d🚀",
		strings.Repeat("ä", 600): strings.Repeat("ä", 499) + "…",
	} {
		compare.CheckNamed(t, strconv.Quote(text), want, rollout.Printable(text))
	}
}

// TestStatesArePrintable checks that State.Printable cleans each text that may come from users or other programs.
func TestStatesArePrintable(t *testing.T) {
	bad := "a\x00\n" + strings.Repeat("b", 1000)
	s := rollout.State{
		Reason: bad, Unhealthy: bad, Kept: bad, Ignored: bad, Held: &rollout.Held{Message: bad},
		Stable:   &rollout.Release{Author: bad, Subject: bad, Images: []string{bad}},
		Release:  &rollout.Release{Author: bad, Subject: bad, Images: []string{bad}},
		Rejected: []rollout.Rejection{{Reason: bad}}, Progress: []rollout.Progress{{Opened: bad}},
	}
	before := fmt.Sprintf("%+v %+v %+v", s, *s.Held, *s.Stable)
	got := s.Printable()
	texts := []string{got.Reason, got.Held.Message, got.Stable.Author, got.Stable.Subject, got.Release.Author, got.Release.Subject,
		got.Stable.Images[0], got.Release.Images[0], got.Rejected[0].Reason, got.Progress[0].Opened, got.Unhealthy, got.Kept, got.Ignored}
	compare.Check(t, slices.Repeat([]string{rollout.Printable(bad)}, len(texts)), texts)
	compare.CheckNamed(t, "the given state", before, fmt.Sprintf("%+v %+v %+v", s, *s.Held, *s.Stable))
}

// TestSameText checks that SameText ignores differences of numbers, ids and the order of words, but no other differences.
func TestSameText(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"exceeded quota: used: cpu=900m, limited: cpu=1", "exceeded quota: used: cpu=1100m, limited: cpu=1", true},
		{"webhook denied request 8c7d0e2a-11aa-4b0b-9a51-5c8a2d1f0a11", "webhook denied request 0b7d0e2a-22bb-4b0b-9a51-5c8a2d1f0a22", true},
		{"Invalid value: (*int64)(0xc000a1b2)", "Invalid value: (*int64)(0xc0ffee00)", true},
		{"errors: [ports: duplicate, env: duplicate]", "errors: [env: duplicate, ports: duplicate]", true},
		{"errors: [ports: duplicate, env: duplicate]", "errors: [env: duplicate]", false},
		{"exceeded quota: pods", "exceeded quota: services", false},
		{"admission webhook a denied the request", "exceeded quota", false},
		{"same", "same", true},
	} {
		compare.CheckNamed(t, c.a+" and "+c.b, c.same, rollout.SameText(c.a, c.b))
	}
}

// TestTail checks that Tail keeps whole lines from the end. If the last line alone is too long, Tail removes the start of this line.
func TestTail(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 9, ""}, {"a\nb\n", 9, "a\nb"}, {"a\r\nb\r\n\n", 9, "a\nb"}, {"one\ntwo\nsix", 7, "two\nsix"}, {"one\ntwo\nsix", 6, "six"},
		{"one\ntwo\nsix", 11, "one\ntwo\nsix"}, {"one\ntwo\nsix", 10, "two\nsix"}, {"0123456789", 4, "6789"},
		{"\x1b[31mred\x00 \u202e\xff  ", 99, "[31mred"},
		{"\tin\n\n\nout", 99, " in\n\n\nout"}, {"ää", 3, "ä"}, {"```\n---\n", 99, "```\n---"}, {"\n\n", 9, ""},
		{"0123456789\n\n", 4, "6789"}, {"a", 0, ""},
	} {
		compare.CheckNamed(t, fmt.Sprintf("%q, %d", c.text, c.most), c.want, rollout.Tail(c.text, c.most))
	}
}
