package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// world is what a command sees: the users' branch, the state branch, and the
// cluster if it can be reached.
type world struct {
	source   sourceOptions
	repo     *repository
	renderer *render.Renderer

	heads  reconciler.Heads
	main   reconciler.Snapshot
	state  reconciler.Snapshot // nil while there is no state branch
	uid    string              // of the cluster that the state branch is for, "" if unknown
	config *rollout.Config
	freeze *rollout.Freeze        // nil if there is none
	apps   map[string]rollout.App // in Git, or left on the state branch
	listed map[string]bool        // in Git

	// detail asks for the commit that each app is at even where nothing depends
	// on it: with many apps that is many commits to fetch.
	detail bool

	client *cluster.Client // nil while the cluster is not looked at
	note   string          // why it is not, for people

	mu      sync.Mutex
	seen    map[string]status.App // apps at rest, until something happens
	touched map[string]int        // how often something has
}

// openWorld reads Git.
func openWorld(ctx context.Context, source sourceOptions, s streams) (*world, error) {
	source, err := source.resolve(ctx, s)
	if err != nil {
		return nil, err
	}
	options, err := source.options()
	if err != nil {
		return nil, err
	}
	options.Identity = source.who
	repo, err := openRepository(ctx, options)
	if err != nil {
		return nil, err
	}
	w := &world{source: source, repo: repo, renderer: newRenderer()}
	err = slowly(s, "reading "+repo.Remote().String(), func() error {
		_, err := w.refresh(ctx)
		return err
	})
	return w, err
}

// refresh reads what is new in Git.
func (w *world) refresh(ctx context.Context) (changed bool, err error) {
	heads, err := w.repo.Fetch(ctx)
	if err != nil {
		return false, err
	}
	if w.main != nil && heads.Main == w.heads.Main && heads.State == w.heads.State && maps.Equal(heads.Proposals, w.heads.Proposals) {
		return false, nil
	}
	if w.main, err = w.repo.Snapshot(ctx, heads.Main); err != nil {
		return false, err
	}
	w.state = nil
	if heads.State != "" {
		if w.state, err = w.repo.Snapshot(ctx, heads.State); err != nil {
			return false, err
		}
	}
	w.heads = heads
	w.mu.Lock()
	w.seen, w.touched = map[string]status.App{}, map[string]int{}
	w.mu.Unlock()
	return true, w.readLists()
}

// readLists finds the apps of both branches.
func (w *world) readLists() error {
	config, err := readConfig(w.main, w.source.cluster)
	if err != nil {
		return err
	}
	apps, err := render.FindApps(w.main, config)
	if err != nil {
		return err
	}
	if w.freeze, err = readFreeze(w.main, w.source.cluster); isInvalid(err) {
		w.freeze = rollout.Unreadable(err)
	} else if err != nil {
		return err
	}
	w.config, w.apps, w.listed = config, map[string]rollout.App{}, map[string]bool{}
	for _, a := range apps {
		w.apps[a.Name], w.listed[a.Name] = a, true
	}
	if w.state == nil {
		return nil
	}
	if data, found, err := source.ReadFile(w.state, rollout.ClusterPath); err != nil {
		return err
	} else if found {
		if c, err := rollout.ParseCluster(data); err == nil {
			w.uid = c.UID
		}
	}
	groups, err := source.ReadDir(w.state, "apps")
	if err != nil {
		return err
	}
	for _, group := range groups {
		files, err := source.ReadDir(w.state, "apps/"+group.Name)
		if err != nil {
			return err
		}
		for _, f := range files {
			if name, ok := strings.CutSuffix(f.Name, ".yaml"); ok && !w.listed[name] {
				w.apps[name] = rollout.App{Name: name}
			}
		}
	}
	return nil
}

// names lists the apps.
func (w *world) names() []string { return slices.Sorted(maps.Keys(w.apps)) }

// selected is the named app, of which everything is then to be seen, or all of
// them.
func (w *world) selected(args []string) ([]rollout.App, error) {
	if len(args) == 0 {
		all := make([]rollout.App, 0, len(w.apps))
		for _, name := range w.names() {
			all = append(all, w.apps[name])
		}
		return all, nil
	}
	w.detail = true
	app, err := w.app(args[0])
	return []rollout.App{app}, err
}

// app finds an app by name; if there is none it suggests those that are close.
func (w *world) app(name string) (rollout.App, error) {
	if app, ok := w.apps[name]; ok {
		return app, nil
	}
	text := fmt.Sprintf("cluster %s has no app %q", w.source.cluster, name)
	switch near := terminal.Closest(name, w.names()); {
	case len(w.apps) == 0:
		text += fmt.Sprintf("; the paths in %s match no kustomization", rollout.ConfigPath(w.source.cluster))
	case len(near) > 0:
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	default:
		text += "; gitrollout list shows all"
	}
	return rollout.App{}, &failure{code: exitFailed, err: errors.New(text)}
}

// stateOf reads an app's state, the zero value if it has none.
func (w *world) stateOf(app string) (rollout.State, error) {
	if w.state == nil {
		return rollout.State{}, nil
	}
	path := rollout.StatePath(app)
	data, found, err := source.ReadFile(w.state, path)
	if err != nil || !found {
		return rollout.State{}, err
	}
	s, err := rollout.ParseState(path, data)
	if err != nil {
		return rollout.State{}, err
	}
	return *s, nil
}

// input gathers what a decision about an app would depend on. Without a cluster
// it observes nothing.
func (w *world) input(ctx context.Context, app rollout.App, now time.Time) (strategies.Input, error) {
	state, err := w.stateOf(app.Name)
	if err != nil {
		return strategies.Input{}, err
	}
	if !w.listed[app.Name] {
		app.Path = state.Path
	}
	in := strategies.Input{Now: now, App: app, State: state, Answers: strategies.Answers{Settled: new(true)}, Calendar: w.config.CalendarOf(app.Name, w.freeze)}
	in.Head = w.head(app)
	needed := w.detail || state.Release != nil || in.Head.Render == nil
	if state.Source == w.main.Commit().ID {
		in.Source = in.Head.Render
	} else if state.Source != "" && needed && w.listed[app.Name] {
		in.Source, err = w.renderAt(ctx, app, state.Source)
		if err != nil && !errors.Is(err, git.ErrNotFound) && !isInvalid(err) {
			return in, err
		}
	}
	path := rollout.PromotionPath(w.source.cluster, app.Name)
	data, found, err := source.ReadFile(w.main, path)
	if err != nil {
		return in, err
	}
	if found {
		in.Promotion, err = rollout.ParsePromotion(path, data)
		if err != nil && in.Head.Err == nil {
			in.Head.Err, in.Head.Render = err, nil
		}
		if in.Promotion != nil {
			in.Promotion.Author = w.main.Commit().Author // as the reconciler reads it
		}
	}
	if w.client != nil {
		routes := source.Routes(in)
		if err := w.client.WatchRoutes(ctx, routes); err != nil {
			return in, err
		}
		in.Observed = w.client.Observe(app.Name, source.Workloads(in), routes)
	}
	return in, nil
}

func isInvalid(err error) bool {
	var invalid *rollout.InvalidError
	return errors.As(err, &invalid)
}

// head is what the users' branch asks for.
func (w *world) head(app rollout.App) strategies.Head {
	commit := w.main.Commit()
	if !w.listed[app.Name] {
		return strategies.Head{Commit: commit, Err: &rollout.InvalidError{
			File: rollout.ConfigPath(w.source.cluster), Field: "apps",
			Msg: "no longer lists " + app.Name + "; its objects are left as they are",
		}}
	}
	built, err := w.renderer.Render(w.main, app, commit)
	return strategies.Head{Commit: commit, Render: built, Err: err}
}

func (w *world) renderAt(ctx context.Context, app rollout.App, commit string) (*rollout.Render, error) {
	tree, err := w.repo.Snapshot(ctx, commit)
	if err != nil {
		return nil, err
	}
	return w.renderer.Render(tree, app, tree.Commit())
}
