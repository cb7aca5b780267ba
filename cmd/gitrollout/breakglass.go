package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git/program"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/console"
)

// nowTimeout limits --now. It equals the default progressDeadlineSeconds.
const nowTimeout = 10 * time.Minute

type breakGlass struct {
	streams
	on, now bool
	open    []string // apps that --now must still roll back
	failed  error
}

func (g *breakGlass) register(cmd *cobra.Command, reason *string) {
	push := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case g.now && !g.on:
			return usagef("--now needs --break-glass")
		case !g.on:
			return push(cmd, args)
		case len(args) == 0 || cmd.Flags().Changed("selector") || cmd.Flags().Changed("dry-run"):
			return usagef("--break-glass takes names of apps, and neither --selector nor --dry-run")
		case *reason == "":
			return usagef("--break-glass needs --reason; the reason is recorded when Git answers")
		}
		return g.abort(cmd.Context(), slices.Compact(slices.Sorted(slices.Values(args))), *reason)
	}
	cmd.Flags().BoolVar(&g.on, "break-glass", false,
		"while Git is unreachable: abort by an annotation on the app's workload in the cluster")
	cmd.Flags().BoolVar(&g.now, "now", false,
		"with --break-glass, while no reconciler runs: roll back from a clone on this machine")
}

func (g *breakGlass) abort(ctx context.Context, apps []string, reason string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w, err := g.connect(ctx)
	if err != nil {
		return err
	}
	var moving []cluster.Applied
	var failed error
	for _, app := range apps {
		w.Client.Know(slices.Concat(rollout.PartitionedKinds, rollout.PartitionedOf(w.Apps[app])))
		found, err := inFlight(w.Client.Applied(), app, w.Cluster)
		for _, a := range found {
			if g.now {
				err = errors.Join(err, checkClone(ctx, w, a))
			}
		}
		moving, failed = append(moving, found...), errors.Join(failed, err)
	}
	if failed != nil {
		return failed
	}
	api := cluster.Annotator{Client: w.Client}
	by, err := api.User(ctx)
	if err != nil && !cluster.IsForbidden(err) && !apierrors.IsNotFound(err) { // NotFound: before Kubernetes 1.28
		return fmt.Errorf("ask the API server for your name: %w", err)
	}
	for _, a := range moving {
		b := rollout.BreakGlass{Release: a.Live.Hash, Serial: a.Live.Serial, By: by, Reason: rollout.Printable(reason),
			At: rollout.Second(time.Now())}
		const manager = "gitrollout-break-glass"
		err := api.Annotate(ctx, a.Workload.Ref(), rollout.AnnotationBreakGlass, b.Encode(), manager)
		if err == nil && !g.now {
			err = g.say(fmt.Sprintf("annotated %s: the running reconciler rolls %s back at once, and records the abort "+
				"when Git answers\nto follow the rollback: gitrollout get %s --cluster-only -w", a.Workload.Title(), a.App, a.App))
		}
		failed = errors.Join(failed, err)
	}
	if failed == nil && g.now {
		failed = g.rollBack(ctx, w, apps)
	}
	return failed
}

// connect connects to the cluster. With --now, it also reads the local clone, and fails if a reconciler holds the
// Lease. A reconciler without a Lease is not found, but does no harm: it makes the same decisions as --now.
func (g *breakGlass) connect(ctx context.Context) (w *console.Session, err error) {
	if !g.now {
		w = console.New(console.Options{Cluster: cmp.Or(g.source.cluster, os.Getenv("GITROLLOUT_CLUSTER"))})
		return w, lookAt(ctx, w, func(string) {}, g.streams)
	}
	o, in := &g.source, cmp.Or(g.source.repo, ".")
	if o.repo, err = program.Says(ctx, "-C", in, "rev-parse", "--path-format=absolute", "--git-common-dir"); err != nil {
		return nil, usagef("--now needs a clone of the repository on this machine, here or in --repo: %v", err)
	}
	const origin = "refs/remotes/origin/"
	if _, err := program.Says(ctx, "-C", in, "rev-parse", "--verify", "--quiet", origin+o.branch); err == nil {
		o.refs = origin // a mirror has these branches in refs/heads instead
	}
	if w, err = openWorld(ctx, o, g.streams); err == nil {
		err = connect(ctx, w, func(string) {}, g.streams)
	}
	if err != nil {
		return nil, err
	}
	holder, err := cluster.Leader(ctx, w.Client, "gitrollout-"+w.Cluster, time.Now())
	switch {
	case cluster.IsForbidden(err):
		_, err = fmt.Fprintf(g.err, "it is unknown whether a reconciler runs: %v\n", err)
	case holder != "":
		err = fmt.Errorf("a reconciler runs: %s holds the Lease gitrollout-%s; omit --now", holder, w.Cluster)
	}
	return w, err
}

func checkClone(ctx context.Context, w *console.Session, a cluster.Applied) error {
	s, err := w.States.Of(a.App)
	stable := s.Stable
	if s.Draining != nil {
		stable = &s.Draining.Release
	}
	switch {
	case err != nil:
		return err
	case s.Serial < a.Live.Serial:
		return fmt.Errorf("app %s: the clone is too old: its record has serial %d, and the cluster has serial %d; fetch the "+
			"state branch, or omit --now: a reconciler needs only the annotation", a.App, s.Serial, a.Live.Serial)
	case stable == nil || s.Release == nil && s.Draining == nil:
		return fmt.Errorf("app %s: the clone's record lacks a release in flight or a stable version", a.App)
	}
	gone, err := w.Repo.Bring(ctx, []string{s.Source, stable.Commit})
	if len(gone) > 0 {
		err = fmt.Errorf("app %s: the clone has no commit %s: run git fetch --unshallow", a.App, gone[0])
	}
	return err
}

// inFlight returns the app's workloads that wait at a step (Status is set). If none waits, it returns the workloads
// that replace pods. If none replaces pods, it returns all workloads. It omits experiments' Deployments, because a
// rollback deletes these.
func inFlight(all []cluster.Applied, app, in string) ([]cluster.Applied, error) {
	all = slices.DeleteFunc(all, func(a cluster.Applied) bool {
		return a.App != app || in != "" && a.Cluster != in || a.Generated || a.Live.Hash == "" || a.Live.Serial == 0
	})
	if len(all) == 0 {
		return nil, console.NoAppError(fmt.Sprintf(
			"the cluster has no workload of an app %q; gitrollout list --cluster-only shows all", app))
	}
	if i := slices.IndexFunc(all, func(a cluster.Applied) bool { return a.Cluster != all[0].Cluster }); i >= 0 {
		return nil, usagef("app %q here is of two clusters in Git: name one with --cluster: %s, %s", app,
			all[0].Cluster, all[i].Cluster)
	}
	for _, isMoving := range []func(cluster.Applied) bool{
		func(a cluster.Applied) bool { return a.Status != "" },
		func(a cluster.Applied) bool { return !a.Live.Complete },
	} {
		if slices.ContainsFunc(all, isMoving) {
			return slices.DeleteFunc(all, func(a cluster.Applied) bool { return !isMoving(a) }), nil
		}
	}
	return all, nil
}

// rollBack runs reconciler passes on a clone. The passes record nothing in Git, so no release can advance.
func (g *breakGlass) rollBack(ctx context.Context, w *console.Session, apps []string) error {
	ctx, stop := context.WithTimeout(ctx, nowTimeout)
	defer stop()
	who := writer{id: hostname(), uid: w.UID, only: apps}
	l, err := newLoop(ctx, g.source, trustOptions{own: true}, g.target, who, slog.New(slog.DiscardHandler), g.streams)
	if err != nil {
		return fmt.Errorf("annotated, but not rolled back: %w", err)
	}
	defer l.close()
	g.open = slices.Clone(apps)
	l.sinks.Others = append(l.sinks.Others, (&transitions{streams: g.streams, held: map[string]string{}}).tell, g.tell)
	for last := ""; ; <-time.After(time.Second / 4) {
		err := errors.Join(l.Turn(ctx, reconciler.PumpIn, time.Now), l.Turn(ctx, reconciler.PumpApps, time.Now))
		_ = l.Turn(ctx, reconciler.PumpOut, time.Now) // with `only`, the push fails; then PumpApps reports the rollback
		switch {
		case len(g.open) == 0:
			return g.failed
		case ctx.Err() != nil:
			return &failure{exitNotYet, errors.Join(g.failed, fmt.Errorf("%s: not rolled back after %s, and not recorded in "+
				"Git; to continue, repeat the command", strings.Join(g.open, ", "), nowTimeout), err)}
		case err != nil && err.Error() != last && !errors.Is(err, source.ErrNotReady):
			last = err.Error()
			_, _ = fmt.Fprintln(g.err, last)
		}
	}
}

func (g *breakGlass) tell(r report.Report) {
	for _, a := range r.Apps {
		name, d, text := a.Input.App.Name, a.Decision, "not rolled back"
		i, isAborting := slices.Index(g.open, name), d.State.Phase == rollout.Aborting
		isBack := strategies.IsRolledBack(a.Input, d) || a.Before.Phase == rollout.Aborting && !isAborting
		refused, _ := errors.AsType[*cluster.Error](a.Err)
		isFinal := rollout.IsInvalid(a.Err) || refused != nil && !refused.Temporary()
		switch {
		case i < 0, a.Err != nil && (!isBack || !isFinal), isAborting && !isBack && !d.Stale:
			continue
		case d.Stale && a.Input.Pending != nil:
			text = "a reconciler runs again, and continues from a newer record"
		case a.Err != nil:
			g.failed = errors.Join(g.failed, fmt.Errorf("app %s: all pods have the stable version, but the cluster refuses %w; "+
				"to continue, repeat the command", name, a.Err))
		case isBack:
			text = "all pods have the stable version; the annotation stays until a reconciler has recorded the abort in Git"
		default:
			g.failed = errors.Join(g.failed, fmt.Errorf("app %s is not rolled back: the annotation matches no release in the "+
				"clone's record, which has serial %d; the cluster has serial %d", name, a.Before.Serial, a.Input.Observed.Serial()))
		}
		g.open = slices.Delete(g.open, i, i+1)
		_ = g.say(name + ": " + text)
	}
}
