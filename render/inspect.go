package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"gitrollout.dev/gitrollout/render/convert"
	"gitrollout.dev/gitrollout/rollout"
)

type plan struct {
	file     string // the app's own kustomization
	openAPI  bool   // the app replaces kustomize's global schema
	warnings []string
}

// maxRoots limits how many kustomizations a build reads. A kustomization counts at each reference, so 30 files with 2
// references each would give 2^30.
const maxRoots = 1000

// inspector walks the kustomizations as kustomize does. It refuses programs, endless builds, and references out of the
// repository. If kustomize's own message suffices, it reports no error.
type inspector struct {
	fs      *treeFS
	app     rollout.App
	plan    plan
	roots   int
	total   shape
	work    int
	checked map[string]shape // by file and field
	sources map[string]bool  // files of generators
	stack   []string         // folders from the app to the current one

	namespace string            // the innermost in stack, or ""
	charted   map[string]string // by kustomization file: the namespace of its charts
}

func inspect(fs *treeFS, app rollout.App) (plan, error) {
	in := &inspector{fs: fs, app: app,
		checked: map[string]shape{}, sources: map[string]bool{}, charted: map[string]string{}}
	dir := app.Path
	real, entry, err := fs.resolve(unroot(path.Clean(dir)))
	if err != nil || entry.Kind != rollout.Dir {
		return in.plan, orMissing(err, &rollout.InvalidError{File: dir, Msg: "is not a folder of this commit",
			Fix: "point the app's path at a kustomization"})
	}
	if err := in.chartApp(); err != nil {
		return in.plan, err
	}
	if err = in.enter(real, referrer{}); err == nil {
		in.useOneVersion()
	}
	return in.plan, err
}

// ownVersions match each version of gitrollout's documents. A target has group and version in separate fields.
var ownVersions = rollout.Mapped(rollout.Versions("Rollout"), func(version string) *regexp.Regexp {
	return regexp.MustCompile(regexp.QuoteMeta(version) + `|\bversion\W+` + path.Base(version) + `\b`)
})

// useOneVersion converts gitrollout's documents if they have several apiVersions, such as in a vendored base and its
// patches. Kustomize applies a patch only to an equal apiVersion. If one conversion fails, all documents stay
// unchanged, with a warning.
func (in *inspector) useOneVersion() {
	files := map[string][]byte{}
	for key := range in.checked { // other files, such as a ConfigMap's, have no documents
		file, _, _ := strings.Cut(key, "\x00")
		if data, err := in.fs.ReadFile(path.Join(mount, file)); err == nil {
			files[file] = data // also files without the group, because a patch's target may omit the group
		}
	}
	all := slices.Collect(maps.Values(files))
	for i, version := range ownVersions {
		isIn := func(data []byte) bool { // a target of the old version may lack the group
			return version.Match(data) && (i > 0 || bytes.Contains(data, []byte(ownGroup)))
		}
		if !slices.ContainsFunc(all, isIn) {
			return
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		made, err := convert.File(files[file])
		if err == nil && in.sources[file] && !bytes.Equal(made, files[file]) {
			err = errors.New("is also the file of a generator")
		}
		if err != nil {
			in.warn("%s %v; the app has several versions of gitrollout's documents, and each patch applies to one", file, err)
			return
		}
		files[file] = made
	}
	maps.Copy(in.fs.made, files)
}

func (in *inspector) warn(format string, args ...any) {
	in.plan.warnings = append(in.plan.warnings, fmt.Sprintf(format, args...))
}

func orMissing(err error, missing *rollout.InvalidError) error {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return missing
}

type referrer struct {
	file  string
	dir   string
	field string
}

func (r referrer) at(format string, args ...any) referrer {
	r.field = fmt.Sprintf(format, args...)
	return r
}

func (r referrer) below(field string) referrer {
	r.field = strings.TrimPrefix(r.field+"."+field, ".")
	return r
}

func (r referrer) invalid(fix, format string, args ...any) *rollout.InvalidError {
	return &rollout.InvalidError{File: r.file, Field: r.field, Msg: fmt.Sprintf(format, args...), Fix: fix}
}

func (in *inspector) enter(dir string, from referrer) error {
	if in.roots++; in.roots > maxRoots {
		return from.invalid("refer to each base only once", "brings the build to more than %d kustomizations", maxRoots)
	}
	for _, visited := range in.stack {
		if visited == dir || dir == "" || strings.HasPrefix(visited, dir+"/") {
			return from.invalid("remove one reference of the cycle", "is a cycle: %s",
				strings.Join(rollout.Mapped(append(in.stack, dir), path.Clean), " -> ")) // the root folder is "."
		}
	}
	in.stack = append(in.stack, dir)
	defer func() { in.stack = in.stack[:len(in.stack)-1] }()

	file, k, err := in.load(dir, from)
	if err != nil {
		return err
	}
	if len(in.stack) == 1 {
		in.plan.file = file
	}
	outer := in.namespace
	in.namespace = cmp.Or(k.Namespace, outer)
	defer func() { in.namespace = outer }()
	before := in.total.objects
	here := referrer{file: file, dir: dir}
	in.plan.openAPI = in.plan.openAPI || len(k.OpenAPI) > 0
	// Kustomize compares each entry of these fields with every object.
	in.total.objects += len(k.Replacements) + len(k.Vars) + len(k.Images) + len(k.Replicas) +
		len(k.Labels) + len(k.ConfigMapGenerator) + len(k.SecretGenerator)
	if err := in.charts(here, k); err != nil {
		return err
	}
	if err := in.references(here, k); err != nil {
		return err
	}
	passed := in.total.objects - before
	if in.work += passed * passed; in.work > maxWork {
		return rollout.Invalidf(file, "", "is too much work for one build: "+
			"%d objects go through %d kustomizations; split the app", passed, in.roots)
	}
	return nil
}

// KustomizationNames are the allowed file names in kustomize's order (konfig's list).
var KustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// load looks up all three file names, as kustomize does, so that the closure records the lookups.
func (in *inspector) load(dir string, from referrer) (string, *types.Kustomization, error) {
	var found []string
	var content []byte
	for _, name := range KustomizationNames {
		p := path.Join(dir, name)
		real, entry, err := in.fs.resolve(p)
		if errors.Is(err, fs.ErrNotExist) || err == nil && entry.Kind != rollout.File {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		if content, err = in.fs.read(real, entry); err != nil {
			return "", nil, err
		}
		found = append(found, p)
	}
	switch {
	case len(found) == 0 && from.file == "":
		return "", nil, rollout.Invalidf(path.Clean(dir), "", "has no kustomization.yaml")
	case len(found) == 0:
		return "", nil, from.invalid("", "names the folder %s, which has no kustomization.yaml", path.Clean(dir))
	case len(found) > 1:
		return "", nil, &rollout.InvalidError{File: found[0], Fix: "keep only one",
			Msg: "is not the only kustomization in its folder; another is " + found[1]}
	}
	if err := in.sound(found[0], "", content); err != nil {
		return "", nil, err
	}
	k := &types.Kustomization{}
	if err := k.Unmarshal(content); err != nil {
		return "", nil, invalidKustomization(found[0], err)
	}
	if _, made := in.fs.made[found[0]]; made && !in.fs.asked[found[0]].found {
		return path.Clean(dir), k, nil
	}
	return found[0], k, nil
}

func invalidKustomization(file string, err error) error {
	text := strings.TrimPrefix(rollout.YAMLText(err.Error()), "invalid Kustomization: ")
	if field, ok := strings.CutPrefix(text, "json: unknown field "); ok {
		return &rollout.InvalidError{File: file, Field: strings.Trim(field, `"`), Msg: "is not a field of a kustomization"}
	}
	return &rollout.InvalidError{File: file, Msg: "is not a valid kustomization: " + strings.TrimPrefix(text,
		"error converting YAML to JSON: ")}
}

func (in *inspector) component(at referrer, p string) error {
	dir, entry, err := in.find(at, p)
	if err != nil {
		return err
	}
	if entry.Kind != rollout.Dir {
		return at.invalid("", "names %s, which is a file, not the folder of a component", p)
	}
	return in.enter(dir, at)
}

func (in *inspector) resource(at referrer, p string) error {
	real, content, isDir, err := in.open(at, p)
	switch {
	case err != nil:
		return err
	case isDir:
		return in.enter(real, at)
	}
	return in.sound(real, "", content)
}
