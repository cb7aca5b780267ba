package render

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// plain generates a kustomization as "kustomize create --autodetect" does, and returns its manifests.
func (f *treeFS) plain(app rollout.App) ([]string, error) {
	is, err := isKustomization(f.ask, app.Path)
	if err != nil || is {
		return nil, err
	}
	_, found, err := f.lookup(app.Path)
	if err != nil || !found {
		return nil, err
	}
	f.listed[app.Path] = true
	all, err := manifests(f.tree, app.Path, app.Directory)
	if err != nil {
		f.failed = err
		return nil, err
	}
	if len(all) > maxManifests {
		return nil, rollout.Invalidf(app.Path, "", "has more than %d files and folders", maxManifests).
			WithFix("split the app, or exclude files with directory.exclude of the app's entry")
	}
	if len(all) == 0 {
		return nil, &rollout.InvalidError{File: app.Path, Msg: "has no manifest",
			Fix: "put .yaml, .yml or .json files there, or see directory.include and directory.recurse of the app's entry"}
	}
	content, _ := json.Marshal(map[string][]string{"resources": all}) // cannot fail
	f.made[path.Join(app.Path, KustomizationNames[0])] = content
	return all, nil
}

// orNoObject replaces err if a listed file contains YAML that is no Kubernetes object.
func (f *treeFS) orNoObject(dir string, listed []string, err error) error {
	for _, name := range listed {
		file := path.Join(dir, name)
		for _, text := range splitDocuments(string(f.blobs[file])) {
			var doc map[string]any
			if yaml.Unmarshal([]byte(text), &doc) != nil || len(doc) == 0 {
				continue
			}
			if doc["apiVersion"] == nil || doc["kind"] == nil {
				return &rollout.InvalidError{File: file, Msg: "is not a Kubernetes object",
					Fix: "list it in directory.exclude of the app's entry, or move it out of the folder"}
			}
		}
	}
	return err
}

// maxManifests limits a folder's entries; see mostFolders.
const maxManifests = 10_000

// manifests returns the sorted relative paths of a folder's manifests. A subfolder with a kustomization is listed
// without its files. Above maxManifests, the list is incomplete.
func manifests(tree rollout.Tree, dir string, d rollout.Directory) (found []string, err error) {
	seen := 0
	var folder func(below string) error
	folder = func(below string) error {
		entries, err := tree.ReadDir(path.Join(dir, below))
		if err != nil {
			return fmt.Errorf("list %s: %w", path.Join(dir, below), err)
		}
		for _, e := range entries {
			if seen++; seen > maxManifests {
				return nil
			}
			name := path.Join(below, e.Name)
			excluded, _ := rollout.MatchesAny(d.Exclude, name) // ParseConfig has refused invalid patterns
			switch {
			case excluded:
			case e.Kind != rollout.Dir:
				included, _ := rollout.MatchesAny(d.Include, name)
				if (d.Include == "" || included) && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
					found = append(found, name)
				}
			case d.Recurse:
				is, err := isKustomization(tree.Lookup, path.Join(dir, name))
				if err == nil && is {
					found = append(found, name)
				} else if err == nil {
					err = folder(name)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := folder(""); err != nil {
		return nil, err
	}
	if seen > maxManifests {
		return make([]string, maxManifests+1), nil
	}
	slices.Sort(found)
	return found, nil
}
