package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestTriesAreSpread checks that the pause before a retry is the result of Spread, but at least the pause that the service requests.
func TestTriesAreSpread(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := New(Options{Spread: func(d time.Duration) time.Duration { return d + time.Minute }})
	compare.CheckNamed(t, "the first break", time.Minute+time.Second, w.next(retry{}, now, 0).after.Sub(now))
	compare.CheckNamed(t, "after a service has asked for an hour", time.Hour, w.next(retry{}, now, time.Hour).after.Sub(now))
}

// TestKnownIsBounded checks that Worker.keep drops the oldest commits, so that at most 1000 commits and app states remain in total.
func TestKnownIsBounded(t *testing.T) {
	for apps, want := range map[int]int{0: 1000, 1: 500, 9: 100, 999: 1, 1000: 0} {
		w := New(Options{})
		for i := range 1010 {
			w.keep(rollout.StateCommit{ID: fmt.Sprint(i), Apps: make([]rollout.RecordedApp, apps)})
		}
		if len(w.known) != want || want > 0 && w.known[want-1].ID != "1009" {
			t.Errorf("of commits of %d apps %d are kept, want %d", apps, len(w.known), want)
		}
	}
}

// TestLineIsReadWhereItIsNotKnown checks that Worker.line reads Git only if this process does not know all the requested state commits.
func TestLineIsReadWhereItIsNotKnown(t *testing.T) {
	broken := errors.New("no connection")
	for name, c := range map[string]struct {
		after   string
		history func(after, upTo string) ([]rollout.StateCommit, error)
		want    string
	}{
		"all of it": {"", nil, "1 2"},
		"the last":  {"1", nil, "2"},
		"none":      {"2", nil, ""},
		"another beginning": {"x", func(string, string) ([]rollout.StateCommit, error) {
			return []rollout.StateCommit{{ID: "read"}}, nil
		}, "read"},
		"a branch that is ahead": {"x", func(after, _ string) ([]rollout.StateCommit, error) {
			return nil, map[string]error{"x": ErrGone}[after]
		},
			errAhead.Error()},
		"a branch made anew": {"x", func(string, string) ([]rollout.StateCommit, error) { return nil, ErrGone }, ErrGone.Error()},
		"no Git":             {"x", func(string, string) ([]rollout.StateCommit, error) { return nil, broken }, broken.Error()},
		"no Git the second time": {"x", func(after, _ string) ([]rollout.StateCommit, error) {
			return nil, map[string]error{"x": ErrGone, "2": broken}[after]
		}, broken.Error()},
	} {
		w := New(Options{History: func(_ context.Context, after, upTo string) ([]rollout.StateCommit, error) {
			if c.history == nil {
				t.Errorf("%s: Git is asked", name)
				return nil, nil
			}
			return c.history(after, upTo)
		}})
		w.keep(rollout.StateCommit{ID: "1"})
		w.keep(rollout.StateCommit{ID: "2", Parent: "1"})
		w.head = "2"
		line, err := w.line(t.Context(), w.view(), c.after)
		var got []string
		for _, r := range line {
			got = append(got, r.ID)
		}
		if err != nil {
			got = []string{err.Error()}
		}
		compare.CheckNamed(t, name, c.want, strings.Join(got, " "))
	}
}
