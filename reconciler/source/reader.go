package source

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/policy"
	"gitrollout.dev/gitrollout/rollout"
)

// Renderer renders an app at a commit. If the files of two commits are equal, their renders differ only in Commit.
type Renderer interface {
	Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error)
}

// Reader reads commits for one cluster. Any goroutine may call it.
type Reader struct {
	Policy atomic.Pointer[rollout.Policy] // for later renders of heads; may be nil

	cluster  string
	renderer Renderer
	own      string   // gitrollout's namespace, closed to apps; default rollout.OwnNamespace
	within   []string // in scope; default all
	opened   atomic.Pointer[Branch]
	listed   atomic.Pointer[listing] // cache of Listed

	mu      sync.Mutex
	configs map[string]*rollout.Config // by blob id
}

type listing struct {
	commit string
	apps   map[string]rollout.App
}

// NewReader returns a Reader for a cluster's folder in .gitrollout.
func NewReader(cluster string, renderer Renderer) *Reader {
	return &Reader{own: rollout.OwnNamespace, cluster: cluster, renderer: renderer, configs: map[string]*rollout.Config{}}
}

// In sets gitrollout's own namespace and the namespaces in scope. Without namespaces, all are in scope.
func (r *Reader) In(own string, within []string) *Reader {
	r.own, r.within = own, within
	return r
}

const maxConfigs = 50

// ConfigAt caches configurations. If the configuration is missing or invalid, the error is an InvalidError.
func (r *Reader) ConfigAt(tree rollout.Tree) (*rollout.Config, error) {
	file := rollout.ConfigPath(r.cluster)
	entry, found, err := tree.Lookup(file)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", file, err)
	}
	switch {
	case !found:
		return nil, missing(tree, r.cluster)
	case entry.Kind == rollout.Dir:
		return nil, rollout.Invalidf(file, "", "is a folder").WithFix("replace it by a file")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.configs[entry.ID]; known != nil {
		return known, nil
	}
	data, err := tree.ReadBlob(entry.ID)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	config, err := rollout.ParseConfig(file, data)
	if err != nil {
		return nil, err
	}
	if len(r.configs) >= maxConfigs {
		clear(r.configs)
	}
	r.configs[entry.ID] = config
	return config, nil
}

// AppAt returns an app with a commit's settings, so that older commits stay readable after a folder moves. Limits and
// decryption keep their present settings. An unlisted app stays unchanged.
func (r *Reader) AppAt(tree Snapshot, now rollout.App) rollout.App {
	config, err := r.ConfigAt(tree)
	if err != nil {
		return inFolder(tree, now)
	}
	as := func(then rollout.App) rollout.App {
		then.Name, then.Limits, then.Decryption, then.Sealed = now.Name, now.Limits, now.Decryption, now.Sealed
		return then
	}
	if entry, found, err := tree.Lookup(now.Path); err == nil && found && entry.Kind == rollout.Dir {
		for _, glob := range config.Apps {
			if then, err := glob.App(now.Path); matches(glob, now.Path) && err == nil && then.Name == now.Name {
				return as(then)
			}
		}
	}
	apps, _, err := render.FindAll(tree, config)
	if err != nil {
		return inFolder(tree, now)
	}
	for _, name := range append([]string{now.Name}, strings.Fields(now.Formerly)...) {
		if then, listed := rollout.Find(apps, func(a rollout.App) bool { return a.Name == name }); listed {
			return as(then)
		}
	}
	return now
}

// inFolder finds an app's folder if the commit's configuration is unreadable. If the present folder is missing, it
// tries sibling folders with former names.
func inFolder(tree Snapshot, now rollout.App) rollout.App {
	for _, name := range append([]string{path.Base(now.Path)}, strings.Fields(now.Formerly)...) {
		at := path.Join(path.Dir(now.Path), name)
		if entry, found, err := tree.Lookup(at); err == nil && found && entry.Kind == rollout.Dir {
			now.Path = at
			break
		}
	}
	return now
}

// Render renders an app at a commit, without RenderHead's permission checks.
func (r *Reader) Render(tree Snapshot, now rollout.App) (*rollout.Render, error) {
	return r.renderer.Render(tree, r.AppAt(tree, now), tree.Commit())
}

// RenderHead renders an app at the head. If an object is forbidden, the error is an InvalidError.
func (r *Reader) RenderHead(tree Snapshot, app rollout.App) (*rollout.Render, error) {
	built, err := r.renderer.Render(tree, app, tree.Commit())
	if err == nil {
		err = r.allow(tree, built)
	}
	if err != nil {
		return nil, err
	}
	return built, nil
}

func (r *Reader) allow(tree Snapshot, built *rollout.Render) error {
	if len(r.within) > 0 {
		if err := render.Reach(tree, built, r.within); err != nil {
			return err
		}
	}
	return policy.Allow(tree, built, rollout.ConfigPath(r.cluster), r.own, r.Policy.Load())
}

// IsSameHead reports whether RenderHead at a newer head would return an earlier render again. It needs neither a build
// nor the policy.
func (r *Reader) IsSameHead(tree Snapshot, was *rollout.Render) bool {
	f, remembers := r.renderer.(interface {
		IsSame(tree rollout.Tree, was *rollout.Render) bool
	})
	return remembers && f.IsSame(tree, was)
}

// Each calls do(0) to do(n-1), with a limit on concurrent calls, and waits for all calls.
func Each(n, most int, do func(i int)) { workqueue.ParallelizeUntil(context.Background(), most, n, do) }
