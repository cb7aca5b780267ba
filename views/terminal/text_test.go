package terminal

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "shop": 4, "→ ✔": 3, "山田": 4, "e\u0301": 1, "🚀": 2, "한국": 4, "ｱ": 1, "✅ ⭐": 5, "🥇": 2, "🫠": 2, "✔ ✖ ●": 5} {
		if got := width(text); got != want {
			t.Errorf("width(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	cases := map[string]struct {
		text string
		n    int
		want string
	}{
		"fits":             {"shop", 4, "shop"},
		"cut":              {"checkout", 5, "chec…"},
		"wide at the edge": {"山田太郎", 4, "山…"},
		"nothing left":     {"shop", 0, ""},
		"one column":       {"shop", 1, "…"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Truncate(c.text, c.n); got != c.want {
				t.Errorf("Truncate(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
			}
		})
	}
}

func TestWrap(t *testing.T) {
	cases := map[string]struct {
		text string
		n    int
		want []string
	}{
		"nothing":           {"", 20, []string{""}},
		"between words":     {"one two three four five six", 20, []string{"one two three four", "five six"}},
		"a word too long":   {"see " + strings.Repeat("x", 30), 20, []string{"see " + strings.Repeat("x", 16), strings.Repeat("x", 14)}},
		"never below 20":    {"one two three four five", 3, []string{"one two three four", "five"}},
		"space of any kind": {"one\n two\tthree", 20, []string{"one two three"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, wrap(c.text, c.n)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("one two three", 20)
	f.Add("山田太郎 "+strings.Repeat("長", 40), 21)
	f.Fuzz(func(t *testing.T, text string, n int) {
		text, n = Clean(text), min(max(n, 20), 200)
		var words strings.Builder
		for _, line := range wrap(text, n) {
			if width(line) > n {
				t.Errorf("line of %d columns, more than %d: %q", width(line), n, line)
			}
			words.WriteString(line)
		}
		if got, want := squeeze(words.String()), squeeze(text); got != want {
			t.Errorf("wrap changed the text: %q, want %q", got, want)
		}
	})
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

func TestAges(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 90 * time.Second: "90s", 3 * time.Minute: "3m", 26 * time.Hour: "26h", 72 * time.Hour: "3d",
	} {
		if got := age(d); got != want {
			t.Errorf("age(%s) = %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{-time.Second: "0s", 372 * time.Second: "6m12s", 1500 * time.Millisecond: "2s"} {
		if got := countdown(d); got != want {
			t.Errorf("countdown(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestCleanTakesControlOut(t *testing.T) {
	if got, want := Clean("a\x1b[2Jb\nc\x00\u202ed"), "a[2Jb cd"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestClosest(t *testing.T) {
	names := []string{"shop", "shop-admin", "checkout", "search"}
	for typed, want := range map[string][]string{
		"shpo": {"shop"}, "Shop": {"shop", "shop-admin"}, "chekout": {"checkout"}, "zebra": nil, "shop-admim": {"shop-admin"}, "shxyz": nil, "checkxyz": nil, "shop-axxxn": {"shop-admin"},
	} {
		if diff := cmp.Diff(want, Closest(typed, names)); diff != "" {
			t.Errorf("Closest(%q): %s", typed, diff)
		}
	}
}

func TestScreen(t *testing.T) {
	cases := map[string]struct {
		texts         []string
		columns, rows int
		want          string // written for the last text
	}{
		"first":           {[]string{"one\ntwo\n"}, 20, 10, "\x1b[J\x1b[2Kone\n\x1b[2Ktwo\n"},
		"what differs":    {[]string{"one\ntwo\nthree\n", "one\nTWO\nthree\n"}, 20, 10, "\x1b[3A\r\n\x1b[2KTWO\n\n"},
		"shorter":         {[]string{"one\ntwo\nthree\n", "one\ntwo\n"}, 20, 10, "\x1b[3A\r\n\n\x1b[J"},
		"a long line":     {[]string{strings.Repeat("x", 25) + "\nend\n", strings.Repeat("x", 25) + "\nEND\n"}, 20, 10, "\x1b[3A\r\n\n\x1b[2KEND\n"},
		"lines that move": {[]string{"one\nend\n", strings.Repeat("x", 25) + "\nend\n"}, 20, 10, "\x1b[2A\r\x1b[J\x1b[2K" + strings.Repeat("x", 25) + "\n\x1b[2Kend\n"},
		"too tall":        {[]string{"1\n2\n3\n4\n5\n"}, 60, 4, "\x1b[J\x1b[2K1\n\x1b[2K2\n\x1b[2K… 3 more lines; the window is too small for them\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := &Screen{Out: &out}
			for _, text := range c.texts {
				out.Reset()
				if err := s.show(text, c.columns, c.rows); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
