package git_test

import (
	"slices"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestLine checks Line for commits near the head and far from the head. At first, the mirror has only the head.
func TestLine(t *testing.T) {
	p := &promoted{Repo: gittest.New(t), t: t}
	first := p.CommitFiles("first", map[string]string{"f": "1"})
	second := p.CommitFiles("second", map[string]string{"f": "2"})
	p.other(120) // more commits than Log fetches at first
	last := p.CommitFiles("last", map[string]string{"f": "3"})
	r := open(t, git.Options{URL: p.Bare})
	fetch(t, r)
	for name, c := range map[string]struct {
		after, upTo string
		n           int // number of snapshots, including the snapshot of `after`
		before      string
	}{
		"none":          {last, last, 1, "3"},
		"one":           {p.Git("rev-parse", "main~1"), last, 2, "2"},
		"many":          {first, last, 123, "1"},
		"to an old one": {first, second, 2, "1"},
		"all":           {"", last, 124, ""},
	} {
		t.Run(name, func(t *testing.T) {
			line, err := r.Line(t.Context(), c.after, c.upTo)
			must(t, err)
			if len(line) != c.n || line[len(line)-1].Commit().ID != c.upTo || line[0].Commit().ID != c.after {
				t.Fatalf("%d commits, want %d", len(line), c.n)
			}
			if data, err := line[0].ReadFile("f"); string(data) != c.before || (err != nil) != (c.before == "") {
				t.Errorf("before: %q, %v", data, err)
			}
			if !slices.IsSortedFunc(line[1:], func(a, b *git.Snapshot) int { return a.Commit().When.Compare(b.Commit().When) }) {
				t.Error("they are not in order")
			}
		})
	}
	for name, after := range map[string]string{"later": last, "never": "0123456789012345678901234567890123456789"} {
		line, err := r.Line(t.Context(), after, second)
		if wantError(t, name, err, git.ErrNotFound); len(line) != 2 || line[0].Commit().ID != first {
			t.Errorf("%s: %d commits, want the newest two", name, len(line))
		}
	}
}
