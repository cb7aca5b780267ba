package console

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
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
)

// Options say of which cluster a World is, and what it is read and shown with.
type Options struct {
	Cluster  string           // its folder below .gitrollout/
	Branch   string           // that people push to
	Repo     *git.Repo        // a mirror of the repository
	Renderer *render.Renderer // of the apps
	Own      string           // gitrollout's own namespace, which apps may not touch; "" if it has none
	Now      func() time.Time
	Command  func(line string) string // makes a command line work for whoever copies it

	// Detail asks for the commit that each app is at even where nothing depends on it: with many apps that is many
	// commits to fetch.
	Detail bool

	Signers  git.Verifier // of the commit that another one may be put on top of; nil for anybody
	Unsigned string       // what to do where they are not
}

// World is what a person sees: the users' branch, the state branch, and the cluster if it can be reached.
type World struct {
	Options
	Heads  rollout.Heads
	Tip    *source.Branch  // the newest commit of the users' branch
	State  source.Snapshot // nil while there is no state branch
	States *source.States
	UID    string                 // of the cluster that the state branch is for, "" if unknown
	Apps   map[string]rollout.App // in Git, or left on the state branch

	Client *cluster.Client // nil while the cluster is not looked at
	Within []string        // the namespaces that are looked at; nil for all
	Note   string          // why the cluster is not looked at, or not all of it, for people

	reader  *source.Reader
	mu      sync.Mutex
	seen    map[string]status.App // apps at rest, until something happens
	touched map[string]int        // how often something has
}

// New returns a World into which nothing has been read yet.
func New(o Options) *World {
	w := &World{Options: o, reader: source.NewReader(o.Cluster, o.Renderer)}
	w.reader.Own = o.Own
	return w
}

// Refresh reads what is new in Git, and reports whether anything is.
func (w *World) Refresh(ctx context.Context) (changed bool, err error) {
	heads, err := w.Repo.Fetch(ctx)
	if err != nil {
		return false, err
	}
	if w.Tip != nil && heads.Main == w.Heads.Main && heads.State == w.Heads.State &&
		maps.Equal(heads.Proposals, w.Heads.Proposals) {
		return false, nil
	}
	w.State = nil
	if heads.State != "" {
		state, err := w.Repo.Snapshot(ctx, heads.State)
		if err != nil {
			return false, err
		}
		w.State = state
	}
	if w.States, err = source.ReadStates(w.State); err != nil {
		return false, err
	}
	if w.UID = ""; w.States.Cluster != nil {
		w.UID = w.States.Cluster.UID
	}
	w.Heads = heads
	w.mu.Lock()
	w.seen, w.touched = map[string]status.App{}, map[string]int{}
	w.mu.Unlock()
	return true, w.At(ctx, heads.Main)
}

// At finds the apps of both branches, as of a commit of the users' branch.
func (w *World) At(ctx context.Context, commit string) error {
	tree, err := w.Repo.Snapshot(ctx, commit)
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
	w.Tip, w.Apps = branch, map[string]rollout.App{}
	for name := range w.States.Files() {
		w.Apps[name] = rollout.App{Name: name}
	}
	for _, a := range branch.Apps {
		w.Apps[a.Name] = a
	}
	return nil
}

// configBefore is the configuration as of the last commit before one where it could be read, nil if there is none among
// the last thousand. The loop remembers; a command has to look.
func (w *World) configBefore(ctx context.Context, commit string) (last *rollout.Config, err error) {
	_, err = w.Repo.Log(ctx, commit, 1000, func(s *git.Snapshot) (more bool, err error) {
		if last, err = w.reader.ConfigAt(s); rollout.IsInvalid(err) {
			return true, nil
		}
		return false, err
	})
	return last, err
}

// Warning says that the configuration in force is not the newest one, and what to mend; "" if it is.
func (w *World) Warning() string {
	if w.Tip.Behind == nil {
		return ""
	}
	return w.Tip.Behind.Error() + "; until then no release advances, and the apps are those from before"
}

// warned is a text for people about one app, with the warning below.
func (w *World) warned(text string) string {
	return strings.TrimSuffix(text+"\nwarning: "+w.Warning(), "\nwarning: ")
}

// Config is the cluster's configuration, or the last one that could be read.
func (w *World) Config() *rollout.Config { return w.Tip.Config }

// Names lists the apps.
func (w *World) Names() []string { return slices.Sorted(maps.Keys(w.Apps)) }

// Selected is the named app, of which everything is then to be seen, or all of them.
func (w *World) Selected(args []string) ([]rollout.App, error) {
	if len(args) == 0 {
		return rollout.Mapped(w.Names(), func(name string) rollout.App { return w.Apps[name] }), nil
	}
	w.Detail = true
	app, err := w.App(args[0])
	return []rollout.App{app}, err
}

// Namespaces returns those that the entries and the records of apps name, in order.
func Namespaces(apps map[string]rollout.App, states *source.States) (all []string) {
	for name, app := range apps {
		state, _ := states.Of(name) // one that cannot be read is shown later
		all = append(append(all, app.Namespace), strings.Fields(app.Namespaces)...)
		all = append(all, rollout.Mapped(state.Inventory, func(ref rollout.Ref) string { return ref.Namespace })...)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool {
		return name == "" || strings.Contains(name, "*")
	})
}

// NoAppError says that there is no such app, and which may have been meant.
type NoAppError string

// Error says so.
func (e NoAppError) Error() string { return string(e) }

// App finds an app by name; if there is none it suggests those that are close.
func (w *World) App(name string) (rollout.App, error) {
	if app, ok := w.Apps[name]; ok {
		if s, err := w.States.Of(name); err == nil {
			app = s.Named(app)
		}
		return app, nil
	}
	text := fmt.Sprintf("cluster %s has no app %q", w.Cluster, name)
	switch near := rollout.DidYouMean(name, w.Names()); {
	case len(w.Apps) == 0:
		text += fmt.Sprintf("; the paths in %s match no kustomization", rollout.ConfigPath(w.Cluster))
	case near != "":
		text += "; " + near
	default:
		text += "; gitrollout list shows all"
	}
	return rollout.App{}, NoAppError(text)
}

// Input gathers what a decision about an app would depend on, as the loop does. Without a cluster it observes nothing.
func (w *World) Input(ctx context.Context, app rollout.App, now time.Time) (in strategies.Input, err error) {
	a := source.App{App: app, Calendar: w.Tip.Calendar(app.Name)}
	if a.State, err = w.States.Of(app.Name); err != nil {
		return in, err
	}
	if _, listed := w.Tip.Find(app.Name); !listed {
		a.Path = a.State.Path
	}
	promotion := w.Tip.Promotion(a.State.Named(app))
	if promotion.Err != nil && !rollout.IsInvalid(promotion.Err) {
		return in, promotion.Err
	}
	if promotion.File != nil && promotion.File.Forbidden == "" {
		promotion.File.Forbidden = a.State.Ignored // the reconciler knows the policy
	}
	head := w.Head(a.App)
	a.Promotion, a.Head = promotion.File, source.HeadOf(head.Commit, head.Render, head.Err, promotion)
	if h := a.State.Held; w.Detail && h != nil && head.Render != nil && a.Head.Err == nil {
		at, err := w.RenderAt(ctx, a.App, h.Commit) // the record names the commit that changed the app
		if err == nil && at.Digest == head.Render.Digest {
			a.Head.Commit, a.Head.Render = at.Commit, at
		}
	}
	s := a.State // of a release that is held or rejected, Git may name workloads that nobody is to have
	needed := w.Detail || s.Release != nil || s.Held != nil || s.Phase == rollout.Degraded || a.Head.Render == nil
	in, err = w.gatherer(ctx, a.Head.Render, needed).Gather(ctx, a, now)
	in.Answers = strategies.Answers{Healed: new(true)}
	return in, err
}

// errNotNeeded is why a commit is not read on which nothing depends.
var errNotNeeded = errors.New("is not needed")

// gatherer gathers for one app. Head is what it is at the newest commit, and needed whether another one is to be
// read. What is wrong with Git or the cluster is an error; a commit that is gone or cannot be rendered is not.
func (w *World) gatherer(ctx context.Context, head *rollout.Render, needed bool) *worldGatherer {
	g := &worldGatherer{}
	g.RenderAt = func(ctx context.Context, app rollout.App, commit string) (*rollout.Render, error) {
		switch {
		case head != nil && head.Commit.ID == commit:
			return head, nil
		case !needed:
			return nil, errNotNeeded
		}
		built, err := w.RenderAt(ctx, app, commit)
		if err != nil && !errors.Is(err, git.ErrNotFound) && !rollout.IsInvalid(err) {
			g.err = err
		}
		return built, err
	}
	if w.Client != nil {
		g.Know = w.Client.Know
		g.Observe = func(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
			isBeyond := func(o rollout.Workload) bool { return !slices.Contains(w.Within, o.Namespace) }
			if w.Within != nil && slices.ContainsFunc(workloads, isBeyond) {
				return rollout.Observed{}
			}
			if err := w.Client.WatchRoutes(ctx, routes); err != nil && !cluster.IsForbidden(err) {
				g.err = err
			}
			return w.Client.Observe(app, workloads, routes)
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

// Head is what the users' branch asks for.
func (w *World) Head(app rollout.App) strategies.Head {
	commit := w.Tip.Tree.Commit()
	if _, listed := w.Tip.Find(app.Name); !listed {
		return strategies.Head{Commit: commit, Err: w.Tip.Unlisted(app)}
	}
	built, err := w.reader.RenderHead(w.Tip.Tree, app)
	return strategies.Head{Commit: commit, Render: built, Err: err}
}

// RenderAt is an app as of a commit, in the folder that it had there.
func (w *World) RenderAt(ctx context.Context, app rollout.App, commit string) (*rollout.Render, error) {
	tree, err := w.Repo.Snapshot(ctx, commit)
	if err != nil {
		return nil, err
	}
	return w.reader.Render(tree, app)
}

// Unlisted are the apps that are on record and not in Git.
func (w *World) Unlisted() []string {
	return slices.DeleteFunc(w.Names(), func(name string) bool {
		_, listed := w.Tip.Find(name)
		return listed
	})
}
