package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
	"gitrollout.dev/gitrollout/strategies/fleet"
)

// stages caches answers for source.Stages: apps' content in other clusters, and the newest commits.
type stages struct {
	*Options
	fetcher *fetcher
	blame   *blame
	log     *errorLog
	peersOf func(app string) source.Peers // called in each pass

	deciding sync.Mutex
	gate     source.Stages

	mu      sync.Mutex
	known   map[inputsAt]fleet.Inputs
	readers map[string]*source.Reader // by cluster
	commits []Snapshot                // the newest commits of the branch, oldest first
	far     map[string]bool           // commits that are older than commits[0]
}

type inputsAt struct{ cluster, app, commit string }

// mostKnown limits the size of stages.known. A waiting app needs some 30 answers in one pass.
const mostKnown = 1_000_000

func newStages(
	o *Options, reader *source.Reader, renders *renderCache, fetcher *fetcher, peersOf func(app string) source.Peers,
) *stages {
	x := &stages{
		Options: o, fetcher: fetcher, blame: renders.blame, log: renders.log, peersOf: peersOf,
		known: map[inputsAt]fleet.Inputs{}, readers: map[string]*source.Reader{}, far: map[string]bool{},
	}
	x.gate = source.Stages{Reader: reader, Inputs: x.inputs, Spread: x.Spread,
		Tree: func(commit string) (Snapshot, error) { return fetcher.tree(commit) },
		Render: func(app rollout.App, commit string) (*rollout.Render, error) {
			return renders.render(context.Background(), app, commit)
		}}
	return x
}

func (x *stages) head(v *gitView, a *appView, s rollout.State, head strategies.Head, now time.Time) (
	strategies.Head, *cohort.Entry, error,
) {
	if v.branch.Fleet == nil && v.branch.Unstaged == nil || v.branch.Config == nil {
		return head, nil, nil
	}
	x.deciding.Lock()
	defer x.deciding.Unlock()
	x.gate.Peers = x.peersOf(a.Name)
	x.gate.Line = func(_ *source.Branch, app, from string) ([]Snapshot, error) { return x.line(v, app, from) }
	head, e, err := x.gate.Of(v.branch, a.App, s, head, a.promotion.File, now)
	if err != nil {
		err = fmt.Errorf("the stage before: %w", err)
	}
	return head, e, err
}

func (x *stages) inputs(cluster, app, commit string) (fleet.Inputs, error) {
	x.mu.Lock()
	in, known := x.known[inputsAt{cluster, app, commit}]
	x.mu.Unlock()
	if known {
		return in, nil
	}
	_, err := x.fetcher.tree(commit, job{what: what{app: rollout.App{Name: app}, commit: commit, cluster: cluster}})
	if err != nil && !errors.Is(err, source.ErrNotReady) {
		return fleet.Inputs{Files: "unusable at " + commit}, nil
	}
	return in, fmt.Errorf("commit %s in cluster %s %w", rollout.ShortID(commit), cluster, source.ErrNotReady)
}

// make computes the inputs that a job requests. After an error, the app asks again later.
func (x *stages) make(j job) {
	x.mu.Lock()
	reader := cmp.Or(x.readers[j.cluster], source.NewReader(j.cluster, x.Renderer))
	x.readers[j.cluster] = reader
	x.mu.Unlock()
	defer func() {
		if problem := recover(); problem != nil {
			x.log.ofPanic(j.app.Name, problem, debug.Stack())
		}
	}()
	in, err := reader.InputsAt(j.tree, j.app.Name)
	if x.log.about("app "+j.app.Name+" in cluster "+j.cluster, err); err != nil {
		return
	}
	x.mu.Lock()
	if len(x.known) >= mostKnown {
		clear(x.known)
	}
	x.known[inputsAt{j.cluster, j.app.Name, j.commit}] = in
	x.mu.Unlock()
	x.fetcher.touch(j.app.Name)
}

func (x *stages) line(v *gitView, app, from string) ([]Snapshot, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.commits); n > 0 && len(v.line) > 1 && x.commits[n-1].Commit().ID == v.line[0].Commit().ID {
		x.commits = append(x.commits[:n:n], v.line[1:]...)
	}
	if n := len(x.commits); n > 0 && x.commits[n-1].Commit().ID == v.main() {
		if i := slices.IndexFunc(x.commits, func(s Snapshot) bool { return s.Commit().ID == from }); i >= 0 {
			return x.commits[i:], nil
		}
	}
	if x.far[from] {
		return nil, nil
	}
	x.blame.want(app, from)
	return nil, fmt.Errorf("the history since %s %w", rollout.ShortID(from), source.ErrNotReady)
}

// setLine stores the commits since "from". After an error, "from" counts as too old.
func (x *stages) setLine(v *gitView, from string, line []Snapshot, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch n, last := len(x.commits), len(line)-1; {
	case v.branch.Fleet == nil:
	case err != nil:
		x.far[from] = true
	case last >= n || x.commits[n-1].Commit().ID != line[last].Commit().ID:
		x.commits = line
		clear(x.far)
	}
}
