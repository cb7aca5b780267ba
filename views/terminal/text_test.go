package terminal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "shop": 4, "→ ✔": 3, "山田": 4, "e\u0301": 1, "🚀": 2, "한국": 4, "ｱ": 1,
		"✅ ⭐": 5, "🥇": 2, "🫠": 2, "✔ ✖ ●": 5} {
		compare.CheckNamed(t, text, want, width(text))
	}
}

func TestTruncate(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		n    int
		want string
	}{
		"fits":             {"shop", 4, "shop"},
		"cut":              {"checkout", 5, "chec…"},
		"wide at the edge": {"山田太郎", 4, "山…"},
		"nothing left":     {"shop", 0, ""},
		"one column":       {"shop", 1, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			compare.CheckNamed(t, c.text, c.want, Truncate(c.text, c.n))
		})
	}
}

func TestWrap(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		n    int
		want []string
	}{
		"nothing":           {"", 20, []string{""}},
		"to the edge":       {strings.Repeat("x", 20) + " y", 20, []string{strings.Repeat("x", 20), "y"}},
		"a long word alone": {strings.Repeat("x", 45), 20, []string{strings.Repeat("x", 20), strings.Repeat("x", 20), "xxxxx"}},
		"half is free": {"123456789 " + strings.Repeat("x", 21), 20,
			[]string{"123456789 " + strings.Repeat("x", 10), strings.Repeat("x", 11)}},
		"less is free":      {"1234567890 " + strings.Repeat("x", 21), 20, []string{"1234567890", strings.Repeat("x", 20), "x"}},
		"between words":     {"one two three four five six", 20, []string{"one two three four", "five six"}},
		"a word too long":   {"see " + strings.Repeat("x", 30), 20, []string{"see " + strings.Repeat("x", 16), strings.Repeat("x", 14)}},
		"never below 20":    {"one two three four five", 3, []string{"one two three four", "five"}},
		"space of any kind": {"one\n two\tthree", 20, []string{"one two three"}},
	} {
		t.Run(name, func(t *testing.T) {
			compare.Check(t, c.want, wrap(c.text, c.n))
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
		compare.CheckNamed(t, "words", squeeze(text), squeeze(words.String()))
	})
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

func TestAges(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 90 * time.Second: "90s", 3 * time.Minute: "3m", 26 * time.Hour: "26h", 72 * time.Hour: "3d",
		0: "0s", 2*time.Minute - 1: "119s", 2 * time.Minute: "2m", 2*time.Hour - 1: "119m", 2 * time.Hour: "2h", 48*time.Hour - 1: "47h",
		48 * time.Hour: "2d",
	} {
		compare.CheckNamed(t, "age of "+d.String(), want, age(d))
	}
	for d, want := range map[time.Duration]string{-time.Second: "0s", 372 * time.Second: "6m12s", 1500 * time.Millisecond: "2s", 0: "0s",
		1: "1s", time.Second: "1s", time.Second + 1: "2s"} {
		compare.CheckNamed(t, "countdown of "+d.String(), want, countdown(d))
	}
}

func TestCleanTakesControlOut(t *testing.T) {
	compare.Check(t, "a[2Jb cd", Clean("a\x1b[2Jb\nc\x00\u202ed"))
}

func TestScreen(t *testing.T) {
	for name, c := range map[string]struct {
		texts         []string
		columns, rows int
		want          string // the output that shows the last text
	}{
		"first":            {[]string{"one\ntwo\n"}, 20, 10, "\x1b[J\x1b[2Kone\n\x1b[2Ktwo\n"},
		"a different line": {[]string{"one\ntwo\nthree\n", "one\nTWO\nthree\n"}, 20, 10, "\x1b[3A\r\n\x1b[2KTWO\n\n"},
		"shorter":          {[]string{"one\ntwo\nthree\n", "one\ntwo\n"}, 20, 10, "\x1b[3A\r\n\n\x1b[J"},
		"a long line": {[]string{strings.Repeat("x", 25) + "\nend\n", strings.Repeat("x", 25) + "\nEND\n"}, 20, 10,
			"\x1b[3A\r\n\n\x1b[2KEND\n"},
		"lines that move": {[]string{"one\nend\n", strings.Repeat("x", 25) + "\nend\n"}, 20, 10,
			"\x1b[2A\r\x1b[J\x1b[2K" + strings.Repeat("x", 25) + "\n\x1b[2Kend\n"},
		"another width":  {[]string{"one\ntwo\n", "one\ntwo\n"}, -20, 10, "\x1b[H\x1b[2J\x1b[J\x1b[2Kone\n\x1b[2Ktwo\n"},
		"another height": {[]string{"one\ntwo\n", "one\ntwo\n"}, 20, -10, "\x1b[H\x1b[2J\x1b[J\x1b[2Kone\n\x1b[2Ktwo\n"},
		"a full line":    {[]string{strings.Repeat("x", 20) + "\n", "y\n"}, 20, 10, "\x1b[1A\r\x1b[2Ky\n"},
		"painted":        {[]string{"\x1b[31m" + strings.Repeat("x", 20) + "\x1b[0m\n\n", "y\n\n"}, 20, 10, "\x1b[2A\r\x1b[2Ky\n\n"},
		"just fits":      {[]string{"1\n2\n3\n"}, 60, 4, "\x1b[J\x1b[2K1\n\x1b[2K2\n\x1b[2K3\n"},
		"two rows":       {[]string{"1\n2\n3\n"}, 60, 3, "\x1b[J\x1b[2K1\n\x1b[2K… 2 more lines; the window is too small for them\n"},
		"one row":        {[]string{"1\n2\n"}, 60, 2, "\x1b[J\x1b[2K1\n\x1b[2K2\n"},
		"too tall": {[]string{"1\n2\n3\n4\n5\n"}, 60, 4,
			"\x1b[J\x1b[2K1\n\x1b[2K2\n\x1b[2K… 3 more lines; the window is too small for them\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := &Screen{Out: &out}
			for i, text := range c.texts {
				out.Reset()
				columns, rows := max(c.columns, -c.columns), max(c.rows, -c.rows)
				if i > 0 { // a negative size: the window shrinks by one after the first text
					columns, rows = columns+min(0, c.columns)/20, rows+min(0, c.rows)/10
				}
				if err := s.show(text, columns, rows); err != nil {
					t.Fatal(err)
				}
			}
			compare.Check(t, c.want, out.String())
		})
	}
}

// TestScreenDrawsFewerPods checks that Draw omits pods only if the text does not fit, and then as few pods as possible.
func TestScreenDrawsFewerPods(t *testing.T) {
	for rows, want := range map[int]string{
		12: "11 rows, without 0", 11: "10 rows, without 3", 9: "8 rows, without 3", 8: "7 rows, without 5", 7: "6 rows, without 5",
		6: "5 rows, without 6", 3: "2 rows, without 6",
	} {
		var out strings.Builder
		s := &Screen{Out: &out}
		if err := s.Draw(Look{}, 80, rows, func(k Look) string {
			return fmt.Sprintf("%d rows, without %d\n", k.Rows, k.fewer) + strings.Repeat("pod\n", 10-k.fewer)
		}); err != nil {
			t.Fatal(err)
		}
		compare.Contains(t, out.String(), want)
	}
}

// TestApart checks that apart draws "right" at the right edge, and cuts the longest of the other texts if they do not fit.
func TestApart(t *testing.T) {
	for _, c := range []struct {
		width int
		want  string
		left  []string
	}{
		{30, "shop is Healthy        prod-eu", []string{"shop", " is Healthy"}},
		{24, "shop is Healthy  prod-eu", []string{"shop", " is Healthy"}},
		{23, "shop is Healt…  prod-eu", []string{"shop", " is Healthy"}},
		{23, "a-long-nam… ok  prod-eu", []string{"a-long-name-of-it", " ok"}},
		{0, "shop" + strings.Repeat(" ", 69) + "prod-eu", []string{"shop"}},
		{20, strings.Repeat(" ", 13) + "prod-eu", nil},
	} {
		var spans []span
		for _, text := range c.left {
			spans = append(spans, span{text: text})
		}
		compare.CheckNamed(t, fmt.Sprint(c.width, " columns"), c.want+"\n", (Look{Width: c.width}).apart(span{text: "prod-eu"}, spans...))
	}
}

func TestTextsOfPeople(t *testing.T) {
	for author, want := range map[string]string{"Ann Lee <ann@example.com>": "Ann Lee", " <ann@example.com>": "ann@example.com",
		"": "", "Ann": "Ann"} {
		compare.CheckNamed(t, author, want, person(author))
	}
	compare.Check(t, "a\n  bc\n\n d\n", CleanLines("a\n  b\x1bc  \n\n d"))
	for n, want := range map[int]string{7: "checko…", 20: "che…d8f7c9b4-bbbbb-c", 40: "checkout-5d8f7c9b4-bbbbb-c"} {
		compare.CheckNamed(t, fmt.Sprint(n, " columns"), want, truncateMiddle("checkout-5d8f7c9b4-bbbbb-c", n))
	}
}

// TestMetricCounts checks the text with the numbers of measurements by verdict. If there are no measurements, the text is "not recorded
// yet".
func TestMetricCounts(t *testing.T) {
	for want, m := range map[string]rollout.MetricProgress{
		"not recorded yet":               {},
		"4 without a verdict":            {Count: 4},
		"1 ok, 2 failed, 3 inconclusive": {Count: 6, Successful: 1, Failed: 2, Inconclusive: 3},
		"2 ok, 1 without a verdict":      {Count: 3, Successful: 2},
		"1 error":                        {Errors: 1},
	} {
		compare.Check(t, want, strings.Join(metricCounts(m), ", "))
	}
}

func TestFleetLine(t *testing.T) {
	waits, held := &rollout.Held{Reason: "ReleasesClosed"}, &rollout.Held{Reason: "InvalidInput"}
	l := status.Listing{Cluster: "prod", Apps: []status.App{{Phase: "Paused", Held: waits}, {Phase: "Degraded"}, {Phase: "Paused"}}}
	compare.Check(t, "prod  3 apps:  ✖ 1 Degraded  ‖ 2 Paused\n", fleetLine(l, Look{}))
	l.Apps[1].Held = held
	compare.Check(t, "prod  3 apps:  ✖ 1 Degraded  ‖ 2 Paused  ■ 1 held\n", fleetLine(l, Look{}))
}

func TestLine(t *testing.T) {
	moving := status.Workload{
		Workload: "shop/web", Moving: true, Step: 2, Weight: 20, FullWeight: 100,
		Steps: []status.Step{{Text: "setWeight 20", Status: "done"}, {Text: "pause", Status: "current"}},
	}
	last, aborting := moving, moving
	last.Steps = []status.Step{{Text: "setWeight 20", Status: "done"}, {Text: "pause", Status: "done"}}
	aborting.Steps = []status.Step{{Text: "setWeight 20", Status: "done"}, {Text: "pause"}}
	release, stable := &status.Release{Hash: "h1-new"}, &status.Release{Hash: "h1-old"}
	for want, a := range map[string]status.App{
		"shop Healthy h1-old": {Phase: rollout.Healthy, Stable: stable},
		"shop Unknown":        {Phase: "Unknown"},
		"shop Paused h1-new, shop/web step 2/2 (pause, 20%), waits for a promotion": {
			Phase: rollout.Paused, Release: release, Stable: stable, Workloads: []status.Workload{moving}, Waiting: "a promotion",
		},
		"shop Progressing h1-new":         {Phase: rollout.Progressing, Release: release, Workloads: []status.Workload{last}, Waiting: "pods"},
		"shop Aborting h1-old: it failed": {Phase: rollout.Aborting, Stable: stable, Workloads: []status.Workload{aborting}, Reason: "it failed"},
		"shop Degraded h1-old, held: no such file": {
			Phase: rollout.Degraded, Stable: stable, Reason: "pods", Held: &rollout.Held{Reason: "RenderFailed", Message: "no such\nfile"},
		},
		"shop Promoting c1-new, waits for hook shop/check: Job check-1 to end": {
			Phase: rollout.Promoting, Release: &status.Release{Hash: "c1-new"}, Stable: stable,
			Hooks: []rollout.HookRun{{Phase: rollout.HookRunning}}, Waiting: "hook shop/check: Job check-1 to end",
		},
		"shop Healthy h1-old, running hooks: release h1-new of c2 by Ann waits for hook shop/check: Job check-1 to end": {
			Phase: rollout.Healthy, Stable: stable, Waiting: "hook shop/check: Job check-1 to end",
			Held: &rollout.Held{Reason: rollout.HeldHook, Message: "release h1-new of c2 by Ann waits for its hooks"},
		},
	} {
		a.App = "shop"
		if a.Held.Waits() && waitingText(a) != a.WhyHeld() {
			t.Errorf("a list says %q", waitingText(a))
		}
		compare.Check(t, want, Line(a))
	}
}
