package reconciler_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// stuck is a Repository and an Observer. Its Fetch calls s.fetch and then fails.
type stuck struct {
	reconciler.Repository
	reconciler.Observer
	fetch func(context.Context)
}

func (s stuck) Fetch(ctx context.Context) (rollout.Heads, error) {
	s.fetch(ctx)
	return rollout.Heads{}, errors.New("no route")
}

// TestWorkThatHangsIsNamed checks when a fetch counts as stuck: after ten intervals without a heartbeat, but not before
// 5 minutes. A fetch with heartbeats is not stuck. A loop that waits for its next fetch is not stuck either.
func TestWorkThatHangsIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		interval time.Duration
		fetch    func(context.Context)
		after    time.Duration
		hangs    bool
	}{
		"for ever, not for long":           {time.Second, func(context.Context) { time.Sleep(time.Hour) }, 299 * time.Second, false},
		"for ever":                         {time.Second, func(context.Context) { time.Sleep(time.Hour) }, 301 * time.Second, true},
		"for ever, at long intervals":      {time.Minute, func(context.Context) { time.Sleep(time.Hour) }, 599 * time.Second, false},
		"for ever, for ten long intervals": {time.Minute, func(context.Context) { time.Sleep(time.Hour) }, 601 * time.Second, true},
		"nothing to do but wait":           {time.Hour, func(context.Context) {}, 59 * time.Minute, false},
		"slow, with signs of life": {time.Second, func(ctx context.Context) {
			for range 30 {
				time.Sleep(2 * time.Minute)
				reconciler.Heartbeat(ctx)
			}
		}, 50 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := reconciler.New(reconciler.Options{Repository: stuck{fetch: tt.fetch}, Log: slog.New(slog.DiscardHandler)})
				ctx, stop := context.WithCancel(t.Context())
				go r.Run(ctx, tt.interval)
				time.Sleep(tt.after)
				if hung := r.Stuck(tt.interval); (hung != "") != tt.hangs || tt.hangs && !strings.HasSuffix(hung, "from: Git") {
					t.Errorf("after %s: %q, want that it hangs: %t", tt.after, hung, tt.hangs)
				}
				stop()
				time.Sleep(2 * time.Hour)
				compare.CheckNamed(t, "ended work that hangs", "", r.Stuck(tt.interval))
			})
		})
	}
}

// TestOneAppThatHangsIsNamed checks that Stuck names only the app whose pass is stuck.
func TestOneAppThatHangsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reconciler.New(reconciler.Options{
			Repository: stuck{fetch: func(context.Context) {}}, Log: slog.New(slog.DiscardHandler),
			Trace: func(ctx context.Context, part report.Part, app string) (context.Context, func(error)) {
				if part == report.PartPass && app == "web" {
					time.Sleep(time.Hour)
				}
				return ctx, func(error) {}
			},
		})
		r.See(&source.Branch{}, "shop", "web")
		ctx, stop := context.WithCancel(t.Context())
		go r.Run(ctx, time.Hour)
		r.Touch("web")
		r.Touch("shop")
		time.Sleep(6 * time.Minute)
		compare.Check(t, "no sign of life for 5m0s from: app web", r.Stuck(time.Second))
		stop()
		time.Sleep(time.Hour)
	})
}
