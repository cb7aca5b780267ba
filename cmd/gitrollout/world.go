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
	source sourceOptions
	repo   *repository
	reader *source.Reader
	build  *render.Renderer // the reader's

	heads  reconciler.Heads
	branch *source.Branch
	state  reconciler.Snapshot // nil while there is no state branch
	states *source.States
	uid    string                 // of the cluster that the state branch is for, "" if unknown
	apps   map[string]rollout.App // in Git, or left on the state branch

	// detail asks for the commit that each app is at even where nothing depends
	// on it: with many apps that is many commits to fetch.
	detail bool

	signers  git.Verifier // of the commit that another one may be put on top of; nil for anybody
	unsigned string       // what to do where they are not

	client *cluster.Client // nil while the cluster is not looked at
	note   string          // why it is not, for people

	mu      sync.Mutex
	seen    map[string]status.App // apps at rest, until something happens
	touched map[string]int        // how often something has
}

// openWorld reads Git.
func openWorld(ctx context.Context, from sourceOptions, s streams) (*world, error) {
	from, err := from.resolve(ctx, s)
	if err != nil {
		return nil, err
	}
	options, err := from.options()
	if err != nil {
		return nil, err
	}
	options.Identity = from.who
	repo, err := openRepository(ctx, options)
	if err != nil {
		return nil, err
	}
	return newWorld(ctx, from, repo, s)
}

// newWorld reads Git through a mirror that there is.
func newWorld(ctx context.Context, from sourceOptions, repo *repository, s streams) (*world, error) {
	w := &world{source: from, repo: repo, build: newRenderer(s, nil)}
	w.reader = source.NewReader(from.cluster, w.build)
	w.reader.Own = protected()
	err := slowly(s, "reading "+repo.Remote().String(), func() error {
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
	if w.branch != nil && heads.Main == w.heads.Main && heads.State == w.heads.State &&
		maps.Equal(heads.Proposals, w.heads.Proposals) {
		return false, nil
	}
	w.state = nil
	if heads.State != "" {
		if w.state, err = w.repo.Snapshot(ctx, heads.State); err != nil {
			return false, err
		}
	}
	if w.states, err = source.ReadStates(w.state); err != nil {
		return false, err
	}
	if w.uid = ""; w.states.Cluster != nil {
		w.uid = w.states.Cluster.UID
	}
	w.heads = heads
	w.mu.Lock()
	w.seen, w.touched = map[string]status.App{}, map[string]int{}
	w.mu.Unlock()
	return true, w.open(ctx, heads.Main)
}

// open finds the apps of both branches, as of a commit of the users' branch.
func (w *world) open(ctx context.Context, commit string) error {
	tree, err := w.repo.Snapshot(ctx, commit)
	if err != nil {
		return err
	}
	branch, err := w.reader.Open(tree, nil)
	if err == nil && branch.Behind != nil {
		last, lastErr := w.configBefore(ctx, commit)
		if lastErr != nil || last == nil {
			return errors.Join(branch.Behind, lastErr)
		}
		branch, err = w.reader.Open(tree, last)
	}
	if err != nil {
		return err
	}
	w.branch, w.apps = branch, map[string]rollout.App{}
	for name := range w.states.Files() {
		w.apps[name] = rollout.App{Name: name}
	}
	for _, a := range branch.Apps {
		w.apps[a.Name] = a
	}
	return nil
}

// configBefore is the configuration as of the last commit before one where it could be read, nil if there is none among
// the last thousand. The loop remembers; a command has to look.
func (w *world) configBefore(ctx context.Context, commit string) (last *rollout.Config, err error) {
	_, err = w.repo.Log(ctx, commit, 1000, func(s *git.Snapshot) (more bool, err error) {
		if last, err = w.reader.ConfigAt(s); rollout.IsInvalid(err) {
			return true, nil
		}
		return false, err
	})
	return last, err
}

// warning says that the configuration in force is not the newest one, and what to mend; "" if it is.
func (w *world) warning() string {
	if w.branch.Behind == nil {
		return ""
	}
	return w.branch.Behind.Error() + "; until then no release advances, and the apps are those from before"
}

// warned is a text for people about one app, with the warning below.
func (w *world) warned(text string) string {
	return strings.TrimSuffix(text+"\nwarning: "+w.warning(), "\nwarning: ")
}

// config is the cluster's configuration, or the last one that could be read.
func (w *world) config() *rollout.Config { return w.branch.Config }

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
		if s, err := w.states.Of(name); err == nil {
			app = s.Named(app)
		}
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

// input gathers what a decision about an app would depend on, as the loop does. Without a cluster
// it observes nothing.
func (w *world) input(ctx context.Context, app rollout.App, now time.Time) (in strategies.Input, err error) {
	a := source.App{App: app, Calendar: w.branch.Calendar(app.Name)}
	if a.State, err = w.states.Of(app.Name); err != nil {
		return in, err
	}
	if _, listed := w.branch.Find(app.Name); !listed {
		a.Path = a.State.Path
	}
	promotion := w.branch.Promotion(a.State.Named(app))
	if promotion.Err != nil && !rollout.IsInvalid(promotion.Err) {
		return in, promotion.Err
	}
	if promotion.File.SkipsSteps() && promotion.File.Refused == "" {
		promotion.File.Refused = a.State.Ignored // who runs knows the policy
	}
	head := w.head(a.App)
	a.Promotion, a.Head = promotion.File, source.HeadOf(head.Commit, head.Render, head.Err, promotion)
	s := a.State // of a release that is held or rejected, Git may name workloads that nobody is to have
	needed := w.detail || s.Release != nil || s.Held != nil || s.Phase == rollout.Degraded || a.Head.Render == nil
	in, err = w.gatherer(ctx, a.Head.Render, needed).Gather(ctx, a, now)
	in.Answers = strategies.Answers{Healed: new(true)}
	return in, err
}

// errNotNeeded is why a commit is not read on which nothing depends.
var errNotNeeded = errors.New("is not needed")

// gatherer gathers for one app. Head is what it is at the newest commit, and needed whether another one is to be
// read. What is wrong with Git or the cluster is an error; a commit that is gone or cannot be rendered is not.
func (w *world) gatherer(ctx context.Context, head *rollout.Render, needed bool) *worldGatherer {
	g := &worldGatherer{}
	g.RenderAt = func(ctx context.Context, app rollout.App, commit string) (*rollout.Render, error) {
		switch {
		case head != nil && head.Commit.ID == commit:
			return head, nil
		case !needed:
			return nil, errNotNeeded
		}
		built, err := w.renderAt(ctx, app, commit)
		if err != nil && !errors.Is(err, git.ErrNotFound) && !rollout.IsInvalid(err) {
			g.err = err
		}
		return built, err
	}
	if w.client != nil {
		g.Know = w.client.Know
		g.Observe = func(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
			if err := w.client.WatchRoutes(ctx, routes); err != nil {
				g.err = err
			}
			return w.client.Observe(app, workloads, routes)
		}
	}
	return g
}

// worldGatherer is a Gatherer that keeps the trouble which a loop would wait out.
type worldGatherer struct {
	source.Gatherer
	err error
}

// Gather is source.Gatherer's.
func (g *worldGatherer) Gather(ctx context.Context, a source.App, now time.Time) (strategies.Input, error) {
	in, err := g.Gatherer.Gather(ctx, a, now)
	return in, errors.Join(err, g.err)
}

// head is what the users' branch asks for.
func (w *world) head(app rollout.App) strategies.Head {
	commit := w.branch.Tree.Commit()
	if _, listed := w.branch.Find(app.Name); !listed {
		return strategies.Head{Commit: commit, Err: w.branch.Unlisted(app)}
	}
	built, err := w.reader.RenderHead(w.branch.Tree, app)
	return strategies.Head{Commit: commit, Render: built, Err: err}
}

// renderAt is an app as of a commit, in the folder that it had there.
func (w *world) renderAt(ctx context.Context, app rollout.App, commit string) (*rollout.Render, error) {
	tree, err := w.repo.Snapshot(ctx, commit)
	if err != nil {
		return nil, err
	}
	return w.reader.Render(tree, app)
}
