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

// Options configure a Session.
type Options struct {
	Cluster  string // folder below .gitrollout/
	Branch   string
	Repo     *git.Repo // a mirror
	Renderer *render.Renderer
	Own      string // gitrollout's namespace, to which no app may write; or ""
	Now      func() time.Time
	Command  func(line string) string // adds the current flags to a suggested command
	// Detail also reads an app's commits that no decision needs. This is slow for many apps.
	Detail bool

	Signers  git.Verifier // verifies the parent of a new commit; may be nil
	Unsigned string       // last line of the error about unsigned commits
}

// Session is a user's view of the users' branch, the state branch and, if Client is set, the cluster.
type Session struct {
	Options
	Heads  rollout.Heads
	Tip    *source.Branch  // newest commit of the users' branch
	State  source.Snapshot // nil without a state branch
	States *source.States
	UID    string                 // the cluster's, on the state branch; "" if not recorded
	Apps   map[string]rollout.App // by name; includes apps that have only a record

	Client *cluster.Client
	Within []string // readable namespaces; nil means all
	Note   string   // for users: why the cluster is not fully read

	reader  *source.Reader
	mu      sync.Mutex
	seen    map[string]status.App // of healthy apps
	touched map[string]int        // calls of Touch by app
}

// New returns a Session. Call Refresh first.
func New(o Options) *Session {
	return &Session{Options: o, reader: source.NewReader(o.Cluster, o.Renderer).In(o.Own, nil)}
}

// Refresh fetches from Git, and reports whether the users' branch, the state branch or a proposal changed.
func (w *Session) Refresh(ctx context.Context) (changed bool, err error) {
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
	w.mu.Lock()
	w.seen, w.touched = map[string]status.App{}, map[string]int{}
	w.mu.Unlock()
	if err := w.At(ctx, heads.Main); err != nil {
		return true, err
	}
	w.Heads = heads // set last, so that Refresh reads again after an error
	return true, nil
}

// At sets Tip to a commit, and Apps to the apps of this commit and of the state branch.
func (w *Session) At(ctx context.Context, commit string) error {
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
	for name := range w.States.Files {
		w.Apps[name] = rollout.App{Name: name}
	}
	for _, a := range branch.Apps {
		w.Apps[a.Name] = a
	}
	return nil
}

func (w *Session) configBefore(ctx context.Context, commit string) (last *rollout.Config, err error) {
	_, err = w.Repo.Log(ctx, commit, 1000, func(s *git.Snapshot) (more bool, err error) {
		if last, err = w.reader.ConfigAt(s); rollout.IsInvalid(err) {
			return true, nil
		}
		return false, err
	})
	return last, err
}

// Warning returns why an older configuration is used, or "".
func (w *Session) Warning() string {
	if w.Tip.Behind == nil {
		return ""
	}
	return w.Tip.Behind.Error() + "; until this is fixed, no release advances, and the apps do not change"
}

func (w *Session) warned(text string) string {
	return strings.TrimSuffix(text+"\nwarning: "+w.Warning(), "\nwarning: ")
}

// Config returns the newest valid configuration.
func (w *Session) Config() *rollout.Config { return w.Tip.Config }

// Names returns the apps' sorted names.
func (w *Session) Names() []string { return slices.Sorted(maps.Keys(w.Apps)) }

// Selected returns the app in args and sets w.Detail. Without args, it returns all apps.
func (w *Session) Selected(args []string) ([]rollout.App, error) {
	if len(args) == 0 {
		return rollout.Mapped(w.Names(), func(name string) rollout.App { return w.Apps[name] }), nil
	}
	w.Detail = true
	app, err := w.App(args[0])
	return []rollout.App{app}, err
}

// Namespaces returns the sorted namespaces of apps' entries and records. "*" patterns are omitted.
func Namespaces(apps map[string]rollout.App, states *source.States) (all []string) {
	for name, app := range apps {
		state, _ := states.Of(name) // the error is reported elsewhere
		all = append(append(all, app.Namespace), strings.Fields(app.Namespaces)...)
		all = append(all, rollout.Mapped(state.Inventory, func(ref rollout.Ref) string { return ref.Namespace })...)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool {
		return name == "" || strings.Contains(name, "*")
	})
}

// NoAppError is the error for an unknown app.
type NoAppError string

// Error returns the message.
func (e NoAppError) Error() string { return string(e) }

// App returns an app by name, or NoAppError.
func (w *Session) App(name string) (rollout.App, error) {
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

// Input gathers a decision's input as the reconciler does. Without Client, all input is from Git.
func (w *Session) Input(ctx context.Context, app rollout.App, now time.Time) (in strategies.Input, err error) {
	s, err := w.States.Of(app.Name)
	if err != nil {
		return in, err
	}
	if _, listed := w.Tip.Find(app.Name); !listed {
		app.Path = s.Path
	}
	promotion := w.Tip.Promotion(s.Named(app))
	if promotion.Err != nil && !rollout.IsInvalid(promotion.Err) {
		return in, promotion.Err
	}
	head := w.Head(app)
	if h := s.Held; w.Detail && h != nil && head.Render != nil && promotion.Err == nil {
		at, err := w.RenderAt(ctx, app, h.Commit) // this commit changed the app
		if err == nil && at.Digest == head.Render.Digest {
			head.Commit, head.Render = at.Commit, at
		}
	}
	a := source.Prepare(w.Tip, app, s, head, promotion, source.Trust{})
	// While the head is held or rejected, the app stays at recorded commits, whose renders are needed.
	needed := w.Detail || s.Release != nil || s.Held != nil || s.Phase == rollout.Degraded || a.Head.Render == nil ||
		a.Barred != nil
	var failed error
	in, err = w.gatherer(ctx, a.Head.Render, needed, &failed).Gather(ctx, a, now)
	in.Answers = strategies.Answers{Healed: new(true)}
	return in, errors.Join(err, failed)
}

var errNotNeeded = errors.New("is not needed")

// gatherer returns a Gatherer. It renders commits other than the head's only if "needed" is true. *failed gets errors
// of Git and the cluster, except errors about missing or invalid commits.
func (w *Session) gatherer(ctx context.Context, head *rollout.Render, needed bool, failed *error) (g source.Gatherer) {
	g.RenderAt = func(ctx context.Context, app rollout.App, commit string) (*rollout.Render, error) {
		switch {
		case head != nil && head.Commit.ID == commit:
			return head, nil
		case !needed:
			return nil, errNotNeeded
		}
		built, err := w.RenderAt(ctx, app, commit)
		if err != nil && !errors.Is(err, git.ErrNotFound) && !rollout.IsInvalid(err) {
			*failed = err
		}
		return built, err
	}
	if w.Client != nil {
		g.Know = w.Client.Know
		g.Observe = func(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
			isUnread := func(o rollout.Workload) bool { return w.Within != nil && !slices.Contains(w.Within, o.Namespace) }
			read := slices.DeleteFunc(slices.Clone(workloads), isUnread)
			if len(read) == 0 && len(workloads) > 0 {
				return rollout.Observed{}
			}
			if err := w.Client.WatchRoutes(ctx, routes); err != nil && !cluster.IsForbidden(err) {
				*failed = err
			}
			observed := w.Client.Observe(app, read, routes)
			observed.Unread = slices.DeleteFunc(workloads, func(o rollout.Workload) bool { return !isUnread(o) })
			return observed
		}
	}
	return g
}

// Head returns the app's render at the newest commit.
func (w *Session) Head(app rollout.App) strategies.Head {
	commit := w.Tip.Tree.Commit()
	if _, listed := w.Tip.Find(app.Name); !listed {
		return strategies.Head{Commit: commit, Err: w.Tip.Removed(app)}
	}
	built, err := w.reader.RenderHead(w.Tip.Tree, app)
	return strategies.Head{Commit: commit, Render: built, Err: err}
}

// RenderAt renders an app at a commit, with that commit's settings.
func (w *Session) RenderAt(ctx context.Context, app rollout.App, commit string) (*rollout.Render, error) {
	tree, err := w.Repo.Snapshot(ctx, commit)
	if err != nil {
		return nil, err
	}
	return w.reader.Render(tree, app)
}

// Unlisted returns recorded apps that the configuration does not list.
func (w *Session) Unlisted() []string {
	return slices.DeleteFunc(w.Names(), func(name string) bool {
		_, listed := w.Tip.Find(name)
		return listed
	})
}
