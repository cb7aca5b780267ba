package rollout

import "testing"

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

func TestOneLine(t *testing.T) {
	if got := OneLine("  no\r\n such\t\tthing \n"); got != "no such thing" {
		t.Errorf("got %q", got)
	}
}
