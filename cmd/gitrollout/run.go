package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func newRun(s streams) *cobra.Command {
	var source sourceOptions
	var keys trustOptions
	var target clusterOptions
	var logs logOptions
	var election electOptions
	var hooks hookOptions
	var observe observeOptions
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Reconcile a cluster with Git until told to stop",
		Long: `Reconcile a cluster with Git until told to stop.

It polls the branch, starts releases, moves them on step by step and commits
what it did to the branch gitrollout/state/<cluster>. It needs push rights to
gitrollout/** only. Everything it knows is in Git: it can be killed and started
elsewhere at any time.

Two that run by mistake do no harm: every push says where the state branch must
be, and the loser decides again. With --leader-elect several replicas take
turns: one works, and another one goes on when it is gone.

With --webhook-address, a push takes effect at once instead of at the next poll:
point the forge's webhook for pushes at http://host:port/webhook.

At --metrics-address it serves metrics for Prometheus, and /healthz and /readyz
for probes. With OTEL_EXPORTER_OTLP_ENDPOINT set, each pass is sent as a trace.

SIGINT or SIGTERM ends it after the pass in progress; a second one at once.`,
		Example: `  gitrollout run --repo https://git.example.com/shop.git --cluster prod-eu
  gitrollout run --repo /srv/git/shop.git --cluster kind --interval 2s`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logs.logger(s)
			if err != nil {
				return err
			}
			if interval < 0 {
				return usagef("--interval %s is negative; 0 takes the configuration's", interval)
			}
			return reconcile(cmd.Context(), source, keys, target, hooks, observe, election, log, interval, s)
		},
	}
	source.register(cmd)
	keys.register(cmd)
	target.register(cmd)
	logs.register(cmd)
	election.register(cmd)
	hooks.register(cmd)
	observe.register(cmd)
	cmd.Flags().DurationVar(&interval, "interval", 0, "time between polls of Git (default: the configuration's)")
	return cmd
}

// reconcile is run once its flags are understood.
func reconcile(ctx context.Context, source sourceOptions, keys trustOptions, target clusterOptions, hooks hookOptions, observe observeOptions, election electOptions, log *slog.Logger, interval time.Duration, s streams) error {
	listener, secret, err := hooks.listen()
	if err != nil {
		return err
	}
	if listener != nil {
		defer listener.Close()
	}
	seen, err := observe.open(log, election.elect)
	if err != nil {
		return err
	}
	defer seen.stop()
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer release()
	context.AfterFunc(ctx, release) // a second signal kills
	l, err := newLoop(ctx, source, keys, target, log, s)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		log.Info("stopped before the first pass")
		return nil
	}
	if err != nil {
		return err
	}
	defer l.close()
	if err := seen.attach(ctx, l); err != nil {
		return err
	}
	log.Info("reconciling", "cluster", l.source.cluster, "repo", l.remote, "branch", l.source.branch, "api", l.server, "version", versionOf().Version)
	if listener != nil {
		stop, err := serveHooks(listener, secret, l, log)
		if err != nil {
			return err
		}
		defer stop()
	}
	stop := l.startBackground()
	l.Writer, l.Exclusive = election.identity()
	err = election.lead(ctx, l.kube, l.source.cluster, l.Writer, log, seen.leads(l, func(ctx context.Context) error { return l.Run(ctx, interval) }))
	stop()
	log.Info("stopped", "passes", l.Stats().Passes, "commits", l.Stats().Commits)
	return err
}

// slowly does something and says on the standard error what it is, if it takes
// longer than two seconds.
func slowly(s streams, what string, do func() error) error {
	timer := time.AfterFunc(2*time.Second, func() { _, _ = fmt.Fprintln(s.err, what+" …") })
	defer timer.Stop()
	return do()
}
