package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/render/chart"
	"gitrollout.dev/gitrollout/rollout"
)

// A chart's objects have these annotations only until kustomize has finished.
const (
	noteHook      = "chart.gitrollout.dev/hook"      // Helm's hook events, comma-separated
	noteNamespace = "chart.gitrollout.dev/namespace" // the release's namespace, the default for the objects
)

// charts adds the rendered charts' objects to the resources, so that patches apply to them.
func (in *inspector) charts(here referrer, k *types.Kustomization) error {
	old, globals := types.SplitHelmParameters(k.HelmChartInflationGenerator)
	if k.HelmGlobals != nil {
		globals = *k.HelmGlobals
	}
	if before, are := in.charted[here.file]; are && before != in.namespace {
		return here.at("helmCharts").invalid("give the charts a namespace",
			"is used for the namespaces %q and %q, but its charts set no namespace", before, in.namespace)
	}
	if len(k.HelmCharts)+len(old) == 0 && k.HelmGlobals == nil {
		return nil
	}
	if globals.ConfigHome != "" {
		in.warn("%s: the configHome of helm is ignored: no helm program runs", here.file)
	}
	for i, c := range slices.Concat(k.HelmCharts, old) {
		at := here.at("helmCharts[%d]", i)
		if before := len(k.HelmCharts); i >= before {
			at = here.at("helmChartInflationGenerator[%d]", i-before)
		}
		if err := in.chart(at, globals, c); err != nil {
			return err
		}
		if c.Namespace == "" {
			in.charted[here.file] = in.namespace
		}
		k.Resources = append(k.Resources, at.field)
	}
	k.HelmCharts, k.HelmGlobals, k.HelmChartInflationGenerator = nil, nil, nil
	content, err := yaml.Marshal(k)
	if err != nil {
		return fmt.Errorf("write %s without charts: %w", here.file, err)
	}
	in.fs.made[here.file] = content
	return nil
}

func (in *inspector) chart(at referrer, globals types.HelmGlobals, c types.HelmChart) error {
	if c.Debug || c.Devel {
		in.warn("%s: debug and devel of %s are ignored: no helm program runs", at.file, at.field)
	}
	switch {
	case c.Name == "":
		return at.below("name").invalid("name the chart's folder", "is missing")
	case c.ReleaseName == "" && c.NameTemplate == "":
		return at.below("releaseName").invalid("write one",
			"is missing, so kustomize would generate another name at each build")
	case c.ReleaseName != "" && c.NameTemplate != "":
		return at.below("nameTemplate").invalid("keep only one", "conflicts with releaseName")
	case !slices.Contains([]string{"", "merge", "override", "replace"}, c.ValuesMerge):
		return at.below("valuesMerge").invalid("", "%q must be merge, override or replace", c.ValuesMerge)
	}
	home := cmp.Or(globals.ChartHome, types.HelmDefaultHome)
	if c.Version != "" && c.Repo != "" {
		home = path.Join(home, c.Name+"-"+c.Version)
	}
	p := path.Join(home, c.Name)
	if joined := path.Join(at.dir, p); !path.IsAbs(p) && !strings.HasPrefix(joined, "../") {
		_, entry, err := in.fs.resolve(unroot(joined))
		if errors.Is(err, fs.ErrNotExist) || err == nil && entry.Kind != rollout.Dir {
			return at.below("name").invalid("commit the output of helm pull --untar there: charts are read only from Git",
				"the chart %s is not in this commit: there is no folder %s", c.Name, joined)
		}
	}
	dir, _, err := in.find(at.below("name"), p)
	if err != nil {
		return err
	}
	values, err := in.chartValues(at, dir, c)
	if err != nil {
		return err
	}
	r := chart.Release{Name: c.ReleaseName, Namespace: cmp.Or(c.Namespace, in.namespace, in.app.Namespace),
		Values: values, KubeVersion: cmp.Or(c.KubeVersion, in.app.Kubernetes), CRDs: c.IncludeCRDs,
		APIVersions: append(strings.Fields(in.app.APIVersions), c.ApiVersions...)}
	if c.NameTemplate != "" {
		if r.Name, err = chart.ReleaseName(c.NameTemplate); err != nil {
			return at.below("nameTemplate").invalid("write a releaseName", "%v", err)
		}
	}
	return in.inflate(path.Join(at.dir, at.field), dir, r, c.SkipHooks)
}

func (in *inspector) chartValues(at referrer, dir string, c types.HelmChart) (map[string]any, error) {
	file, content, err := path.Join(dir, "values.yaml"), []byte(nil), error(nil)
	if c.ValuesFile != "" {
		file, content, err = in.file(at.below("valuesFile"), c.ValuesFile)
	} else if real, entry, found := in.fs.resolve(file); found == nil {
		content, err = in.fs.read(real, entry)
	}
	if err != nil {
		return nil, err
	}
	if len(c.ValuesInline) > 0 {
		if content, err = inlineValues(content, c); err != nil {
			return nil, at.below("valuesInline").invalid("", "cannot be merged with %s: %s", file, rollout.YAMLText(err.Error()))
		}
	}
	values, err := mergeValues(nil, file, content)
	for i, p := range c.AdditionalValuesFiles {
		if err != nil {
			break
		}
		if file, content, err = in.file(at.below(fmt.Sprintf("additionalValuesFiles[%d]", i)), p); err == nil {
			values, err = mergeValues(values, file, content)
		}
	}
	return values, err
}

func mergeValues(values map[string]any, file string, content []byte) (map[string]any, error) {
	merged, err := chart.Merge(values, content)
	if err != nil {
		return nil, rollout.Invalidf(file, "", "%s", rollout.YAMLText(err.Error()))
	}
	return merged, nil
}

func inlineValues(content []byte, c types.HelmChart) ([]byte, error) {
	values := c.ValuesInline
	if c.ValuesMerge != "replace" {
		file, err := kyaml.Parse(string(content))
		if err != nil {
			return nil, err
		}
		inline, err := kyaml.FromMap(values)
		if err != nil {
			return nil, err
		}
		from, to := inline, file
		if c.ValuesMerge == "merge" {
			from, to = file, inline
		}
		merged, err := merge2.Merge(from, to, kyaml.MergeOptions{})
		if err != nil {
			return nil, err
		}
		if values, err = merged.Map(); err != nil {
			return nil, err
		}
	}
	return yaml.Marshal(values)
}

func (in *inspector) chartApp() error {
	dir := in.app.Path
	is, err := isKustomization(in.fs.ask, dir)
	if err != nil || is {
		return err
	}
	if is, err = isFile(in.fs.ask, path.Join(dir, chart.Main)); err != nil || !is {
		return err
	}
	at := referrer{file: dir, dir: dir}
	var values map[string]any
	for i, p := range in.app.Helm.Files() {
		real, entry, err := in.find(at.at("helm.valueFiles[%d]", i), p)
		if err != nil {
			return err
		}
		if entry.Kind != rollout.File {
			return at.at("helm.valueFiles[%d]", i).invalid("", "%s is not a file", p)
		}
		content, err := in.fs.read(real, entry)
		if err == nil {
			values, err = mergeValues(values, real, content)
		}
		if err != nil {
			return err
		}
	}
	if values, err = mergeValues(values, dir, []byte(in.app.Helm.Values)); err != nil {
		return err
	}
	r := chart.Release{Name: cmp.Or(in.app.Helm.ReleaseName, in.app.Name), Namespace: in.app.Namespace, Values: values,
		KubeVersion: in.app.Kubernetes, APIVersions: strings.Fields(in.app.APIVersions), CRDs: !in.app.Helm.SkipCRDs}
	const rendered = chart.Main + " (rendered)"
	if err := in.inflate(path.Join(dir, rendered), dir, r, false); err != nil {
		return err
	}
	content, err := json.Marshal(map[string][]string{"resources": {rendered}})
	in.fs.made[path.Join(dir, KustomizationNames[0])] = content
	return err
}

func (in *inspector) inflate(into, dir string, r chart.Release, skipHooks bool) error {
	files, err := in.fs.chartFiles(dir)
	if err != nil {
		return err
	}
	r.Draw = in.fs.draw
	rendered, err := chart.Render(files, r)
	if err != nil {
		return within(dir, err)
	}
	for _, c := range rendered.ByChance {
		if c.Hook != "" && skipHooks || strings.TrimSuffix(c.Hook, "-success") == "test" {
			continue
		}
		c.Why.File = path.Join(dir, c.Why.File)
		in.fs.chances = append(in.fs.chances, c)
	}
	for _, w := range rendered.Warnings {
		in.warn("%s: %s", dir, w)
	}
	var all strings.Builder
	var total shape
	for _, d := range rendered.Documents {
		if d.Hook != "" && skipHooks {
			continue
		}
		_, inChart, _ := strings.Cut(d.Source, "/")
		for _, text := range splitDocuments(d.Text) {
			file := path.Join(dir, inChart)
			text, measured, err := in.measured(file, text)
			if err != nil {
				return err
			}
			total.add(measured)
			if text, err = in.noted(text, d.Hook, r.Namespace); err != nil {
				return rollout.Invalidf(file, "", "renders to a document that is not an object: %s", rollout.YAMLText(err.Error()))
			}
			all.WriteString(text)
			if all.Len() > maxOutput {
				return tooLarge(dir)
			}
		}
	}
	in.checked[into+"\x00"] = total
	in.fs.made[into] = []byte(all.String())
	return nil
}

func within(dir string, err error) error {
	if invalid := new(rollout.InvalidError); errors.As(err, &invalid) {
		invalid.File = path.Join(dir, invalid.File)
	}
	return err
}

func (in *inspector) noted(text, hook, namespace string) (string, error) {
	notes := map[string]string{}
	if len(in.stack) > 0 {
		notes[konfig.HelmGeneratedAnnotation] = "true"
	}
	if hook != "" {
		notes[noteHook] = hook
	}
	if namespace != in.app.Namespace {
		notes[noteNamespace] = namespace
	}
	if len(notes) == 0 {
		return "---\n" + text + "\n", nil
	}
	node, err := kyaml.Parse(text)
	if err != nil || node.IsNilOrEmpty() {
		return "", nil
	}
	objects := []*kyaml.RNode{node}
	if items := node.Field("items"); items != nil && strings.HasSuffix(node.GetKind(), "List") {
		if objects, err = items.Value.Elements(); err != nil {
			return "", err
		}
	}
	for _, o := range objects {
		for _, key := range slices.Sorted(maps.Keys(notes)) {
			if err := o.PipeE(kyaml.SetAnnotation(key, notes[key])); err != nil {
				return "", err
			}
		}
	}
	text, err = node.String()
	return "---\n" + text, err
}

func (f *treeFS) chartFiles(dir string) (files []chart.File, err error) {
	var helmignore []byte
	real, entry, err := f.resolve(path.Join(dir, ".helmignore"))
	if err == nil && entry.Kind == rollout.File {
		helmignore, err = f.read(real, entry)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	isIgnored, err := chart.Ignored(helmignore)
	if err != nil {
		return nil, within(dir, err)
	}
	seen := 0
	var folder func(real, below string) error // follows symlinks: the path is "real" in the tree, "below" in the chart
	folder = func(real, below string) error {
		entries, err := f.tree.ReadDir(real)
		if err != nil {
			f.failed = fmt.Errorf("list %s: %w", real, err)
			return f.failed
		}
		f.listed[real] = true
		for _, e := range entries {
			name, at := path.Join(below, e.Name), path.Join(real, e.Name)
			if e.Kind == rollout.Symlink || e.Kind == rollout.Submodule {
				if at, e, err = f.resolve(at); err != nil {
					return orMissing(err, &rollout.InvalidError{File: path.Join(dir, name), Msg: "is a symlink to nothing"})
				}
			}
			if isIgnored(name, e.Kind == rollout.Dir) {
				continue
			}
			if seen++; seen > chart.MaxFiles {
				return &rollout.InvalidError{File: dir, Msg: fmt.Sprintf("is a chart of more than %d files and folders",
					chart.MaxFiles), Fix: "name unneeded files in .helmignore"}
			}
			if e.Kind == rollout.Dir {
				err = folder(at, name)
			} else {
				var data []byte
				data, err = f.read(at, e)
				files = append(files, chart.File{Name: name, Data: data})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	err = folder(dir, "")
	return files, err
}

func takeNote(o rollout.Object, key string) string {
	notes := o.Map("metadata", "annotations")
	note, noted := notes[key].(string)
	if delete(notes, key); noted && len(notes) == 0 {
		delete(o.Map("metadata"), "annotations")
	}
	return note
}
