package reconciler

import (
	"fmt"
	"path"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// appAt is an app as of a commit: in the folder and the namespace that the
// commit's own configuration gives it. Without it, moving an app's folder would
// make its older commits unreadable, and another namespace would reach the
// cluster before anything was decided. What an older configuration does not
// tell is as it is now.
func (r *Reconciler) appAt(tree Snapshot, now rollout.App) rollout.App {
	config, err := r.configAt(tree)
	if err != nil {
		return now
	}
	// Nearly always the app was where it is, which takes no search.
	if entry, found, err := tree.Lookup(now.Path); err == nil && found && entry.Kind == rollout.Dir {
		for _, glob := range config.Apps {
			if is, err := path.Match(glob.Path, now.Path); err != nil || !is {
				continue
			}
			if then, err := glob.App(now.Path); err == nil && then.Name == now.Name {
				return then
			}
		}
	}
	apps, err := render.FindApps(tree, config)
	if err != nil {
		return now
	}
	for _, then := range apps {
		if then.Name == now.Name {
			return then
		}
	}
	return now
}

// configAt returns the configuration of a commit. Few commits change it, so
// each one is parsed once.
func (r *Reconciler) configAt(tree Snapshot) (*rollout.Config, error) {
	file := rollout.ConfigPath(r.Cluster)
	entry, found, err := tree.Lookup(file)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", file, err)
	}
	if !found {
		return nil, &rollout.InvalidError{File: file, Msg: "does not exist", Fix: "commit a Config there, or name another cluster with --cluster"}
	}
	r.configsMu.Lock()
	defer r.configsMu.Unlock()
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

// maxConfigs bounds how many configurations are kept. The apps of a cluster are
// as of few different ones.
const maxConfigs = 50
