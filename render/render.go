// Package render turns a commit's files into the objects that a cluster should have. It runs kustomize in process on
// the given Tree only, without disk, network, environment or programs. It first inspects the files, to limit memory and
// time; package worker has hard limits.
package render

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// kept is the number of cached results per app: for the released commit, the stable commit, a newer push, and the
// push's revert.
const kept = 4

// Builder builds an app in this or in another process.
type Builder interface {
	// Build returns an app's Render, in which Commit is empty.
	Build(tree rollout.Tree, app rollout.App) (built *rollout.Render, looked Looked, err error)
}

// Looked holds the paths that a build depends on.
type Looked struct {
	At  []string // paths that were looked up, including missing files
	All []string // folders whose whole content was read
}

// Renderer builds apps and caches results. Concurrent calls are safe, but two calls may build the same app.
type Renderer struct {
	builder Builder
	builds  atomic.Int64
	mu      sync.Mutex
	cache   map[string][]*cached // by app name, newest first
}

type cached struct {
	closure *closure
	render  *rollout.Render // shared with the first caller; if invalid is set, only App is used
	invalid *rollout.InvalidError
}

// New returns a Renderer for b.
func New(b Builder) *Renderer { return &Renderer{builder: b, cache: map[string][]*cached{}} }

// Builds returns the number of kustomize builds so far.
func (r *Renderer) Builds() int { return int(r.builds.Load()) }

// Render renders an app at a commit. If the paths that an earlier build depends on are unchanged, it returns the cached
// result. An InvalidError is a mistake in the repository; other errors may be temporary.
func (r *Renderer) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	found, err := r.find(tree, keyOf(app))
	if err != nil {
		return nil, err
	}
	if found == nil {
		r.builds.Add(1)
		if found, err = r.build(tree, app, commit); err != nil {
			return nil, err
		}
		if found.invalid == nil || found.invalid.Reason != rollout.HeldUndecryptable { // a user may add a missing key
			r.keep(found)
		}
	}
	if found.invalid != nil {
		return nil, found.invalid
	}
	if found.render.App == app && found.render.Commit == commit && !app.Sealed { // most apps have one caller
		return found.render.Unpacked(), nil
	}
	out := *found.render
	out.App, out.Commit = app, commit
	out.App.Sealed = false
	return out.Unpacked(), nil
}

func keyOf(app rollout.App) rollout.App {
	app.Namespaces, app.ClusterResources, app.ServiceAccount = "", "", ""
	return app
}

// IsSame reports whether the cache knows that another commit gives the same render. Equal objects from other files
// count as different.
func (r *Renderer) IsSame(tree rollout.Tree, was *rollout.Render) bool {
	found, err := r.find(tree, keyOf(was.App))
	return err == nil && found != nil && found.invalid == nil && len(was.Files) > 0 && len(found.render.Files) > 0 &&
		&found.render.Files[0] == &was.Files[0] // renders of one build share this array
}

func (r *Renderer) find(tree rollout.Tree, app rollout.App) (*cached, error) {
	r.mu.Lock()
	candidates := slices.Clone(r.cache[app.Name])
	r.mu.Unlock()
	for _, c := range candidates {
		if keyOf(c.render.App) != app {
			continue
		}
		same, err := c.closure.holds(tree, c.closure.name)
		if err != nil {
			return nil, err
		}
		if same {
			return c, nil
		}
	}
	return nil, nil
}

func (r *Renderer) keep(c *cached) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Insert(slices.Clone(r.cache[c.render.App.Name]), 0, c)
	r.cache[c.render.App.Name] = list[:min(kept, len(list))]
}

// KeepOnly drops cached apps that are not in the list, until the cache has no more apps than the list.
func (r *Renderer) KeepOnly(apps []rollout.App) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.cache) <= len(apps) {
		return
	}
	listed := make(map[string]bool, len(apps))
	for _, a := range apps {
		listed[a.Name] = true
	}
	maps.DeleteFunc(r.cache, func(name string, _ []*cached) bool { return len(r.cache) > len(apps) && !listed[name] })
}

func (r *Renderer) build(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*cached, error) {
	render, looked, err := r.builder.Build(tree, keyOf(app))
	var invalid *rollout.InvalidError
	if err != nil && !errors.As(err, &invalid) {
		return nil, err
	}
	closed, err := newClosure(looked, tree)
	if err != nil {
		return nil, err
	}
	render = cmp.Or(render, &rollout.Render{})
	render.App, render.Commit = app, commit
	render.Pack()
	return &cached{closure: closed, render: render, invalid: invalid}, nil
}

// InProcess builds apps in this process, without hard limits.
type InProcess struct {
	// CheckProvider validates a metric provider's settings. If nil, all are valid.
	CheckProvider func(kind string, config map[string]any) error
	// Unlock decrypts an encrypted file's data key. If nil, values of Secrets stay sealed.
	Unlock func(app rollout.App, locks []sops.Lock) ([]byte, error)
}

// Build implements Builder.
func (b InProcess) Build(tree rollout.Tree, app rollout.App) (*rollout.Render, Looked, error) {
	fs := newTreeFS(tree)
	built, err := b.render(fs, app)
	if fs.failed != nil {
		return nil, Looked{}, fs.failed
	}
	return built, Looked{At: slices.Collect(maps.Keys(fs.asked)), All: slices.Collect(maps.Keys(fs.listed))}, err
}

func (b InProcess) render(fs *treeFS, app rollout.App) (*rollout.Render, error) {
	plan, objects, err := build(fs, app)
	if err != nil {
		return nil, orDepends(fs, app, err)
	}
	a := &assembly{origins: origins{fs, plan.file}, Render: rollout.Render{App: app, Warnings: plan.warnings},
		checkProvider: b.CheckProvider}
	drawn, err := a.byChance(app, objects)
	if err != nil {
		return nil, err
	}
	if a.Content, err = contentOf(app, objects); err != nil {
		return nil, err
	}
	if objects, err = b.open(a, objects); err != nil {
		return nil, err
	}
	if err := b.draw(a, objects, drawn); err != nil {
		return nil, err
	}
	if err := a.assemble(objects); err != nil {
		return nil, err
	}
	return a.render()
}

func build(fs *treeFS, app rollout.App) (plan plan, objects []rollout.Object, err error) {
	defer func() {
		if r := fs.refused; err != nil && r != nil && r.Reason == rollout.HeldUndecryptable {
			err = r
		}
	}()
	var listed []string
	if app.Plain {
		if listed, err = fs.plain(app); err != nil {
			return plan, nil, err
		}
	}
	if plan, err = inspect(fs, app); err != nil {
		return plan, nil, err
	}
	variables, err := fs.variables(app)
	if err != nil {
		return plan, nil, err
	}
	built, err := buildMap(fs, app.Path, plan)
	if err == nil {
		objects, err = decode(fs, built, &plan, variables)
	}
	if err != nil {
		return plan, nil, origins{fs, plan.file}.blame(fs.orNoObject(app.Path, listed, err), rollout.Ref{})
	}
	return plan, objects, nil
}
