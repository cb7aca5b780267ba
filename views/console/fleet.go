package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

const lookEvery = 5 * time.Second

type fleetView struct {
	sync.Mutex
	status.Fleet
	tag      string // ETag that Fleet returns
	looked   time.Time
	read     string // heads in Fleet; "" if a record may become readable without a new head
	commit   string // commit of stages and branches
	stages   *rollout.Fleet
	branches []*source.Branch             // by cluster
	heads    map[string]map[string]string // by repository and branch
	states   map[string]*rollout.State    // by blob id
	names    []string
}

// Fleet reads fleet.yaml and all state branches. Later calls parse only changed records.
func (r *Records) Fleet(ctx context.Context) (status.Fleet, string, error) {
	v, repo, now := &r.fleet, r.Repo.Beside(), r.Now()
	v.Lock()
	defer v.Unlock()
	if now.Sub(v.looked) < lookEvery {
		return v.Fleet, v.tag, nil
	}
	var tree *git.Snapshot
	heads, err := repo.Fetch(ctx)
	if err == nil {
		tree, err = repo.Snapshot(ctx, heads.Main)
	}
	if err == nil && v.commit != heads.Main {
		err = v.open(tree)
	}
	if err == nil {
		err = r.readFleet(ctx, repo, now)
	}
	if err == nil && r.Only != "" && !slices.Contains(v.names, r.Only) {
		near := rollout.DidYouMean(r.Only, slices.Compact(slices.Sorted(slices.Values(v.names))))
		err = NoAppError(fmt.Sprintf("no cluster has an app %q; ", r.Only) + cmp.Or(near, "gitrollout fleet shows all"))
	}
	if err != nil {
		return status.Fleet{}, "", err
	}
	v.looked = now
	return v.Fleet, v.tag, nil
}

func (v *fleetView) open(tree source.Snapshot) error {
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
		v.commit, v.stages, v.branches = tree.Commit().ID, stages, branches
	}
	return err
}

func (r *Records) readFleet(ctx context.Context, repo *git.Repo, now time.Time) error {
	v, heads, broken := &r.fleet, map[string]map[string]string{}, map[string]error{}
	for _, b := range v.branches {
		if c := b.Config; c != nil {
			if heads[c.StateRepo] == nil {
				heads[c.StateRepo] = map[string]string{}
			}
			heads[c.StateRepo][c.StateBranch] = v.heads[c.StateRepo][c.StateBranch]
		}
	}
	for url := range heads {
		heads[url], broken[url] = git.Branches(ctx, repo, url, heads[url])
	}
	read := fmt.Sprint(v.commit, heads, broken, v.stages.Freeze.At(now))
	if v.heads = heads; ctx.Err() != nil || read == v.read {
		return ctx.Err()
	}
	states, records := map[string]*rollout.State{}, map[string]status.ClusterRecords{}
	v.names, v.read = nil, read
	for _, b := range v.branches {
		c := r.recordsOf(ctx, repo, b, broken, states)
		if records[b.Cluster] = c; c.Problem != "" {
			v.read = ""
		}
	}
	v.states, v.Fleet = states, status.FleetOf(v.stages, records, now)
	v.tag = fmt.Sprintf("\"%x\"", sha256.Sum256([]byte(read+fmt.Sprint(v.Notes))))
	return ctx.Err()
}

func (r *Records) recordsOf(
	ctx context.Context, repo *git.Repo, b *source.Branch, broken map[string]error, states map[string]*rollout.State,
) status.ClusterRecords {
	c, v := status.ClusterRecords{States: map[string]*rollout.State{}}, &r.fleet
	branch, err := r.statesOf(ctx, repo, b, broken)
	ids, problem := maps.Clone(branch.Files), err
	for _, a := range b.Apps {
		ids[a.Name] += ""
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if v.names = append(v.names, name); r.Only != "" && r.Only != name {
			continue
		}
		s := v.states[ids[name]]
		switch {
		case err != nil:
			s = nil
		case s == nil:
			read, failed := branch.Of(name)
			read.Inventory, read.Analyses, read.Hooks = nil, nil, nil // not shown, and large
			if s = &read; failed != nil {
				s, problem = nil, cmp.Or(problem, failed)
			}
		}
		c.States[name], states[ids[name]] = s, s
	}
	if problem != nil {
		c.Problem = rollout.OneLine(problem.Error())
	}
	return c
}

func (r *Records) statesOf(
	ctx context.Context, repo *git.Repo, b *source.Branch, broken map[string]error,
) (*source.States, error) {
	none, _ := source.ReadStates(nil)
	if b.Config == nil {
		return none, b.Behind
	}
	states, head, err := none, r.fleet.heads[b.Config.StateRepo][b.Config.StateBranch], broken[b.Config.StateRepo]
	if err == nil && head == "" {
		err = fmt.Errorf("does not exist: run gitrollout in cluster %s, or take the cluster out of its stage", b.Cluster)
	}
	var tree *git.Snapshot
	if err == nil {
		tree, err = repo.Snapshot(ctx, head)
	}
	switch own := b.Cluster == r.Cluster; {
	case err != nil:
	case own && r.Believe != nil:
		err = r.Believe(tree)
	case !own && r.BelievePeer != nil:
		err = r.BelievePeer(b.Cluster, tree)
	}
	if err == nil {
		states, err = source.ReadStates(tree)
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
