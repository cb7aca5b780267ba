package render

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// FindApps returns the apps that a configuration names, sorted by name. A
// folder is an app if it matches a glob and holds a kustomization. Globs match
// real folders only, not symlinks. Two apps of one name are an InvalidError.
func FindApps(tree Tree, cfg *rollout.Config) ([]rollout.App, error) {
	byName := map[string]rollout.App{}
	for i, glob := range cfg.Apps {
		dirs, err := expand(tree, "", strings.Split(glob.Path, "/"))
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			app, err := glob.App(dir)
			if err != nil {
				return nil, err
			}
			if other, taken := byName[app.Name]; taken && other.Path != app.Path {
				return nil, &rollout.InvalidError{File: cfg.File, Field: fmt.Sprintf("apps[%d].path", i),
					Msg: fmt.Sprintf("%s and %s are both the app %s", other.Path, app.Path, app.Name), Fix: "give one of them a name of its own"}
			} else if taken {
				continue // matched by an earlier entry, whose settings win
			}
			byName[app.Name] = app
		}
	}
	apps := make([]rollout.App, 0, len(byName))
	for _, app := range byName {
		apps = append(apps, app)
	}
	slices.SortFunc(apps, func(a, b rollout.App) int { return strings.Compare(a.Name, b.Name) })
	return apps, nil
}

// expand returns the kustomizations below dir that match a glob's segments.
func expand(tree Tree, dir string, glob []string) ([]string, error) {
	if len(glob) == 0 {
		is, err := isKustomization(tree, dir)
		if err != nil || !is {
			return nil, err
		}
		return []string{dir}, nil
	}
	if !strings.ContainsAny(glob[0], `*?[\`) {
		next := path.Join(dir, glob[0])
		entry, found, err := tree.Lookup(next)
		if err != nil || !found || entry.Kind != rollout.Dir {
			return nil, err
		}
		return expand(tree, next, glob[1:])
	}
	entries, err := tree.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, entry := range entries {
		if matched, err := path.Match(glob[0], entry.Name); err != nil || !matched || entry.Kind != rollout.Dir {
			continue // ParseConfig has refused patterns that are no patterns
		}
		below, err := expand(tree, path.Join(dir, entry.Name), glob[1:])
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	slices.Sort(out)
	return out, nil
}

func isKustomization(tree Tree, dir string) (bool, error) {
	for _, name := range kustomizationNames {
		entry, found, err := tree.Lookup(path.Join(dir, name))
		if err != nil {
			return false, err
		}
		if found && entry.Kind != rollout.Dir && entry.Kind != rollout.Submodule {
			return true, nil
		}
	}
	return false, nil
}
