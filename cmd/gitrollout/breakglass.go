package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

// breakGlassManager is the field manager that sets the annotation rollout.AnnotationBreakGlass.
const breakGlassManager = "gitrollout-break-glass"

// breakGlass implements --break-glass of the command abort: it aborts releases by annotations in the cluster.
type breakGlass struct {
	streams
	on bool
}

// register adds the flags to the command abort. If --break-glass is not set, the command still pushes to Git.
func (g *breakGlass) register(cmd *cobra.Command, reason *string) {
	push := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !g.on {
			return push(cmd, args)
		}
		if len(args) == 0 || cmd.Flags().Changed("selector") || cmd.Flags().Changed("dry-run") {
			return usagef("--break-glass takes names of apps, and neither --selector nor --dry-run")
		}
		if *reason == "" {
			return usagef("--break-glass needs --reason, which Git records when it answers")
		}
		return g.abort(cmd.Context(), slices.Compact(slices.Sorted(slices.Values(args))), *reason)
	}
	cmd.Flags().BoolVar(&g.on, "break-glass", false,
		"while Git is away: abort by an annotation on the app's workload in the cluster")
}

// abort annotates the workloads of apps with a release in flight. If an app has no workload, it annotates no workload.
func (g *breakGlass) abort(ctx context.Context, apps []string, reason string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends the watches
	v, err := openClusterView(ctx, func() {}, "--break-glass", g.streams)
	if err != nil {
		return err
	}
	var moving []cluster.Applied
	var failed error
	for _, app := range apps {
		found, err := inFlight(v, app)
		moving, failed = append(moving, found...), errors.Join(failed, err)
	}
	if failed != nil {
		return failed
	}
	api := cluster.Annotator{Client: v.Client}
	by, err := api.User(ctx)
	if err != nil && !cluster.IsForbidden(err) && !apierrors.IsNotFound(err) { // NotFound before Kubernetes 1.28
		return fmt.Errorf("ask the API server for your name: %w", err)
	}
	for _, a := range moving {
		b := rollout.BreakGlass{Release: a.Live.Hash, Serial: a.Live.Serial, By: by, Reason: rollout.Printable(reason),
			At: rollout.Second(time.Now())}
		err := api.Annotate(ctx, a.Workload.Ref(), rollout.AnnotationBreakGlass, b.Encode(), breakGlassManager)
		if err == nil {
			err = g.say(fmt.Sprintf("annotated %s: the running reconciler rolls %s back at once, and records the abort "+
				"when Git answers\nto follow the rollback: gitrollout get %s --cluster-only -w", a.Workload.Title(), a.App, a.App))
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// inFlight returns an app's workloads with a status, which have a release at a step. If no workload has a status,
// it returns the workloads with a change of pods in progress, or else all. The reconciler checks the release.
func inFlight(v *console.ClusterView, app string) ([]cluster.Applied, error) {
	all := slices.DeleteFunc(v.Client.Applied(), func(a cluster.Applied) bool {
		return a.App != app || v.Name != "" && a.Cluster != v.Name || a.Live.Hash == "" || a.Live.Serial == 0
	})
	if len(all) == 0 {
		return nil, console.NoAppError(fmt.Sprintf(
			"the cluster has no workload of an app %q; gitrollout list --cluster-only shows all", app))
	}
	if i := slices.IndexFunc(all, func(a cluster.Applied) bool { return a.Cluster != all[0].Cluster }); i >= 0 {
		return nil, usagef("two clusters in Git have an app %q here: name one of them by --cluster: %s, %s", app,
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
