package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
)

func newOnce(s streams) *cobra.Command {
	var keys trustOptions
	var logs logOptions
	cmd := &cobra.Command{
		Use:   "once",
		Short: "Make one pass: read Git and the cluster, and do the work that is due",
		Long: `Make one pass: read Git and the cluster, and do the work that is due now.

Each app makes at most one transition, which is printed as one line, and another
one when a measurement calls for it. It waits up to a minute for measurements, and
records them. A cron job that calls this is a complete, if slow, reconciler.

The exit code is not 0 if something went wrong with any app, and 8 if an app is held
and a person has to do something: with each call, until it is done.`,
		Example: `  gitrollout once --repo /srv/git/shop.git --cluster kind`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logs.logger(s)
			if err != nil {
				return err
			}
			ctx, release := untilInterrupted(cmd.Context())
			defer release()
			context.AfterFunc(ctx, release)
			l, err := newLoop(ctx, s.source, keys, s.target, writer{id: hostname(), ends: true}, log, s)
			if err != nil {
				return err
			}
			defer l.close()
			told := &transitions{streams: s, held: map[string]string{}}
			l.sinks.Others = append(l.sinks.Others, told.tell)
			stop := l.startBackground()
			err = errors.Join(l.RunOnce(ctx, time.Now, true), l.collect(ctx))
			stop()
			if err = errors.Join(err, l.Unreadable()); err != nil {
				return err
			}
			if told.n == 0 {
				_, _ = fmt.Fprintln(s.out, "nothing to do")
			}
			return told.heldApps()
		},
	}
	s.source.registerAuthor(cmd)
	register(cmd, &keys, &logs)
	return cmd
}

func (l *loop) collect(ctx context.Context) error {
	patient, end := context.WithTimeout(ctx, time.Minute)
	defer end()
	if l.analyzer.Settle(patient) {
		return l.RunOnce(ctx, time.Now, false)
	}
	return nil
}

type transitions struct {
	streams
	mu   sync.Mutex
	n    int
	held map[string]string
}

func (t *transitions) tell(r report.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range r.Apps {
		state := a.Decision.State
		delete(t.held, state.App)
		if state.Held != nil && !state.Held.Waits() {
			t.held[state.App] = state.Held.Message
		}
		if a.Happened {
			t.n++
			_ = t.say(a.Decision.Subject)
		}
	}
}

func (t *transitions) heldApps() error {
	all := rollout.Mapped(slices.Sorted(maps.Keys(t.held)), func(app string) error {
		return fmt.Errorf("app %s is held: %s", app, t.held[app])
	})
	return withCode(exitHeld, errors.Join(all...))
}
