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

// Fleet reads a tree's fleet.yaml and all state branches, for one app or, for "", all apps.
func Fleet(ctx context.Context, repo *git.Repo, tree source.Snapshot, app string, now time.Time) (
	f status.Fleet, err error,
) {
	stages, err := source.ReadFleet(tree)
	clusters, failed := source.Clusters(tree)
	if err = cmp.Or(err, failed); err == nil && stages == nil {
		err = rollout.Invalidf(rollout.FleetPath, "", "does not exist, so there are no stages").
			WithFix("commit stages there: see docs/stages.md; gitrollout list --cluster NAME shows the apps of one cluster")
	}
	branches := make([]*source.Branch, len(clusters))
	heads, broken := map[string]map[string]string{}, map[string]error{} // by repository
	for i := 0; i < len(clusters) && err == nil; i++ {
		branches[i], err = source.NewReader(clusters[i], nil).Open(tree, nil)
		if err == nil && branches[i].Config != nil {
			c := branches[i].Config
			if heads[c.StateRepo] == nil {
				heads[c.StateRepo] = map[string]string{}
			}
			heads[c.StateRepo][c.StateBranch] = ""
		}
	}
	if err != nil {
		return f, err
	}
	for url := range heads {
		heads[url], broken[url] = git.Branches(ctx, repo, url, heads[url])
	}
	records, names := map[string]status.ClusterRecords{}, []string{}
	for _, b := range branches {
		states, err := statesOf(ctx, repo, b, heads, broken)
		r, apps := status.ClusterRecords{States: map[string]*rollout.State{}}, maps.Clone(states.Files())
		for _, a := range b.Apps {
			apps[a.Name] += ""
		}
		problem := err
		for _, name := range slices.Sorted(maps.Keys(apps)) {
			if names = append(names, name); app != "" && app != name {
				continue
			}
			s, failed := states.Of(name)
			if r.States[name] = &s; err != nil || failed != nil {
				r.States[name], problem = nil, cmp.Or(problem, failed)
			}
		}
		if problem != nil {
			r.Problem = rollout.OneLine(problem.Error())
		}
		records[b.Cluster] = r
	}
	if app != "" && !slices.Contains(names, app) {
		err = NoAppError(fmt.Sprintf("no cluster has an app %q; ", app) +
			cmp.Or(rollout.DidYouMean(app, slices.Compact(slices.Sorted(slices.Values(names)))), "gitrollout fleet shows all"))
	}
	return status.FleetOf(stages, records, now), cmp.Or(ctx.Err(), err)
}

// statesOf reads the records in a cluster's state branch. With an error, there are none.
func statesOf(
	ctx context.Context, repo *git.Repo, b *source.Branch, heads map[string]map[string]string, broken map[string]error,
) (*source.States, error) {
	none, _ := source.ReadStates(nil)
	if b.Config == nil {
		return none, b.Behind
	}
	states, head, err := none, heads[b.Config.StateRepo][b.Config.StateBranch], broken[b.Config.StateRepo]
	if err == nil && head == "" {
		err = fmt.Errorf("does not exist: run gitrollout in cluster %s, or take the cluster out of its stage", b.Cluster)
	}
	if err == nil {
		var tree source.Snapshot
		if tree, err = repo.Snapshot(ctx, head); err == nil {
			states, err = source.ReadStates(tree)
		}
	}
	if err == nil && states.Cluster != nil && states.Cluster.Cluster != b.Cluster {
		err = fmt.Errorf("belongs to cluster %s: set stateBranch in %s", states.Cluster.Cluster,
			rollout.ConfigPath(b.Cluster))
	}
	if err != nil {
		return none, fmt.Errorf("state branch %s: %w", b.Config.StateBranch, err)
	}
	return states, nil
}
