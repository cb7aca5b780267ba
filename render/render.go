package render

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// kept is how many results are remembered for each app: the head and the stable commit alternate while a release is in
// flight, and a superseding push and its revert make two more.
const kept = 4

// Builder builds one app of a tree, in this process or in another.
type Builder interface {
	// Build returns the app without a commit, and what of the tree it depends on, also of one that is
	// invalid. Errors are those of Renderer.Render.
	Build(tree rollout.Tree, app rollout.App) (built *rollout.Render, looked Looked, err error)
}

// Looked is what of a tree a build depends on.
type Looked struct {
	At  []string // paths, also those at which nothing is
	All []string // folders, with all that they have
}

// Renderer has apps built and remembers what each build depended on. It may be
// used by several goroutines at once, best for different apps.
type Renderer struct {
	builder Builder
	builds  atomic.Int64
	mu      sync.Mutex
	cache   map[string][]*cached // by the app's name, newest first
}

// cached is the outcome of one build: a Render or an InvalidError, never a
// failure to read the tree, which says nothing about the commit.
type cached struct {
	app     rollout.App
	closure *closure
	render  *rollout.Render
	invalid *rollout.InvalidError
}

// New returns a Renderer that remembers nothing yet, and has apps built by b.
func New(b Builder) *Renderer { return &Renderer{builder: b, cache: map[string][]*cached{}} }

// Builds returns how many kustomize builds have run so far.
func (r *Renderer) Builds() int { return int(r.builds.Load()) }

// Render builds one app as of a commit. When nothing that one of the app's last builds looked at has changed, paths
// without a file included, it returns that build's result with the new commit. An InvalidError is about the
// repository; after any other error the tree could not be read, and a later try may succeed.
func (r *Renderer) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	built := app
	// What it may touch, and as whom, makes no difference to what it is.
	built.Namespaces, built.ClusterResources, built.ServiceAccount = "", "", ""
	found, err := r.find(tree, built)
	if err != nil {
		return nil, err
	}
	if found == nil {
		r.builds.Add(1)
		if found, err = r.build(tree, built); err != nil {
			return nil, err
		}
		if found.invalid == nil || found.invalid.Reason != rollout.HeldUndecryptable { // a key may come
			r.keep(found)
		}
	}
	if found.invalid != nil {
		return nil, found.invalid
	}
	out := *found.render
	out.App, out.Commit = app, commit
	out.App.Sealed = false
	return &out, nil
}

// find returns a remembered result that holds for the tree, nil if none does.
func (r *Renderer) find(tree rollout.Tree, app rollout.App) (*cached, error) {
	r.mu.Lock()
	candidates := slices.Clone(r.cache[app.Name])
	r.mu.Unlock()
	for _, c := range candidates {
		if c.app != app {
			continue
		}
		same, err := c.closure.holds(tree, "")
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
	list := slices.Insert(slices.Clone(r.cache[c.app.Name]), 0, c)
	r.cache[c.app.Name] = list[:min(kept, len(list))]
}

// KeepOnly forgets the builds of all apps but these.
func (r *Renderer) KeepOnly(apps []rollout.App) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.cache, func(name string, _ []*cached) bool {
		return !slices.ContainsFunc(apps, func(a rollout.App) bool { return a.Name == name })
	})
}

// build has an app built without a look at what is remembered.
func (r *Renderer) build(tree rollout.Tree, app rollout.App) (*cached, error) {
	render, looked, err := r.builder.Build(tree, app)
	var invalid *rollout.InvalidError
	if err != nil && !errors.As(err, &invalid) {
		return nil, err
	}
	closed, err := newClosure(looked, tree)
	if err != nil {
		return nil, err
	}
	return &cached{app: app, closure: closed, render: render, invalid: invalid}, nil
}

// InProcess builds apps where it is called: nothing bounds what memory and time that takes but what the look
// before kustomize finds.
type InProcess struct {
	// CheckProvider lets metric providers look at their blocks of analysis templates. Nil: any block of any
	// provider is accepted.
	CheckProvider func(kind string, config map[string]any) error
	// Unlock returns the data key of a file that is encrypted, by the keys that the app may use. Nil: Secrets that are
	// encrypted in Git are rendered without their values, and annotated rollout.AnnotationSealed.
	Unlock func(app rollout.App, locks []sops.Lock) ([]byte, error)
}

// Build is Builder's.
func (b InProcess) Build(tree rollout.Tree, app rollout.App) (*rollout.Render, Looked, error) {
	fs := newTreeFS(tree)
	built, err := b.render(fs, app)
	if fs.failed != nil {
		return nil, Looked{}, fs.failed
	}
	return built, Looked{At: slices.Collect(maps.Keys(fs.asked)), All: slices.Collect(maps.Keys(fs.listed))}, err
}

// render checks what the app's kustomizations refer to, builds them, and
// takes the Rollout documents out of what was built.
func (b InProcess) render(fs *treeFS, app rollout.App) (*rollout.Render, error) {
	plan, objects, err := build(fs, app)
	if err != nil {
		return nil, orDepends(fs, app, err)
	}
	a := &assembly{origins: origins{fs, plan.file}, app: app, checkProvider: b.CheckProvider, warnings: plan.warnings}
	drawn, err := a.byChance(app, objects)
	if err != nil {
		return nil, err
	}
	if a.content, err = contentOf(app, objects); err != nil {
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

// build is what kustomize makes of an app. A file that cannot be decrypted is the error, whatever came of it.
func build(fs *treeFS, app rollout.App) (plan, []rollout.Object, error) {
	plan, objects, err := buildAll(fs, app)
	if r := fs.refused; err != nil && r != nil && r.Reason == rollout.HeldUndecryptable {
		err = r
	}
	return plan, objects, err
}

func buildAll(fs *treeFS, app rollout.App) (plan, []rollout.Object, error) {
	var listed []string
	if app.Plain {
		var err error
		if listed, err = fs.plain(app); err != nil {
			return plan{}, nil, err
		}
	}
	plan, err := inspect(fs, app)
	if err != nil {
		return plan, nil, err
	}
	variables, err := fs.variables(app)
	if err != nil {
		return plan, nil, err
	}
	objects, err := kustomize(fs, app.Path, &plan, variables)
	if err != nil {
		return plan, nil, origins{fs, plan.file}.blame(fs.orNoObject(app.Path, listed, err), rollout.Ref{})
	}
	return plan, objects, nil
}
