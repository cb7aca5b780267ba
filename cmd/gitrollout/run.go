package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/reconciler/adapters"
)

type runCommand struct {
	streams
	keys     trustOptions
	logs     logOptions
	election electOptions
	hooks    hookOptions
	observe  observeOptions
	dash     dashOptions
	interval time.Duration
}

func newRun(s streams) *cobra.Command {
	c := &runCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Reconcile a cluster with Git until told to stop",
		Long: `Reconcile a cluster with Git until told to stop.

It polls the branch, starts releases, moves them on step by step and commits
each transition to the branch gitrollout/state/<cluster>. It needs push rights to
gitrollout/** only. Everything it knows is in Git: it can be killed and started
elsewhere at any time.

If two run by mistake, they do no harm: every push says where the state branch must
be, and the loser decides again. With --leader-elect several replicas take
turns: one works, and another one goes on when it is gone.

With --webhook-address, a push takes effect at once instead of at the next poll:
point the forge's webhook for pushes at http://host:port/webhook.

A web page of all releases is at --dashboard-address; see: gitrollout dashboard --help

At --metrics-address it serves metrics for Prometheus, and /healthz and /readyz
for probes. When a part of its work makes no progress for 5 minutes (and for ten
intervals), it fails its probe, gives up the Lease and ends. With
OTEL_EXPORTER_OTLP_ENDPOINT set, each pass is sent as a trace.

SIGINT or SIGTERM ends it after the pass in progress, and after 25 seconds in any
case; a second one at once.`,
		Example: `  gitrollout run --repo https://git.example.com/shop.git --cluster prod-eu
  gitrollout run --repo /srv/git/shop.git --cluster kind --interval 2s`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all, err := cmd.Flags().GetBool("help-all"); all {
				return errors.Join(err, cmd.Help())
			}
			log, err := c.logs.logger(s)
			if err != nil {
				return err
			}
			if c.interval < 0 {
				return usagef("--interval %s is negative; 0 means the interval in the configuration", c.interval)
			}
			if err := c.dash.check(); err != nil {
				return err
			}
			return c.reconcile(cmd.Context(), log)
		},
	}
	c.source.registerAuthor(cmd)
	register(cmd, &c.keys, &c.logs, &c.election, &c.hooks, &c.observe, &c.dash)
	cmd.Flags().DurationVar(&c.interval, "interval", 0, "time between polls of Git (default: the configuration's)")
	showSettings(cmd)
	return cmd
}

// mainFlags lists the flags in docs/settings.md. Besides global flags, run --help shows only these.
var mainFlags = []string{"repo", "branch", "cluster", "ssh-key", "context", "namespaces", "interval", "webhook-address",
	"dashboard-address", "metrics-address", "leader-elect", "promoters"}

func showSettings(cmd *cobra.Command) {
	all := cmd.Flags().Bool("help-all", false, "show all flags")
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(c *cobra.Command, args []string) {
		shown := c
		if !*all {
			nothing := func(*cobra.Command, []string) {}
			shown = &cobra.Command{Use: c.Name(), Long: c.Long, Example: c.Example, Run: nothing}
			c.Parent().AddCommand(shown)
			for _, name := range append(mainFlags, "help", "help-all") {
				shown.Flags().AddFlag(c.Flag(name))
			}
		}
		help(shown, args)
	})
}

func (c *runCommand) reconcile(ctx context.Context, log *slog.Logger) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25) // the process is mostly idle, so memory costs more than collections
	}
	listener, secret, err := c.hooks.listen()
	if err != nil {
		return err
	}
	if listener != nil {
		defer listener.Close()
	}
	seen, err := c.observe.open(log, c.election.elect)
	if err != nil {
		return err
	}
	defer seen.stop()
	ctx, release := untilInterrupted(ctx)
	defer release()
	context.AfterFunc(ctx, release) // a second signal ends the process immediately
	who := c.election.identity()
	l, err := newLoop(ctx, c.source, c.keys, c.target, who, log, c.streams)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		log.Info("stopped before the first pass")
		return nil
	}
	if err != nil {
		return err
	}
	defer l.close()
	hung := func() string { return l.Stuck(c.interval) }
	if err := seen.attach(ctx, l, hung); err != nil {
		return err
	}
	log.Info("reconciling", "cluster", l.source.cluster, "repo", l.remote, "branch", l.source.branch, "api", l.server,
		"version", versionOf().Version)
	if listener != nil {
		stop, err := serveHooks(listener, secret, l, log)
		if err != nil {
			return err
		}
		defer stop()
	}
	stopDashboard, err := startDashboard(c.dash, l, log, c.streams)
	if err != nil {
		return err
	}
	defer stopDashboard()
	stop := l.startBackground()
	run := func(ctx context.Context) error { return l.Run(ctx, c.interval) }
	err = c.election.lead(ctx, l.kube, l.source.cluster, who.id, log,
		seen.leads(adapters.Supervised(10*time.Second, hung, run)))
	stop()
	log.Info("stopped", "passes", l.Stats().Passes, "commits", l.Stats().Commits)
	return err
}

func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
}

func slowly[T any](s streams, what string, do func() (T, error)) (T, error) {
	timer := time.AfterFunc(2*time.Second, func() { _, _ = fmt.Fprintln(s.err, what+" …") })
	defer timer.Stop()
	return do()
}
