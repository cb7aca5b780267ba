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
	status.Fleet, error,
) {
	r := fleetReader{repo: repo, app: app}
	err := r.read(ctx, tree, now)
	if err == nil && app != "" && !slices.Contains(r.names, app) {
		err = NoAppError(fmt.Sprintf("no cluster has an app %q; ", app) +
			cmp.Or(rollout.DidYouMean(app, slices.Compact(slices.Sorted(slices.Values(r.names)))), "gitrollout fleet shows all"))
	}
	return r.fleet, err
}

// fleetReader reads fleet.yaml and state branches. Later reads parse only changed state files.
type fleetReader struct {
	repo    *git.Repo
	believe func(cluster string, head source.Snapshot) error // checks signatures; or nil
	app     string                                           // or "" for all

	fleet    status.Fleet
	names    []string // of all apps
	key      string   // all that fleet depends on
	unsound  bool     // a record is unreadable, perhaps only now
	commit   string   // of stages and branches
	stages   *rollout.Fleet
	branches []*source.Branch             // by cluster
	heads    map[string]map[string]string // by repository and branch
	parsed   map[string]*rollout.State    // by blob id
}

func (r *fleetReader) open(tree source.Snapshot) error {
	stages, err := source.ReadFleet(tree)
	clusters, failed := source.Clusters(tree)
	if err = cmp.Or(err, failed); err == nil && stages == nil {
		err = rollout.Invalidf(rollout.FleetPath, "", "does not exist, so there are no stages").
			WithFix("commit stages there: see docs/stages.md; gitrollout list --cluster NAME shows the apps of one cluster")
	}
	branches := make([]*source.Branch, len(clusters))
	for i := 0; i < len(clusters) && err == nil; i++ {
		branches[i], err = source.NewReader(clusters[i], nil).Open(tree, nil)
	}
	if err == nil {
		r.commit, r.stages, r.branches = tree.Commit().ID, stages, branches
	}
	return err
}

func (r *fleetReader) read(ctx context.Context, tree source.Snapshot, now time.Time) error {
	if tree.Commit().ID != r.commit {
		if err := r.open(tree); err != nil {
			return err
		}
	}
	heads, broken := map[string]map[string]string{}, map[string]error{} // by repository
	for _, b := range r.branches {
		if c := b.Config; c != nil {
			if heads[c.StateRepo] == nil {
				heads[c.StateRepo] = map[string]string{}
			}
			heads[c.StateRepo][c.StateBranch] = r.heads[c.StateRepo][c.StateBranch]
		}
	}
	for url := range heads {
		heads[url], broken[url] = git.Branches(ctx, r.repo, url, heads[url])
	}
	key := fmt.Sprint(r.commit, heads, broken, r.stages.Freeze.At(now))
	if r.heads = heads; key == r.key && !r.unsound {
		return ctx.Err()
	}
	records, parsed := map[string]status.ClusterRecords{}, map[string]*rollout.State{}
	r.names, r.unsound = nil, false
	for _, b := range r.branches {
		states, err := r.statesOf(ctx, b, broken)
		c := r.recordsOf(b, states, err, parsed)
		records[b.Cluster], r.unsound = c, r.unsound || c.Problem != ""
	}
	if ctx.Err() == nil {
		r.fleet, r.key, r.parsed = status.FleetOf(r.stages, records, now), key, parsed
	}
	return ctx.Err()
}

// recordsOf adds the cluster's records to parsed. With an error, none is readable.
func (r *fleetReader) recordsOf(
	b *source.Branch, states *source.States, err error, parsed map[string]*rollout.State,
) status.ClusterRecords {
	c, ids, problem := status.ClusterRecords{States: map[string]*rollout.State{}}, maps.Clone(states.Files()), err
	for _, a := range b.Apps {
		ids[a.Name] += ""
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if r.names = append(r.names, name); r.app != "" && r.app != name {
			continue
		}
		s := r.parsed[ids[name]]
		switch {
		case err != nil:
			s = nil
		case s == nil:
			read, failed := states.Of(name)
			read.Inventory, read.Analyses, read.Hooks = nil, nil, nil // large, and not shown
			if s = &read; failed != nil {
				s, problem = nil, cmp.Or(problem, failed)
			}
		}
		c.States[name], parsed[ids[name]] = s, s
	}
	if problem != nil {
		c.Problem = rollout.OneLine(problem.Error())
	}
	return c
}

// statesOf reads the records in a cluster's state branch. With an error, there are none.
func (r *fleetReader) statesOf(ctx context.Context, b *source.Branch, broken map[string]error) (*source.States, error) {
	none, _ := source.ReadStates(nil)
	if b.Config == nil {
		return none, b.Behind
	}
	states, head, err := none, r.heads[b.Config.StateRepo][b.Config.StateBranch], broken[b.Config.StateRepo]
	if err == nil && head == "" {
		err = fmt.Errorf("does not exist: run gitrollout in cluster %s, or take the cluster out of its stage", b.Cluster)
	}
	if err == nil {
		var tree source.Snapshot
		if tree, err = r.repo.Snapshot(ctx, head); err == nil && r.believe != nil {
			if err = r.believe(b.Cluster, tree); err != nil {
				err = fmt.Errorf("commit %s is not signed by cluster %s: %w", rollout.ShortID(head), b.Cluster, err)
			}
		}
		if err == nil {
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
