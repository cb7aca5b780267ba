// Package scaffold looks at a repository that gitrollout does not know yet, and writes the files with which it would.
//
// It reads a tree and returns data. Its neighbours: render, which it asks for
// apps and objects; and cmd/gitrollout, which writes what it returns.
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

// Survey is what a repository has.
type Survey struct {
	Kustomizations []Kustomization // sorted by path
	Plain          []string        // folders with workloads among their manifests and without a kustomization, sorted
	NoObjects      []string        // files such as package.json, whose names are those of manifests and which are none
	Flux           []string        // folders that Flux' Kustomizations name
	ArgoCD         []string        // folders that Argo CD's Applications name
	ArgoRollouts   []string        // files with Rollouts of Argo Rollouts
	Charts         []Chart         // sorted by path
	Given          []Given         // what Flux and Argo CD say of folders, by file
	LeftOut        []LeftOut       // what they deploy and the repository does not have

	ConfigMaps map[string][]string // by name, the files that have that ConfigMap and nothing else, sorted

	brought []brought                // the charts that are vendored
	engines []string                 // folders with objects of Flux or Argo CD and without a kustomization
	sources map[sourceRef]fluxSource // the addresses that Flux's objects have
}

// Chart is the folder of a Helm chart.
type Chart struct {
	Path    string
	Library bool     // for others only
	Values  []string // the names of its files of values for environments: values-prod.yaml
}

// Kustomization is one folder that kustomize can build.
type Kustomization struct {
	Path      string
	Component bool     // part of others only
	Uses      []string // the folders that it refers to
	Engine    string   // whose own objects it holds: Flux, Argo CD; "" for an app
}

// limits of a look: what is deeper or more is not looked at.
const (
	maxDepth = 8
	maxFiles = 20_000
)

// skipped are folders that hold no manifests of the repository's own.
var skipped = []string{".git", ".gitrollout", ".github", "node_modules", "vendor", "testdata"}

// Look reads a tree.
func Look(tree rollout.Tree) (Survey, error) {
	l := &looker{tree: tree}
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

// chart notes the chart in a folder that has these entries.
func (l *looker) chart(dir string, main rollout.Entry, entries []rollout.Entry) error {
	data, err := l.tree.ReadBlob(main.ID)
	if err != nil {
		return fmt.Errorf("read %s: %w", path.Join(dir, main.Name), err)
	}
	var head struct {
		Type string `json:"type"`
	}
	_ = yaml.Unmarshal(data, &head) // one that is no YAML cannot be rendered, which says why
	c := Chart{Path: dir, Library: head.Type == "library"}
	for _, e := range entries {
		if e.Kind == rollout.File && environmentValues.MatchString(e.Name) {
			c.Values = append(c.Values, e.Name)
		}
	}
	l.found.Charts = append(l.found.Charts, c)
	return nil
}

// readKustomization reads which folders a kustomization refers to.
func readKustomization(dir string, data []byte) *Kustomization {
	var k struct {
		Kind       string   `json:"kind"`
		Resources  []string `json:"resources"`
		Bases      []string `json:"bases"`
		Components []string `json:"components"`
		HelmCharts []struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"helmCharts"`
		HelmGlobals struct {
			ChartHome string `json:"chartHome"`
		} `json:"helmGlobals"`
	}
	out := &Kustomization{Path: dir}
	if yaml.Unmarshal(data, &k) != nil {
		return out // gitrollout validate says what is wrong with it
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

// head is as much of an object as a look needs.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// runsPods reports whether an object is of a kind of which a plain folder has one if it is an app.
func (h head) runsPods() bool {
	_, is := rollout.WorkloadOf(rollout.Object{"apiVersion": h.APIVersion, "kind": h.Kind}.Ref())
	return is || h.Kind == "CronJob" || h.Kind == "Job" || h.Kind == "Pod"
}

// file notes what a manifest is of, and returns which engine it belongs to and whether it has a workload.
func (l *looker) file(name string, data []byte) (engine string, workload bool) {
	var kinds []string
	var last head
	for _, text := range strings.Split("\n"+string(data), "\n---") {
		var h head
		var doc any
		switch err := yaml.Unmarshal([]byte(strings.TrimPrefix(text, " ")), &doc); {
		case err != nil || doc == nil:
			continue // if it is a manifest with a mistake, the app cannot be rendered, which says so
		case yaml.Unmarshal([]byte(strings.TrimPrefix(text, " ")), &h) != nil, h.APIVersion == "", h.Kind == "":
			l.found.NoObjects = append(l.found.NoObjects, name)
			continue
		}
		kinds, last = append(kinds, h.Kind), h
		group, _, _ := strings.Cut(h.APIVersion, "/")
		workload = workload || h.runsPods()
		if group == "argoproj.io" && h.Kind == "Rollout" {
			workload = true
			l.found.ArgoRollouts = append(l.found.ArgoRollouts, name)
		}
		whose := engineOf(group, h.Kind)
		engine = cmp.Or(whose, engine)
		switch whose {
		case flux:
			l.flux(name, text, h.Kind)
		case argoCD:
			l.argoCD(name, text, h)
		}
	}
	if len(kinds) == 1 && kinds[0] == "ConfigMap" {
		if l.found.ConfigMaps == nil {
			l.found.ConfigMaps = map[string][]string{}
		}
		l.found.ConfigMaps[last.Metadata.Name] = append(l.found.ConfigMaps[last.Metadata.Name], name)
	}
	return engine, workload
}

// Those who deploy from Git, too.
const flux, argoCD = "Flux", "Argo CD"

// engineOf is whose own object one of that kind is, "" for nobody's.
func engineOf(group, kind string) string {
	switch {
	case strings.HasSuffix(group, ".toolkit.fluxcd.io"):
		return flux
	case group == "argoproj.io" && slices.Contains([]string{"Application", "ApplicationSet", "AppProject"}, kind):
		return argoCD
	}
	return ""
}

// flux notes what an object of Flux's says of folders.
func (l *looker) flux(file, text, kind string) {
	switch kind {
	case "Kustomization":
		if g, is := fluxKustomizationIn(file, text); is {
			l.found.Flux, l.found.Given = append(l.found.Flux, g.Path), append(l.found.Given, g)
		}
	case "HelmRelease":
		if g, is := helmReleaseIn(file, text); is {
			l.found.Given = append(l.found.Given, g)
		}
	case "HelmRepository", "OCIRepository", "GitRepository":
		var o fluxObject
		if yaml.Unmarshal([]byte(text), &o) == nil && o.Spec.URL != "" {
			if l.found.sources == nil {
				l.found.sources = map[sourceRef]fluxSource{}
			}
			l.found.sources[sourceRef{kind, o.Metadata.Name}] = fluxSource{file, o.Spec.URL}
		}
	}
}

// argoCD notes what an object of Argo CD's says of folders.
func (l *looker) argoCD(file, text string, h head) {
	switch h.Kind {
	case "Application":
		for _, g := range applicationIn(file, text) {
			l.found.Given = append(l.found.Given, g)
			if g.chart == nil {
				l.found.ArgoCD = append(l.found.ArgoCD, g.Path)
			}
		}
	case "ApplicationSet":
		l.found.LeftOut = append(l.found.LeftOut, LeftOut{file, "ApplicationSet " + h.Metadata.Name +
			" is not read: what it deploys is listed by its folders, with patterns such as apps/*"})
	}
}

// roots are the kustomizations that are built by themselves: nobody refers to
// them, and they hold no engine's own objects.
func (s Survey) roots() []string {
	used := s.used()
	for _, k := range s.Kustomizations { // whatever an engine builds is built by itself
		if slices.Contains(s.Flux, k.Path) || slices.Contains(s.ArgoCD, k.Path) {
			delete(used, k.Path)
		}
	}
	var roots []string
	for _, k := range s.Kustomizations {
		if !used[k.Path] && !k.Component && k.Engine == "" && k.Path != "" {
			roots = append(roots, k.Path)
		}
	}
	return roots
}

// used are the folders that kustomizations refer to.
func (s Survey) used() map[string]bool {
	used := map[string]bool{}
	for _, k := range s.Kustomizations {
		for _, u := range k.Uses {
			used[u] = true
		}
	}
	return used
}

// plain are the folders of manifests that are apps by themselves, and how each is to be read: no chart's, and nothing
// that a kustomization has or refers to. What is below one belongs to it, unless a kustomization is.
func (s Survey) plain() map[string]rollout.Directory {
	apps := map[string]rollout.Directory{}
	for _, dir := range s.Plain {
		taken := dir == "" || slices.ContainsFunc(s.Charts, func(c Chart) bool { return holds(c.Path, dir) })
		below := false
		for _, k := range s.Kustomizations {
			taken = taken || holds(k.Path, dir) && k.Path != "" ||
				slices.ContainsFunc(k.Uses, func(used string) bool { return holds(dir, used) || holds(used, dir) })
			below = below || holds(dir, k.Path)
		}
		for above, d := range apps {
			taken = taken || d.Recurse && holds(above, dir)
		}
		if taken {
			continue
		}
		more := func(other string) bool { return other != dir && holds(dir, other) }
		d := rollout.Directory{Recurse: !below && slices.ContainsFunc(s.Plain, more)}
		d.Exclude = s.noObjects(dir, d.Recurse)
		apps[dir] = d
	}
	return apps
}

// noObjects is the pattern of the files that are no objects in a folder that is read as manifests, "" for none.
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

// charts are the charts that are apps by themselves: none of another one's, of a kustomization's, and none for others
// only. They have the values of the first of the environments for which they have some.
func (s Survey) charts(environments ...string) map[string]rollout.Helm {
	apps := map[string]rollout.Helm{}
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
		apps[c.Path] = h
	}
	return apps
}
