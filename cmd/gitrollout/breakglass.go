package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

// breakGlassManager is the field manager of the annotation rollout.AnnotationBreakGlass.
const breakGlassManager = "gitrollout-break-glass"

// breakGlass is the flag --break-glass of the command abort: it aborts a release through the cluster, without Git.
type breakGlass struct {
	streams
	target clusterOptions
	on     bool
}

// register adds the flags. The command does its usual work without --break-glass.
func (g *breakGlass) register(cmd *cobra.Command, reason *string) {
	push := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !g.on {
			return push(cmd, args)
		}
		name, err := cmd.Flags().GetString("cluster")
		if err != nil {
			return err
		}
		if len(args) == 0 || cmd.Flags().Changed("selector") || cmd.Flags().Changed("dry-run") {
			return usagef("--break-glass takes names of apps, and neither --selector nor --dry-run")
		}
		for _, app := range args {
			if err := g.abort(cmd.Context(), name, app, *reason); err != nil {
				return err
			}
		}
		return nil
	}
	register(cmd, &g.target)
	cmd.Flags().BoolVar(&g.on, "break-glass", false,
		"while Git is away: abort by an annotation on the app's workload in the cluster")
}

// abort annotates the workloads of an app that have a release in flight.
func (g *breakGlass) abort(ctx context.Context, clusterName, app, reason string) error {
	if reason == "" {
		return usagef("--break-glass needs --reason, which Git records when it answers")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends the watches
	v, err := openClusterView(ctx, sourceOptions{cluster: clusterName}, g.target, func() {}, "--break-glass", g.streams)
	if err != nil {
		return err
	}
	moving, err := inFlight(v, app)
	if err != nil {
		return err
	}
	api := cluster.Annotator{Client: v.Client}
	by, err := api.User(ctx)
	if err != nil {
		return fmt.Errorf("ask the API server for your name: %w", err)
	}
	for _, a := range moving {
		b := rollout.BreakGlass{Release: a.Live.Hash, Serial: a.Live.Serial, By: by, Reason: rollout.Printable(reason),
			At: rollout.Second(time.Now())}
		err := api.Annotate(ctx, a.Workload.Ref(), rollout.AnnotationBreakGlass, b.Encode(), breakGlassManager)
		if err != nil {
			return err
		}
	}
	titles := rollout.Mapped(moving, func(a cluster.Applied) string { return a.Workload.Title() })
	return g.say(fmt.Sprintf("annotated %s: the reconciler rolls %s back at once, and records the abort when Git "+
		"answers\nto follow the rollback: gitrollout get %s --cluster-only -w", strings.Join(titles, ", "), app, app))
}

// inFlight returns the app's workloads with a release in flight. A workload that waits at a step has a status. Without
// such a workload, it returns the workloads whose pods are being replaced.
func inFlight(v *console.ClusterView, app string) ([]cluster.Applied, error) {
	all := slices.DeleteFunc(v.Client.Applied(), func(a cluster.Applied) bool {
		return a.App != app || v.Name != "" && a.Cluster != v.Name || a.Live.Hash == "" || a.Live.Serial == 0
	})
	if len(all) == 0 {
		return nil, console.NoAppError(fmt.Sprintf(
			"the cluster has no workload of an app %q; gitrollout list --cluster-only shows all", app))
	}
	for _, isMoving := range []func(cluster.Applied) bool{
		func(a cluster.Applied) bool { return a.Status != "" },
		func(a cluster.Applied) bool { return !a.Live.Complete },
	} {
		if i := slices.IndexFunc(all, isMoving); i >= 0 {
			return slices.DeleteFunc(all, func(a cluster.Applied) bool { return !isMoving(a) }), nil
		}
	}
	return nil, fmt.Errorf("%s: no release is in flight in the cluster: all pods run %s", app, all[0].Live.Hash)
}
