// Package scaffold proposes files for a repository that does not use gitrollout yet. It reads a tree and returns data;
// cmd/gitrollout writes the files.
package scaffold

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// Survey describes a repository.
type Survey struct {
	Kustomizations []Kustomization // sorted by path
	Plain          []string        // sorted folders without a kustomization, with manifests that run pods
	NoObjects      []string        // files without Kubernetes objects, such as package.json
	Flux           []string        // folders of Flux's Kustomizations
	ArgoCD         []string        // folders of Argo CD's Applications
	ArgoRollouts   []string        // files with Argo's Rollouts
	Charts         []Chart         // sorted by path
	Given          []Given         // folders that Flux or Argo CD deploys, in the tree's order
	LeftOut        []LeftOut       // files that cannot be apps, such as jsonnet

	ConfigMaps map[string][]string // by name: files that contain only this ConfigMap

	brought []brought                // charts in vendor.yaml
	engines []string                 // folders without a kustomization, with Flux's or Argo CD's objects
	sources map[sourceRef]fluxSource // with addresses
}

// Chart is a Helm chart's folder.
type Chart struct {
	Path    string
	Library bool
	Values  []string // value files of environments, such as values-prod.yaml
}

// Kustomization is a folder that kustomize can build.
type Kustomization struct {
	Path      string
	Component bool     // it cannot be built alone
	Uses      []string // folders
	Engine    string   // Flux or Argo CD if there are objects of this tool; "" for an app
}

const (
	maxDepth = 8
	maxFiles = 20_000
)

var skipped = []string{".git", ".gitrollout", ".github", "node_modules", "vendor", "testdata"}

// Look surveys a tree.
func Look(tree rollout.Tree) (Survey, error) {
	l := &looker{tree: tree}
	l.found.ConfigMaps, l.found.sources = map[string][]string{}, map[sourceRef]fluxSource{}
	found := &l.found
	err := l.folder("", 0)
	slices.SortFunc(found.Kustomizations, func(a, b Kustomization) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(found.Charts, func(a, b Chart) int { return strings.Compare(a.Path, b.Path) })
	for _, files := range found.ConfigMaps {
		slices.Sort(files)
	}
	for _, list := range []*[]string{&found.Plain, &found.NoObjects, &found.Flux, &found.ArgoCD, &found.ArgoRollouts} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return l.found, err
}

type looker struct {
	tree  rollout.Tree
	found Survey
	files int
}

func (l *looker) folder(dir string, depth int) error {
	entries, err := l.tree.ReadDir(dir)
	if err != nil {
		return err
	}
	engine, runs := "", false
	var here *Kustomization
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case e.Kind == rollout.Dir:
			if depth < maxDepth && !slices.Contains(skipped, e.Name) {
				if err := l.folder(name, depth+1); err != nil {
					return err
				}
			}
		case e.Kind != rollout.File || l.files >= maxFiles:
		case path.Ext(e.Name) == ".jsonnet":
			l.found.LeftOut = append(l.found.LeftOut, LeftOut{name,
				"is jsonnet, which is not run here: have CI run it, and commit the manifests that it prints"})
		case e.Name == "Chart.yaml":
			if err := l.chart(dir, e, entries); err != nil {
				return err
			}
		case slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(e.Name)), e.Name == "Kustomization":
			l.files++
			data, err := l.tree.ReadBlob(e.ID)
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			if e.Name == rollout.VendorFile {
				l.found.vendored(name, data)
				continue
			}
			if slices.Contains(render.KustomizationNames, e.Name) {
				here = readKustomization(dir, data)
				continue
			}
			whose, workload := l.file(name, data)
			engine, runs = cmp.Or(whose, engine), runs || workload
		}
	}
	switch {
	case here != nil:
		here.Engine = engine
		l.found.Kustomizations = append(l.found.Kustomizations, *here)
	case runs && engine == "":
		l.found.Plain = append(l.found.Plain, dir)
	case engine != "":
		l.found.engines = append(l.found.engines, dir)
	}
	return nil
}

var environmentValues = regexp.MustCompile(`^values[-.].+\.ya?ml$`)

func (l *looker) chart(dir string, main rollout.Entry, entries []rollout.Entry) error {
	data, err := l.tree.ReadBlob(main.ID)
	if err != nil {
		return fmt.Errorf("read %s: %w", path.Join(dir, main.Name), err)
	}
	var head struct{ Type string }
	_ = yaml.Unmarshal(data, &head) // the renderer reports invalid YAML
	c := Chart{Path: dir, Library: head.Type == "library"}
	for _, e := range entries {
		if e.Kind == rollout.File && environmentValues.MatchString(e.Name) {
			c.Values = append(c.Values, e.Name)
		}
	}
	l.found.Charts = append(l.found.Charts, c)
	return nil
}

func readKustomization(dir string, data []byte) *Kustomization {
	var k struct {
		Kind                         string
		Resources, Bases, Components []string
		HelmCharts                   []struct{ Name, Version string } `json:"helmCharts"`
		HelmGlobals                  struct{ ChartHome string }       `json:"helmGlobals"`
	}
	out := &Kustomization{Path: dir}
	if yaml.Unmarshal(data, &k) != nil {
		return out // "gitrollout validate" reports the error
	}
	out.Component = k.Kind == "Component"
	for _, r := range slices.Concat(k.Resources, k.Bases, k.Components) {
		if p := path.Join(dir, r); !strings.Contains(r, "://") && !strings.HasPrefix(p, "..") {
			out.Uses = append(out.Uses, p)
		}
	}
	for _, c := range k.HelmCharts {
		home := path.Join(dir, cmp.Or(k.HelmGlobals.ChartHome, "charts"))
		out.Uses = append(out.Uses, path.Join(home, c.Name), path.Join(home, c.Name+"-"+c.Version, c.Name))
	}
	return out
}

type head struct {
	APIVersion, Kind string
	Metadata         struct{ Name string } `json:"metadata"`
}

func (l *looker) file(name string, data []byte) (engine string, workload bool) {
	var kinds []string
	var last head
	for _, text := range strings.Split("\n"+string(data), "\n---") {
		var h head
		var doc any
		switch err := yaml.Unmarshal([]byte(strings.TrimPrefix(text, " ")), &doc); {
		case err != nil || doc == nil:
			continue // the renderer reports the error
		case yaml.Unmarshal([]byte(strings.TrimPrefix(text, " ")), &h) != nil, h.APIVersion == "", h.Kind == "":
			l.found.NoObjects = append(l.found.NoObjects, name)
			continue
		}
		kinds, last = append(kinds, h.Kind), h
		group, _, _ := strings.Cut(h.APIVersion, "/")
		_, is := rollout.WorkloadOf(rollout.Object{"apiVersion": h.APIVersion, "kind": h.Kind}.Ref())
		workload = workload || is || slices.Contains([]string{"CronJob", "Job", "Pod"}, h.Kind)
		if group == "argoproj.io" && h.Kind == "Rollout" {
			workload = true
			l.found.ArgoRollouts = append(l.found.ArgoRollouts, name)
		}
		engine = cmp.Or(engineOf(group, h.Kind), engine)
		l.engineObject(name, text, engineOf(group, h.Kind), h)
	}
	if len(kinds) == 1 && kinds[0] == "ConfigMap" {
		l.found.ConfigMaps[last.Metadata.Name] = append(l.found.ConfigMaps[last.Metadata.Name], name)
	}
	return engine, workload
}

const flux, argoCD = "Flux", "Argo CD"

func engineOf(group, kind string) string {
	switch {
	case strings.HasSuffix(group, ".toolkit.fluxcd.io"):
		return flux
	case group == "argoproj.io" && slices.Contains([]string{"Application", "ApplicationSet", "AppProject"}, kind):
		return argoCD
	}
	return ""
}

func (l *looker) engineObject(file, text, engine string, h head) {
	switch engine + " " + h.Kind {
	case flux + " Kustomization":
		if g, is := fluxKustomizationIn(file, text); is {
			l.found.Flux, l.found.Given = append(l.found.Flux, g.Path), append(l.found.Given, g)
		}
	case flux + " HelmRelease":
		if g, is := helmReleaseIn(file, text); is {
			l.found.Given = append(l.found.Given, g)
		}
	case flux + " HelmRepository", flux + " OCIRepository", flux + " GitRepository":
		var o fluxObject
		if yaml.Unmarshal([]byte(text), &o) == nil && o.Spec.URL != "" {
			l.found.sources[sourceRef{h.Kind, o.Metadata.Name}] = fluxSource{file, o.Spec.URL}
		}
	case argoCD + " Application":
		for _, g := range applicationIn(file, text) {
			l.found.Given = append(l.found.Given, g)
			if g.chart == nil {
				l.found.ArgoCD = append(l.found.ArgoCD, g.Path)
			}
		}
	case argoCD + " ApplicationSet":
		l.found.LeftOut = append(l.found.LeftOut, LeftOut{file, "ApplicationSet " + h.Metadata.Name +
			" is not read: list the folders that it deploys, with patterns such as apps/*"})
	}
}

// roots returns the kustomizations that can be apps.
func (s Survey) roots() (roots []string) {
	used := s.used()
	for _, deployed := range slices.Concat(s.Flux, s.ArgoCD) {
		delete(used, deployed)
	}
	for _, k := range s.Kustomizations {
		if !used[k.Path] && !k.Component && k.Engine == "" && k.Path != "" {
			roots = append(roots, k.Path)
		}
	}
	return roots
}

func (s Survey) used() map[string]bool {
	used := map[string]bool{}
	for _, k := range s.Kustomizations {
		for _, u := range k.Uses {
			used[u] = true
		}
	}
	return used
}

// plain returns an entry, perhaps with subfolders, for each app of plain manifests. It skips folders in a chart or
// kustomization, and folders that a kustomization uses.
func (s Survey) plain() map[string]Entry {
	apps := map[string]Entry{}
	for _, dir := range s.Plain {
		taken := dir == "" || slices.ContainsFunc(s.Charts, func(c Chart) bool { return holds(c.Path, dir) })
		below := false
		for _, k := range s.Kustomizations {
			taken = taken || holds(k.Path, dir) && k.Path != "" ||
				slices.ContainsFunc(k.Uses, func(used string) bool { return holds(dir, used) || holds(used, dir) })
			below = below || holds(dir, k.Path)
		}
		for above, e := range apps {
			taken = taken || e.Directory.Recurse && holds(above, dir)
		}
		if taken {
			continue
		}
		more := func(other string) bool { return other != dir && holds(dir, other) }
		d := rollout.Directory{Recurse: !below && slices.ContainsFunc(s.Plain, more)}
		d.Exclude = s.noObjects(dir, d.Recurse)
		apps[dir] = Entry{Directory: &d}
	}
	return apps
}

func (s Survey) noObjects(dir string, recurse bool) string {
	var names []string
	for _, file := range s.NoObjects {
		if name, is := strings.CutPrefix(file, dir+"/"); is && (recurse || !strings.Contains(name, "/")) {
			names = append(names, name)
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return "{" + strings.Join(names, ",") + "}"
}

func holds(dir, name string) bool {
	return dir == "" || name == dir || strings.HasPrefix(name, dir+"/")
}

func (s Survey) charts(environments ...string) map[string]Entry {
	apps := map[string]Entry{}
	for _, c := range s.Charts {
		inOther := func(other Chart) bool { return other.Path != c.Path && holds(other.Path, c.Path) }
		taken := c.Library || c.Path == "" || slices.ContainsFunc(s.Charts, inOther)
		for _, k := range s.Kustomizations {
			taken = taken || k.Path != "" && holds(k.Path, c.Path) || slices.Contains(k.Uses, c.Path)
		}
		if taken {
			continue
		}
		h := rollout.Helm{}
		for _, env := range environments {
			for _, name := range c.Values {
				if h.ValueFiles == "" && env != "" && strings.HasPrefix(name[len("values-"):], env+".") {
					h.ValueFiles = name
				}
			}
		}
		apps[c.Path] = Entry{Helm: &h}
	}
	return apps
}
