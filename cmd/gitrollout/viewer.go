package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// viewer is where that comes from which get and list show: Git and, if it can be
// reached, the cluster; the cluster alone; or a reconciler's own page.
type viewer interface {
	// listing is what there is to show of the app that args name, of all without.
	listing(ctx context.Context, args []string, now time.Time) (status.Listing, error)
	// refresh reads what is new, for the next listing.
	refresh(ctx context.Context) (changed bool, err error)
}

// open finds the way that the flags ask for. Without Git it is the cluster that
// is shown; told calls say that something in the cluster has changed.
func (c *lookCommand) open(ctx context.Context, args []string, told func()) (_ viewer, err error) {
	server := cmp.Or(c.server, os.Getenv("GITROLLOUT_SERVER"))
	switch {
	case c.server != "" && c.clusterOnly:
		return nil, usagef("--server and --cluster-only exclude each other")
	case c.clusterOnly:
		return openClusterView(ctx, c.source, c.target, told, "--cluster-only", c.streams)
	case server != "":
		v := &serverView{args: args}
		v.Client, err = dashboard.NewClient(ctx, server, args)
		if errors.Is(err, dashboard.ErrAddress) {
			return nil, usagef("--server %v", err)
		}
		return v, v.explain(ctx, err)
	}
	w, err := openWorld(ctx, c.source, c.streams)
	if errors.Is(err, git.ErrUnreachable) || errors.Is(err, git.ErrAuth) {
		v, clusterErr := openClusterView(ctx, c.source, c.target, told, err.Error(), c.streams)
		if clusterErr != nil {
			return nil, err
		}
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := w.selected(args); err != nil {
		return nil, err
	}
	w.tryConnect(ctx, c.target, func(app string) { w.touch(app); told() }, c.streams)
	return w, nil
}

// clusterView shows what the cluster tells by itself.
type clusterView struct {
	client *cluster.Client
	name   string // of the cluster in Git; "" for any
	why    string
}

func openClusterView(ctx context.Context, source sourceOptions, target clusterOptions, told func(), why string,
	s streams) (*clusterView, error) {
	w := &world{source: source}
	if err := w.connect(ctx, target, func(string) { told() }, s); err != nil {
		return nil, err
	}
	return &clusterView{
		client: w.client, name: cmp.Or(source.cluster, os.Getenv("GITROLLOUT_CLUSTER")),
		why: "shown from the cluster alone, without what is in Git (steps, verdicts, people, what to do next): " + why,
	}, nil
}

// refresh is viewer's. The watches bring what is new.
func (v *clusterView) refresh(context.Context) (bool, error) { return false, nil }

// listing is viewer's.
func (v *clusterView) listing(_ context.Context, args []string, _ time.Time) (status.Listing, error) {
	type name struct{ cluster, app string }
	l := status.Listing{Cluster: v.name}
	var order []name
	found := map[name][]status.Live{}
	for _, a := range v.client.Applied() {
		if (v.name != "" && a.Cluster != v.name) || (len(args) > 0 && a.App != args[0]) {
			continue
		}
		n := name{a.Cluster, a.App}
		if found[n] == nil {
			order = append(order, n)
		}
		found[n] = append(found[n], status.Live{Workload: a.Workload, Observed: a.Live, Commit: a.Commit, Held: a.Status})
		l.Cluster = a.Cluster
	}
	for _, n := range order {
		l.Apps = append(l.Apps, status.OfCluster(n.app, n.cluster, found[n]))
	}
	if len(args) > 0 && len(l.Apps) == 0 {
		return l, &failure{code: exitFailed,
			err: fmt.Errorf("the cluster has no Deployment of an app %q; gitrollout list --cluster-only shows all", args[0])}
	}
	l.SetNote(v.why)
	return l, nil
}

// serverView shows what a reconciler shows on its own page.
type serverView struct {
	*dashboard.Client
	args []string
}

// refresh is viewer's.
func (v *serverView) refresh(ctx context.Context) (bool, error) {
	changed, err := v.Refresh(ctx)
	return changed, v.explain(ctx, err)
}

// listing is viewer's.
func (v *serverView) listing(context.Context, []string, time.Time) (status.Listing, error) {
	return v.Listing(), nil
}

// explain adds to the error that there is no such app the names that may have been meant.
func (v *serverView) explain(ctx context.Context, err error) error {
	if !errors.Is(err, dashboard.ErrNoSuchApp) {
		return err
	}
	if names, listErr := v.Names(ctx); listErr == nil {
		if near := terminal.Closest(v.args[0], names); len(near) > 0 {
			err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
		}
	}
	return &failure{code: exitFailed, err: err}
}
