package reconciler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// away is a Git server that does not answer.
type away struct {
	Repository
	fetches atomic.Int64
	err     func(n int64) error
}

func (a *away) Fetch(context.Context) (Heads, error) {
	return Heads{}, a.err(a.fetches.Add(1))
}

// TestRunPolls counts looks at Git over a minute of a world in which nothing
// else happens, and lines of the log about an error that stays the same.
func TestRunPolls(t *testing.T) {
	for name, tt := range map[string]struct {
		flag    time.Duration
		config  *rollout.Config
		touch   bool
		fetches int64
	}{
		"flag":                   {10 * time.Second, &rollout.Config{Interval: time.Second}, false, 7},
		"configuration":          {0, &rollout.Config{Interval: 20 * time.Second}, false, 4},
		"neither":                {0, nil, false, 3},
		"changes of the cluster": {0, nil, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				repo := &away{err: func(int64) error { return errors.New("no route") }}
				r := New(Options{Repository: repo, Log: slog.New(slog.NewTextHandler(&log, nil))})
				r.config = tt.config
				ctx, stop := context.WithTimeout(t.Context(), 61*time.Second)
				defer stop()
				ended := make(chan struct{})
				go func() { r.Run(ctx, tt.flag); close(ended) }()
				for tt.touch && ctx.Err() == nil {
					r.Touch("shop")
					time.Sleep(time.Second)
				}
				<-ended
				if got := repo.fetches.Load(); got != tt.fetches {
					t.Errorf("%d looks at Git in 61 seconds, want %d", got, tt.fetches)
				}
				if n := strings.Count(log.String(), "no route"); n != 1 {
					t.Errorf("the same error is logged %d times:\n%s", n, log.String())
				}
				if passes := r.Stats().Passes; tt.touch != (passes > 55) {
					t.Errorf("%d passes", passes)
				}
			})
		})
	}
}

// TestPoll asks for looks at Git between those that the interval asks for.
func TestPoll(t *testing.T) {
	for name, tt := range map[string]struct {
		interval time.Duration
		every    time.Duration // between calls of Poll, over a minute
		fetches  int64
	}{
		"one":                      {10 * time.Minute, time.Minute, 2},
		"a flood":                  {10 * time.Minute, time.Millisecond, 61},
		"never later than without": {250 * time.Millisecond, 100 * time.Millisecond, 241},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				repo := &away{err: func(int64) error { return errors.New("no route") }}
				r := New(Options{Repository: repo, Log: slog.New(slog.DiscardHandler)})
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go r.Run(ctx, tt.interval)
				time.Sleep(tt.interval / 1000)
				began := time.Now()
				for time.Since(began) < time.Minute {
					time.Sleep(tt.every / 2)
					r.Poll()
					time.Sleep(tt.every / 2)
				}
				synctest.Wait()
				if got := repo.fetches.Load(); got < tt.fetches-1 || got > tt.fetches+1 {
					t.Errorf("%d looks at Git in a minute, want about %d", got, tt.fetches)
				}
			})
		})
	}
}

// TestRunStopsAtOnce ends a loop that waits.
func TestRunStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Repository: &away{err: func(int64) error { return errors.New("no route") }}, Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.Run(ctx, time.Hour); close(ended) }()
		synctest.Wait()
		began := time.Now()
		stop()
		<-ended
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %s", took)
		}
	})
}

// TestTimersOfBrokenApps: an app that is left alone wakes nobody, or the loop
// would spin.
func TestTimersOfBrokenApps(t *testing.T) {
	now := time.Now()
	r := New(Options{Log: slog.New(slog.DiscardHandler)})
	for name, a := range map[string]*app{
		"broken": {due: now, broken: errors.New("unreadable"), dirty: true},
		"later":  {due: now.Add(time.Hour)},
		"sooner": {due: now.Add(time.Minute)},
		"never":  {},
	} {
		a.Name = name
		r.apps[name] = a
	}
	if next := r.NextDue(); !next.Equal(now.Add(time.Minute)) {
		t.Errorf("next due at %s, want in a minute", next)
	}
	if r.anyDirty() {
		t.Error("a broken app counts as dirty")
	}
	r.Touch("sooner")
	r.Touch("nobody")
	r.Touch("broken")
	if work := r.due(now); len(work) != 1 || work[0].Name != "sooner" {
		t.Errorf("due now: %v", work)
	}
	if work := r.due(now.Add(time.Hour)); len(work) != 1 || work[0].Name != "later" {
		t.Errorf("due in an hour: %v", work)
	}
}

// TestEachErrorIsLoggedOnce joins errors in changing company.
func TestEachErrorIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	r := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	a, b := errors.New("app a: refused"), fmt.Errorf("fetch: %w", errors.New("no route"))
	for _, err := range []error{errors.Join(a), errors.Join(a, b), errors.Join(b, a), errors.Join(a)} {
		r.logFailures(err)
	}
	if got := log.String(); strings.Count(got, "refused") != 1 || strings.Count(got, "no route") != 1 {
		t.Errorf("logged:\n%s", got)
	}
	r.logFailures(errors.Join(a, b))
	if got := log.String(); strings.Count(got, "no route") != 2 {
		t.Errorf("an error that came back is not logged again:\n%s", got)
	}
}

func TestBackoff(t *testing.T) {
	var got []string
	for n := range 9 {
		got = append(got, backoff(n+1).String())
	}
	if want := "1s 2s 4s 8s 16s 32s 1m0s 1m0s 1m0s"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	if got := backoff(1 << 40); got != time.Minute {
		t.Errorf("after very many failures %s", got)
	}
}
