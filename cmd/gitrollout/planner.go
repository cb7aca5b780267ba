package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/program"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

type planSides struct {
	local              *adapters.Repository // the working copy
	base, head         rollout.Tree
	baseName, headName string
}

func (c *planCommand) open(ctx context.Context) (*planSides, error) {
	top, err := program.Says(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, usagef("plan needs the git command and a working copy of the repository: %v", err)
	}
	local, err := openRepository(ctx, git.Options{URL: top})
	if err != nil {
		return nil, err
	}
	s := &planSides{local: local, headName: "the working tree"}
	if c.head == "" {
		s.head, err = worktree.OpenHashed(top)
	} else {
		id, known := program.Commit(ctx, c.head)
		if !known {
			return nil, usagef("--head %q is not a commit or branch that this working copy knows", c.head)
		}
		s.headName = rollout.ShortID(id)
		s.head, err = local.Snapshot(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return s, c.openBase(ctx, s)
}

// openBase opens the commit at which head left the base branch. If the clone lacks the branch, it opens the branch's
// newest commit on the server.
func (c *planCommand) openBase(ctx context.Context, s *planSides) error {
	name := cmp.Or(c.base, c.source.branch)
	for _, candidate := range []string{"refs/remotes/origin/" + name, name} {
		tip, known := program.Commit(ctx, candidate)
		if !known {
			continue
		}
		id := program.Parted(ctx, tip, cmp.Or(c.head, "HEAD"))
		s.baseName = fmt.Sprintf("%s (%s)", rollout.ShortID(id), name)
		var err error
		s.base, err = s.local.Snapshot(ctx, id)
		return err
	}
	repo, err := c.server(ctx, "", name, "", "")
	if err != nil {
		return err
	}
	heads, tree, err := newest(ctx, repo, c.streams)
	if err != nil {
		return fmt.Errorf("this working copy does not know --base %s: %w", name, err)
	}
	s.base, s.baseName = tree, fmt.Sprintf("%s (%s)", rollout.ShortID(heads.Main), name)
	return nil
}

func (c *planCommand) server(
	ctx context.Context, cluster, branch, stateBranch, stateRepo string,
) (*adapters.Repository, error) {
	source := c.source
	source.cluster, source.branch = cluster, branch
	return source.open(ctx, stateBranch, stateRepo)
}

// record reads a state branch from the server. If the server fails, record reads the clone's last fetch. The string
// names the source.
func (c *planCommand) record(
	ctx context.Context, s *planSides, cluster string, config *rollout.Config,
) (source.Snapshot, string, error) {
	if c.noState || config == nil {
		return nil, "not read: the base counts as the stable version", nil
	}
	branch := config.StateBranch
	repo, err := c.server(ctx, cluster, c.source.branch, branch, config.StateRepo)
	var heads rollout.Heads
	if err == nil {
		heads, err = slowly(c.streams, "reading "+repo.Remote().String(),
			func() (rollout.Heads, error) { return repo.Fetch(ctx) })
	}
	switch {
	case errors.Is(err, context.Canceled):
		return nil, "", err
	case err == nil && heads.State == "":
		return nil, branch + " does not exist yet: the base counts as the stable version", nil
	case err == nil:
		tree, err := repo.Snapshot(ctx, heads.State)
		return tree, branch + " at " + rollout.ShortID(heads.State), err
	}
	if id, known := program.Commit(ctx, "refs/remotes/origin/"+branch); known {
		tree, err := s.local.Snapshot(ctx, id)
		return tree, branch + " at " + rollout.ShortID(id) + ", as this working copy has fetched it", err
	}
	return nil, fmt.Sprintf("cannot be read (%s): the base counts as the stable version",
		strings.ReplaceAll(err.Error(), "\n", "; ")), nil
}

// traffic measures a workload's requests of the last five minutes. It uses the Prometheus metrics that compare
// versions. If the files are not trusted, it omits the metrics' addresses, Secrets and headers.
func (s streams) traffic(ctx context.Context, pods func(context.Context, rollout.Workload) string, spec rollout.Spec,
	isTrusted bool) rollout.AnalysisRun {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	began := time.Now().Add(-5 * time.Minute)
	metrics := slices.DeleteFunc(spec.ReleaseMetrics(), func(m rollout.Metric) bool {
		return m.Compare == nil || m.Provider != "prometheus"
	})
	for i := range metrics {
		if m := &metrics[i]; !isTrusted {
			m.Secrets, m.Config = nil, map[string]any{"query": m.Config["query"]}
		}
	}
	hash := pods(ctx, spec.Workload)
	t := strategies.NewTrial(spec.Workload.Name, metrics, strategies.Measure{
		Workload: spec.Workload, Latest: hash, Stable: hash, Since: began, ReleaseSince: began, IsSteady: true,
	}, began)
	if due, _ := t.Due(time.Now()); hash != "" { // without a hash, the plan assumes the traffic
		for _, m := range due {
			t.Take(newWorker(ctx, s, time.Now, false).Take(ctx, rollout.App{}, m))
		}
	}
	for _, p := range t.Run.Metrics {
		if p.Evidence != nil {
			p.Evidence.Canary = 0 // stable served all these requests
		} else if last, _ := p.Last(); last.Phase == rollout.AnalysisErrored {
			_, _ = fmt.Fprintf(s.err, "metric %s: the plan assumes the traffic of %s, because its measurement failed: %s\n",
				p.Metric, t.Run.Name, last.Message)
		}
	}
	return t.Run
}
