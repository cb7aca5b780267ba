package rollout

import (
	"fmt"
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"", 5, ""}, {"abcde", 5, "abcde"}, {"abcdef", 5, "abcd…"}, {"äöüäöü", 5, "äöüä…"}, {"abc", 1, "…"}} {
		if got := Cut(c.text, c.most); got != c.want {
			t.Errorf("%q to %d: got %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestCountAndShare(t *testing.T) {
	for n, want := range map[int]string{0: "0 apps", 1: "1 app", 2: "2 apps"} {
		if got := Count(n, "app"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if percent, thousandths := Share(20, 100), Share(5, 1000); percent != "20%" || thousandths != "5/1000" {
		t.Errorf("%q and %q", percent, thousandths)
	}
}

func TestOneLine(t *testing.T) {
	if got := OneLine("  no\r\n such\t\tthing \n"); got != "no such thing" {
		t.Errorf("got %q", got)
	}
}

// TestPrintable checks that foreign text becomes one printable line of at most MaxText.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"x\x00y": "xy", "\x1b]0;owned\x07shop\x1b[2J": "]0;ownedshop[2J", "one\ntwo\u2028three": "one two three",
		"\u202eabc\u2066": "abc", "a\xffb": "ab", "Zoë 👩\u200d🚀": "Zoë 👩\u200d🚀",
		strings.Repeat("ä", 600): strings.Repeat("ä", 499) + "…",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestStatesArePrintable checks all texts of a state that may come from others.
func TestStatesArePrintable(t *testing.T) {
	bad := "a\x00\n" + strings.Repeat("b", 1000)
	s := State{
		Reason: bad, Held: &Held{Message: bad}, Stable: &Release{Author: bad, Subject: bad}, Release: &Release{Author: bad, Subject: bad},
		Rejected: []Rejection{{Reason: bad}}, Progress: []Progress{{Opened: bad}},
	}
	before := fmt.Sprintf("%+v %+v", s, *s.Held)
	got := s.Printable()
	texts := []string{got.Reason, got.Held.Message, got.Stable.Author, got.Stable.Subject, got.Release.Author, got.Release.Subject,
		got.Rejected[0].Reason, got.Progress[0].Opened}
	for i, text := range texts {
		if text != Printable(bad) {
			t.Errorf("text %d is %q", i, text)
		}
	}
	if after := fmt.Sprintf("%+v %+v", s, *s.Held); after != before {
		t.Error("the state that was given is changed")
	}
}

// TestSameText checks that texts with other numbers and ids are the same, and texts with other words are not.
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
		if got := SameText(c.a, c.b); got != c.same {
			t.Errorf("%q and %q: %t", c.a, c.b, got)
		}
	}
}

// TestTail keeps whole lines from the end, and only the end of a line that is too long.
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
		if got := Tail(c.text, c.most); got != c.want {
			t.Errorf("%q, %d: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}
