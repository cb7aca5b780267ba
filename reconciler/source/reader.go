package source

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/policy"
	"gitrollout.dev/gitrollout/rollout"
)

// Renderer builds one app as of one commit. It returns the same Render, with another Commit, while none
// of the app's files change.
type Renderer interface {
	Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error)
}

// Reader reads commits for one cluster. Its methods may be called from any goroutine.
type Reader struct {
	Own    string                         // gitrollout's namespace, where no app may write; default rollout.OwnNamespace
	Within []string                       // the namespaces that the reconciler has; none: the whole cluster
	Policy atomic.Pointer[rollout.Policy] // that heads are judged by from now on; nil for none

	cluster  string
	renderer Renderer

	mu      sync.Mutex
	configs map[string]*rollout.Config // by blob
}

// NewReader returns a Reader for the cluster of that name, the folder below .gitrollout.
func NewReader(cluster string, renderer Renderer) *Reader {
	return &Reader{Own: rollout.OwnNamespace, cluster: cluster, renderer: renderer, configs: map[string]*rollout.Config{}}
}

// maxConfigs bounds how many configurations are kept. The apps of a cluster are as of few different ones.
const maxConfigs = 50

// ConfigAt returns the configuration of a commit. Few commits change it, so each one is parsed once. One
// that is missing or cannot be understood is an InvalidError.
func (r *Reader) ConfigAt(tree rollout.Tree) (*rollout.Config, error) {
	file := rollout.ConfigPath(r.cluster)
	entry, found, err := tree.Lookup(file)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", file, err)
	}
	if !found {
		return nil, missing(tree, r.cluster)
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

// AppAt is an app as of a commit: in the folder and the namespace that the commit's own configuration gives it. Without
// it, moving an app's folder would make its older commits unreadable, and another namespace would reach the cluster
// before anything was decided. What an older configuration does not tell is as it is now.
func (r *Reader) AppAt(tree Snapshot, now rollout.App) rollout.App {
	config, err := r.ConfigAt(tree)
	if err != nil {
		return now
	}
	as := func(then rollout.App) rollout.App {
		then.Name, then.Limits, then.Decryption, then.Sealed = now.Name, now.Limits, now.Decryption, now.Sealed
		return then
	}
	// Nearly always the app was where it is, which takes no search.
	if entry, found, err := tree.Lookup(now.Path); err == nil && found && entry.Kind == rollout.Dir {
		for _, glob := range config.Apps {
			if !matches(glob, now.Path) {
				continue
			}
			if then, err := glob.App(now.Path); err == nil && then.Name == now.Name {
				return as(then)
			}
		}
	}
	apps, _, err := render.FindAll(tree, config)
	if err != nil {
		return now
	}
	for _, name := range append([]string{now.Name}, strings.Fields(now.Formerly)...) {
		for _, then := range apps {
			if then.Name == name {
				return as(then)
			}
		}
	}
	return now
}

// Render builds an app as of a commit, in the folder that the commit gives it. What it may touch is not looked at: it
// was, when the commit was the newest.
func (r *Reader) Render(tree Snapshot, now rollout.App) (*rollout.Render, error) {
	return r.renderer.Render(tree, r.AppAt(tree, now), tree.Commit())
}

// RenderHead builds an app as of a commit whose configuration is the one that names it. What the app may not touch is
// an InvalidError.
func (r *Reader) RenderHead(tree Snapshot, app rollout.App) (*rollout.Render, error) {
	built, err := r.renderer.Render(tree, app, tree.Commit())
	if err == nil {
		err = render.Reach(tree, built, r.Within)
	}
	if err == nil {
		err = policy.Allow(tree, built, rollout.ConfigPath(r.cluster), r.Own, r.Policy.Load())
	}
	if err != nil {
		return nil, err
	}
	return built, nil
}

// Each does something n times, most of them at once at the most, and returns when all are done.
func Each(n, most int, do func(i int)) {
	slots := make(chan struct{}, most)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	all.Wait()
}
