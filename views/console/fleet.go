package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// Fleet reads fleet.yaml in a tree, and the state branches of all clusters, for one app or, for "", for all apps.
func Fleet(ctx context.Context, repo *git.Repo, tree source.Snapshot, app string, now time.Time) (
	f status.Fleet, err error,
) {
	stages, err := source.ReadFleet(tree)
	if err == nil && stages == nil {
		err = rollout.Invalidf(rollout.FleetPath, "", "does not exist, so there are no stages").
			WithFix("commit stages there: see docs/stages.md; gitrollout list --cluster NAME shows the apps of one cluster")
	}
	if err != nil {
		return f, err
	}
	clusters, err := source.Clusters(tree)
	if err != nil {
		return f, err
	}
	branches, known := map[string]*source.Branch{}, map[string]map[string]string{} // heads by repository and branch
	records, failed := map[string]status.ClusterRecords{}, map[string]error{}
	for _, cluster := range clusters {
		b, err := source.NewReader(cluster, nil).Open(tree, nil)
		switch {
		case err != nil:
			return f, err
		case b.Behind != nil:
			records[cluster] = status.ClusterRecords{Problem: b.Behind.Error()}
			continue
		case known[b.Config.StateRepo] == nil:
			known[b.Config.StateRepo] = map[string]string{}
		}
		branches[cluster], known[b.Config.StateRepo][b.Config.StateBranch] = b, ""
	}
	for url, heads := range known {
		if known[url], failed[url] = git.Branches(ctx, repo, url, heads); ctx.Err() != nil {
			return f, failed[url]
		}
	}
	for cluster, b := range branches {
		r, err := recordsOf(ctx, repo, b, known[b.Config.StateRepo][b.Config.StateBranch], failed[b.Config.StateRepo])
		if err != nil {
			r.Problem = fmt.Sprintf("state branch %s %v", b.Config.StateBranch, err)
		}
		records[cluster] = r
	}
	if f = status.FleetOf(stages, records, app, now); app != "" && len(f.Apps) == 0 {
		all := status.FleetOf(stages, records, "", now)
		names := rollout.Mapped(all.Apps, func(a status.FleetApp) string { return a.App })
		return f, NoAppError(fmt.Sprintf("no cluster has an app %q; ", app) +
			cmp.Or(rollout.DidYouMean(app, names), "gitrollout fleet shows all"))
	}
	return f, nil
}

// recordsOf reads a state branch's head. failed is the error of the look-up.
func recordsOf(ctx context.Context, repo *git.Repo, b *source.Branch, head string, failed error) (
	r status.ClusterRecords, err error,
) {
	apps := map[string]bool{}
	for _, a := range b.Apps {
		apps[a.Name] = true
	}
	r.Apps = slices.Collect(maps.Keys(apps))
	switch {
	case failed != nil:
		return r, fmt.Errorf("cannot be read: %w", failed)
	case head == "":
		return r, fmt.Errorf("does not exist: run gitrollout in cluster %s, or take the cluster out of its stage", b.Cluster)
	}
	var states *source.States
	at, err := repo.Snapshot(ctx, head)
	if err == nil {
		states, err = source.ReadStates(at)
	}
	switch {
	case err != nil:
		return r, fmt.Errorf("cannot be read: %w", err)
	case states.Cluster != nil && states.Cluster.Cluster != b.Cluster:
		return r, fmt.Errorf("belongs to cluster %s: set stateBranch in %s", states.Cluster.Cluster,
			rollout.ConfigPath(b.Cluster))
	}
	for name := range states.Files() {
		apps[name] = true
	}
	return status.ClusterRecords{Apps: slices.Collect(maps.Keys(apps)), Of: states.Of}, nil
}
