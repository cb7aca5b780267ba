package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
)

// viewer reads Git, the cluster or both, or a dashboard.
type viewer interface {
	// Listing returns the status of args, or of all apps.
	Listing(ctx context.Context, args []string, now time.Time) (status.Listing, error)
	// Refresh reads again, for the next listing.
	Refresh(ctx context.Context) (changed bool, err error)
}

// open returns the flags' viewer. Without Git, it reads only the cluster.
func (c *lookCommand) open(ctx context.Context, args []string, told func()) (_ viewer, err error) {
	server := cmp.Or(c.server, os.Getenv("GITROLLOUT_SERVER"))
	switch {
	case c.server != "" && c.clusterOnly:
		return nil, usagef("--server and --cluster-only exclude each other")
	case c.clusterOnly:
		return openClusterView(ctx, told, "--cluster-only", c.streams)
	case server != "":
		client, err := dashboard.NewClient(server, args)
		if err != nil {
			return nil, usagef("--server %v", err)
		}
		v := &serverView{client, args}
		_, err = v.Refresh(ctx)
		return v, err
	}
	w, err := openWorld(ctx, &c.source, c.streams)
	if errors.Is(err, git.ErrUnreachable) || errors.Is(err, git.ErrAuth) {
		if c.selector != "" {
			return nil, fmt.Errorf("--selector needs the labels in Git: %w", err)
		}
		v, clusterErr := openClusterView(ctx, told, err.Error(), c.streams)
		if clusterErr != nil {
			return nil, err
		}
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := w.Selected(args); err != nil {
		return nil, err
	}
	changed := func(app string) { w.Touch(app); told() }
	return measuredView{w, "http://" + dashAddress}, tryConnect(ctx, w, changed, c.streams)
}

// measuredView adds a dashboard's measurements that are not in Git yet.
type measuredView struct {
	viewer
	page string
}

// Listing implements viewer.
func (v measuredView) Listing(ctx context.Context, args []string, now time.Time) (status.Listing, error) {
	l, err := v.viewer.Listing(ctx, args, now)
	if err != nil || len(args) != 1 || l.Apps[0].Release == nil || len(l.Apps[0].Analyses) == 0 {
		return l, err
	}
	ctx, stop := context.WithTimeout(ctx, time.Second) // another program may listen, and never respond
	defer stop()
	page, err := dashboard.NewClient(v.page, args)
	if err == nil {
		_, err = page.Refresh(ctx)
	}
	if err == nil {
		a, live := &l.Apps[0], page.Listing().Apps[0]
		if r := live.Release; r != nil && live.Cluster == a.Cluster && r.Hash == a.Release.Hash {
			a.Analyses = live.Analyses
		}
	}
	return l, nil
}

func openClusterView(ctx context.Context, told func(), why string, s streams) (*console.ClusterView, error) {
	w := console.New(console.Options{Cluster: s.source.cluster})
	if err := lookAt(ctx, w, func(string) { told() }, s); err != nil {
		return nil, err
	}
	w.Client.Know(rollout.PartitionedKinds)
	if w.Note != "" {
		why += "; " + w.Note
	}
	name := cmp.Or(s.source.cluster, os.Getenv("GITROLLOUT_CLUSTER"))
	return &console.ClusterView{Client: w.Client, Name: name, Why: why}, nil
}

type serverView struct {
	*dashboard.Client
	args []string
}

// Refresh implements viewer.
func (v *serverView) Refresh(ctx context.Context) (bool, error) {
	changed, err := v.Client.Refresh(ctx)
	if !errors.Is(err, dashboard.ErrNoSuchApp) {
		return changed, err
	}
	if names, listErr := v.Names(ctx); listErr == nil {
		if near := rollout.DidYouMean(v.args[0], names); near != "" {
			err = fmt.Errorf("%w; %s", err, near)
		}
	}
	return false, &failure{code: exitFailed, err: err}
}

// Listing implements viewer.
func (v *serverView) Listing(context.Context, []string, time.Time) (status.Listing, error) {
	return v.Client.Listing(), nil
}
