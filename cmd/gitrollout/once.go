package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/views/terminal"
)

func newOnce(s streams) *cobra.Command {
	var source sourceOptions
	var keys trustOptions
	var target clusterOptions
	var logs logOptions
	cmd := &cobra.Command{
		Use:   "once",
		Short: "Make one pass: look at Git and the cluster, and do what is due",
		Long: `Make one pass: look at Git and the cluster, and do what is due now.

Each app makes at most one transition, which is printed as one line. A cron job
that calls this is a complete, if slow, reconciler.

The exit code is not 0 if something went wrong with any app.`,
		Example: `  gitrollout once --repo /srv/git/shop.git --cluster kind`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logs.logger(s)
			if err != nil {
				return err
			}
			ctx, release := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer release()
			context.AfterFunc(ctx, release)
			told := &transitions{Handler: log.Handler(), streams: s}
			l, err := newLoop(ctx, source, keys, target, slog.New(told), s)
			if err != nil {
				return err
			}
			defer l.close()
			stop := l.startBackground()
			err = l.RunOnce(ctx, time.Now(), true)
			stop()
			if err = errors.Join(err, l.Unreadable()); err != nil {
				return err
			}
			if told.n == 0 {
				_, _ = fmt.Fprintln(s.out, "nothing to do")
			}
			return nil
		},
	}
	source.register(cmd)
	keys.register(cmd)
	target.register(cmd)
	logs.register(cmd)
	return cmd
}

// transitions prints the loop's transitions as lines and hands everything else
// that it logs on.
type transitions struct {
	slog.Handler
	streams
	mu sync.Mutex
	n  int
}

// Handle is slog.Handler's.
func (t *transitions) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != "transition" {
		return t.Handler.Handle(ctx, r)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	var err error
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "what" {
			_, err = fmt.Fprintln(t.out, terminal.Clean(a.Value.String()))
			return false
		}
		return true
	})
	return err
}
