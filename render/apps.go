package render

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/render/chart"
	"gitrollout.dev/gitrollout/rollout"
)

// InvalidName is a folder that matches an entry but cannot be an app: it is a symbolic link, or its name is invalid or
// taken.
type InvalidName struct {
	Path string // slash-separated, relative to the repository's root
	Err  error  // an InvalidError
}

// FindApps returns a configuration's apps, sorted by name. An app's folder has a kustomization, a chart (helm), or
// manifests (directory). If there is an InvalidName, FindApps fails.
func FindApps(tree rollout.Tree, cfg *rollout.Config) ([]rollout.App, error) {
	apps, unnamed, err := FindAll(tree, cfg)
	if err == nil && len(unnamed) > 0 {
		return nil, unnamed[0].Err
	}
	return apps, err
}

// FindAll also returns the folders that cannot be apps. If folders have equal app names, the first is the app.
func FindAll(tree rollout.Tree, cfg *rollout.Config) (apps []rollout.App, unnamed []InvalidName, err error) {
	apps, paths := []rollout.App{}, map[string]string{}
	left := mostFolders
	for i, glob := range cfg.Apps {
		links, err := linksTo(tree, glob)
		if err != nil {
			return nil, nil, err
		}
		unnamed = append(unnamed, links...)
		at := fmt.Sprintf("apps[%d].path", i)
		dirs, err := expand(tree, glob, "", strings.Split(glob.Path, "/"), &left)
		if err != nil {
			return nil, nil, err
		}
		if left < 0 {
			unnamed = append(unnamed, InvalidName{glob.Path, rollout.Invalidf(cfg.File, at,
				"%s and the entries before it match more than %d folders; the folders above this limit are no apps",
				glob.Path, mostFolders).WithFix("remove folders that are no apps, or use a path that matches fewer folders")})
			left = 0
		}
		for _, dir := range dirs {
			app, err := glob.App(dir)
			if err != nil {
				unnamed = append(unnamed, InvalidName{dir, err})
				continue
			}
			other, taken := paths[app.Name]
			switch {
			case !taken:
				paths[app.Name] = app.Path
				apps = append(apps, app)
			case other != app.Path:
				unnamed = append(unnamed, InvalidName{dir, rollout.Invalidf(cfg.File, at, "%s and %s are both the app %s",
					other, app.Path, app.Name).WithFix("give one app another name")})
			}
		}
	}
	slices.SortFunc(apps, func(a, b rollout.App) int { return strings.Compare(a.Name, b.Name) })
	return slices.Clone(apps), unnamed, nil // without spare capacity
}

// HasSameNames reports whether two commits differ below dir only in files' contents, so that FindAll returns the same
// apps. After an error, or if the differing folders have more than *left entries, it returns false.
func HasSameNames(was, is rollout.Tree, dir string, left *int) bool {
	from, err := was.ReadDir(dir)
	to, failed := is.ReadDir(dir)
	*left -= len(from)
	return err == nil && failed == nil && *left >= 0 && slices.EqualFunc(from, to, func(a, b rollout.Entry) bool {
		return a.Name == b.Name && a.Kind == b.Kind && (a.ID == b.ID && a.ID != "" || a.Kind == rollout.File ||
			a.Kind == rollout.Dir && HasSameNames(was, is, path.Join(dir, a.Name), left))
	})
}

func linksTo(tree rollout.Tree, entry rollout.AppGlob) (links []InvalidName, err error) {
	dir, last := path.Split(entry.Path)
	dir = strings.TrimSuffix(dir, "/")
	if at, found, err := tree.Lookup(dir); err != nil || !found || at.Kind != rollout.Dir {
		return nil, err
	}
	entries, err := tree.ReadDir(dir)
	for _, e := range entries {
		if is, _ := path.Match(last, e.Name); !is || e.Kind != rollout.Symlink {
			continue
		}
		target, err := tree.ReadBlob(e.ID)
		if err != nil {
			return nil, err
		}
		if to, _, err := tree.Lookup(path.Join(dir, string(target))); err == nil && to.Kind == rollout.Dir {
			links = append(links, InvalidName{path.Join(dir, e.Name), LinkedApp(path.Join(dir, e.Name))})
		}
	}
	return links, err
}

// LinkedApp returns the error for a symlinked app folder.
func LinkedApp(dir string) *rollout.InvalidError {
	return rollout.Invalidf(dir, "", "is a symbolic link, and links to apps are not followed").
		WithFix("list the folder that it leads to, or make it a folder")
}

// mostFolders limits matches, because a few nested Git tree objects can expand to millions of folders.
const mostFolders = 20_000

func expand(tree rollout.Tree, entry rollout.AppGlob, dir string, glob []string, left *int) (out []string, err error) {
	if len(glob) == 0 {
		is, err := isKustomization(tree.Lookup, dir)
		if err == nil && !is && entry.Helm != nil {
			is, err = isFile(tree.Lookup, path.Join(dir, chart.Main))
		}
		if err == nil && !is && entry.Directory != nil {
			var found []string
			found, err = manifests(tree, dir, *entry.Directory)
			is = len(found) > 0 || !rollout.IsGlob(entry.Path)
		}
		if err != nil || !is {
			return nil, err
		}
		return []string{dir}, nil
	}
	if !rollout.IsGlob(glob[0]) {
		next := path.Join(dir, glob[0])
		if at, found, err := tree.Lookup(next); err != nil || !found || at.Kind != rollout.Dir {
			return nil, err
		}
		return expand(tree, entry, next, glob[1:], left)
	}
	entries, err := tree.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if matched, err := path.Match(glob[0], e.Name); err != nil || !matched || e.Kind != rollout.Dir {
			continue // ParseConfig has refused invalid patterns
		}
		if *left--; *left < 0 {
			break
		}
		below, err := expand(tree, entry, path.Join(dir, e.Name), glob[1:], left)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	slices.Sort(out)
	return out, nil
}

type lookupFunc func(path string) (rollout.Entry, bool, error)

func isKustomization(lookup lookupFunc, dir string) (bool, error) {
	for _, name := range KustomizationNames {
		if is, err := isFile(lookup, path.Join(dir, name)); err != nil || is {
			return is, err
		}
	}
	return false, nil
}

func isFile(lookup lookupFunc, path string) (bool, error) {
	entry, found, err := lookup(path)
	return err == nil && found && entry.Kind != rollout.Dir && entry.Kind != rollout.Submodule, err
}

// plain generates a kustomization as "kustomize create --autodetect" does, and returns the manifests' paths.
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
	content, _ := json.Marshal(map[string][]string{"resources": all})
	f.made[path.Join(app.Path, KustomizationNames[0])] = content
	return all, nil
}

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

const maxManifests = 10_000

// manifests returns the sorted relative paths of a folder's manifests. A subfolder with a kustomization is one entry.
// Above maxManifests, the list is incomplete.
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
