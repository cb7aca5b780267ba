package scaffold

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/render/chart"
	"gitrollout.dev/gitrollout/rollout"
)

// Given is an entry for a folder that Argo CD or Flux deploys.
type Given struct {
	File  string // the file with the Argo CD or Flux object
	Entry        // without Needs
	Lost  []string

	postBuild postBuild
	release   bool // a HelmRelease
	as        string
	object    string
	cluster   string     // the name and address of the destination
	of        sourceRef  // the Flux source object with the folder
	chart     *elsewhere // an external chart; nil for a folder of the repository
	files     []string   // value files, relative to the chart; a leading / means the repository's root
}

func (g *Given) at(dir string) {
	if g.Path = dir; g.Name == path.Base(dir) {
		g.Name = ""
	}
	if g.Helm == nil {
		return
	}
	g.Helm.ValueFiles = strings.Join(rollout.Mapped(g.files, func(f string) string {
		if path.IsAbs(f) {
			return relative(dir, f[1:])
		}
		return f
	}), "\n")
}

type application struct {
	Metadata struct{ Name string } `json:"metadata"`
	Spec     struct {
		Source      argoSource                               `json:"source"`
		Sources     []argoSource                             `json:"sources"`
		Destination struct{ Namespace, Server, Name string } `json:"destination"`
	} `json:"spec"`
}

var fixedRevision = regexp.MustCompile(`^(v?[0-9]+(\.[0-9]+)+.*|[0-9a-f]{40})$`)

type argoSource struct {
	RepoURL, Chart, Path string
	Revision             string `json:"targetRevision"`
	Directory            *rollout.Directory
	Kustomize, Plugin    map[string]any
	Helm                 struct {
		ReleaseName, Values string
		ValueFiles          []string
		ValuesObject        map[string]any
		FileParameters      []any
		SkipCRDs            bool
		Parameters          []struct{ Name, Value string }
	}
}

func applicationIn(file, text string) (all []Given) {
	var a application
	if yaml.Unmarshal([]byte(text), &a) != nil {
		return nil // Argo CD reports the error
	}
	for _, source := range append(a.Spec.Sources, a.Spec.Source) {
		if source.Path+source.Chart == "" {
			continue
		}
		to := a.Spec.Destination
		g := Given{File: file, object: a.Metadata.Name,
			cluster: to.Name + " " + strings.TrimSuffix(to.Server, path.Ext(to.Server)), // .dev is no environment
			Entry:   Entry{Path: path.Clean(source.Path), Namespace: to.Namespace, Directory: source.Directory}}
		if source.Chart != "" {
			g.Path, g.chart = "", &elsewhere{who: "Application " + a.Metadata.Name, repo: source.RepoURL, name: source.Chart,
				wants: cmp.Or(source.Revision, "*")}
			if !strings.Contains(source.RepoURL, "://") { // Argo CD's address of a registry has no scheme
				g.chart.repo = "oci://" + source.RepoURL
			}
		}
		g.lose("destination.server "+to.Server, to.Server != "" && to.Server != "https://kubernetes.default.svc")
		g.lose("destination.name "+to.Name, to.Name != "" && to.Name != "in-cluster")
		g.lose("source.targetRevision "+source.Revision, source.Chart == "" && fixedRevision.MatchString(source.Revision))
		g.lose("source.kustomize", len(source.Kustomize) > 0)
		g.lose("source.plugin", source.Plugin != nil)
		g.Helm, g.as = g.argoHelm(source, a.Metadata.Name), label(a.Metadata.Name)
		g.at(g.Path)
		all = append(all, g)
	}
	return all
}

func (g *Given) lose(field string, has bool) {
	if has {
		g.Lost = append(g.Lost, field)
	}
}

// argoHelm reads a source's helm block. As in Argo CD, parameters override values, and values override files.
func (g *Given) argoHelm(source argoSource, name string) *rollout.Helm {
	given := source.Helm
	h := &rollout.Helm{ReleaseName: cmp.Or(given.ReleaseName, name), SkipCRDs: given.SkipCRDs}
	for _, f := range given.ValueFiles {
		switch ref, below, _ := strings.Cut(f, "/"); {
		case strings.Contains(f, "://"):
			g.lose("source.helm.valueFiles "+f, true)
		case strings.HasPrefix(ref, "$"):
			g.files = append(g.files, "/"+below)
		default:
			g.files = append(g.files, f)
		}
	}
	values := given.ValuesObject
	if values == nil {
		var err error
		values, err = chart.Merge(nil, []byte(given.Values))
		g.lose("source.helm.values", err != nil)
	}
	for _, p := range given.Parameters {
		if values == nil {
			values = map[string]any{}
		}
		g.lose("source.helm.parameters "+p.Name, strvals.ParseInto(p.Name+"="+p.Value, values) != nil)
	}
	g.lose("source.helm.fileParameters", len(given.FileParameters) > 0)
	h.Values = asJSON(values)
	return h
}

func relative(dir, file string) string {
	to, err := filepath.Rel(dir, file)
	if err != nil {
		return file
	}
	return filepath.ToSlash(to)
}

func asJSON(values map[string]any) string {
	if len(values) == 0 {
		return ""
	}
	data, _ := json.Marshal(values)
	return string(data)
}

type fluxObject struct {
	Metadata struct{ Name, Namespace string } `json:"metadata"`
	Spec     struct {
		URL                         string
		Path, TargetNamespace       string
		SourceRef, ChartRef         sourceRef
		Patches, Images, Components []any
		ValuesFrom, PostRenderers   []any
		PostBuild                   postBuild
		ReleaseName                 string
		Values                      map[string]any
		Decryption                  struct {
			Provider  string
			SecretRef struct{ Name string }
		}
		Chart struct {
			Spec struct {
				Chart, Version string
				ValuesFiles    []string
				SourceRef      sourceRef
			}
		}
	}
}

type postBuild struct {
	Substitute     map[string]string             `json:"substitute"`
	SubstituteFrom []struct{ Kind, Name string } `json:"substituteFrom"`
}

// variables keeps postBuild's inline values, and ConfigMaps with exactly one file. Files for other environments than
// env do not count.
func (g *Given) variables(configMaps map[string][]string, env string) {
	if len(g.postBuild.Substitute)+len(g.postBuild.SubstituteFrom) == 0 {
		return
	}
	var files []string
	for _, from := range g.postBuild.SubstituteFrom {
		of := slices.DeleteFunc(slices.Clone(configMaps[from.Name]), func(file string) bool {
			e := environment(file)
			return from.Kind != "ConfigMap" || e != "" && !isSame(e, env)
		})
		if len(of) == 1 {
			files = append(files, of[0])
		}
		g.lose("spec.postBuild.substituteFrom "+from.Kind+"/"+from.Name, len(of) != 1)
	}
	g.Variables = rollout.NewVariables(g.postBuild.Substitute, files)
}

func fluxKustomizationIn(file, text string) (g Given, is bool) {
	var o fluxObject
	if yaml.Unmarshal([]byte(text), &o) != nil || o.Spec.Path == "" {
		return g, false
	}
	g = Given{File: file, object: o.Metadata.Name, of: o.Spec.SourceRef,
		Entry: Entry{Path: clean(o.Spec.Path), Namespace: o.Spec.TargetNamespace}}
	g.lose("spec.patches", len(o.Spec.Patches) > 0)
	g.lose("spec.images", len(o.Spec.Images) > 0)
	g.lose("spec.components", len(o.Spec.Components) > 0)
	g.postBuild = o.Spec.PostBuild
	g.Decryption = o.Spec.Decryption.SecretRef.Name
	g.lose("spec.decryption", g.Decryption == "" && o.Spec.Decryption.Provider != "")
	return g, true
}

func helmReleaseIn(file, text string) (g Given, is bool) {
	var o fluxObject
	if yaml.Unmarshal([]byte(text), &o) != nil {
		return g, false
	}
	spec := o.Spec.Chart.Spec
	if spec.Chart == "" && o.Spec.ChartRef.Name == "" {
		return g, false
	}
	g = Given{File: file, object: o.Metadata.Name, release: true,
		Entry: Entry{Namespace: cmp.Or(o.Spec.TargetNamespace, o.Metadata.Namespace)}}
	of := "/" // relative to the repository's root
	switch {
	case o.Spec.ChartRef.Name != "":
		g.chart = &elsewhere{of: o.Spec.ChartRef}
	case spec.SourceRef.Kind == "HelmRepository":
		g.chart, of = &elsewhere{of: spec.SourceRef, name: spec.Chart, wants: cmp.Or(spec.Version, "*")}, ""
	default:
		g.Path = clean(spec.Chart)
	}
	if g.chart != nil {
		g.Name, g.chart.who = label(o.Metadata.Name), "HelmRelease "+o.Metadata.Name
	}
	name := o.Metadata.Name // the default release name in Flux begins with the targetNamespace
	if o.Spec.TargetNamespace != "" {
		name = o.Spec.TargetNamespace + "-" + name
	}
	g.Helm = &rollout.Helm{ReleaseName: cmp.Or(o.Spec.ReleaseName, name), Values: asJSON(o.Spec.Values)}
	g.files = append(g.files, rollout.Mapped(spec.ValuesFiles, func(f string) string { return of + clean(f) })...)
	g.at(g.Path)
	g.lose("spec.valuesFrom", len(o.Spec.ValuesFrom) > 0)
	g.lose("spec.postRenderers", len(o.Spec.PostRenderers) > 0)
	return g, true
}

func clean(p string) string { return path.Clean(strings.TrimPrefix(p, "./")) }

// carry copies settings of Argo CD's and Flux's objects into the entries. Objects for env take precedence. The first
// result maps a chart's folder to the entries of its other releases. The notes list settings without an equivalent.
func (s Survey) carry(entries map[string]Entry, chosen []string, env string) (also map[string][]Entry, notes []string) {
	by := map[string][]Given{}
	for _, g := range s.Given {
		by[g.Path] = append(by[g.Path], g)
	}
	also = map[string][]Entry{}
	for _, dir := range slices.Sorted(maps.Keys(by)) {
		if !slices.Contains(chosen, dir) {
			continue
		}
		all := by[dir]
		first, bare := slices.MinFunc(all, func(a, b Given) int { return a.distance(env) - b.distance(env) }), entries[dir]
		entries[dir] = first.complete(bare, s.ConfigMaps, env, &notes)
		for _, g := range all {
			switch {
			case g.File == first.File && g.chart == first.chart && g.as == first.as:
			case (g.chart != nil || g.as != "") && bare.Helm != nil && g.isFor(env):
				g.Name = cmp.Or(g.Name, g.as)
				also[dir] = append(also[dir], g.complete(bare, s.ConfigMaps, env, &notes))
				e := entries[dir]
				e.Name = cmp.Or(e.Name, first.as)
				entries[dir] = e
			case g.File == first.File && !g.isFor(env):
				notes = append(notes, fmt.Sprintf("%s has the settings of %s but none for %s", dir, g.File, g.environment()))
			case g.File != first.File:
				notes = append(notes, fmt.Sprintf("%s has the settings of %s, and %s is left out", dir, first.File, g.File))
			}
		}
	}
	return also, notes
}

func (g Given) complete(e Entry, configMaps map[string][]string, env string, notes *[]string) Entry {
	g.variables(configMaps, env)
	e.Name, e.Namespace, e.Variables, e.Decryption = g.Name, g.Namespace, g.Variables, g.Decryption
	if e.Decryption != "" {
		*notes = append(*notes, fmt.Sprintf("%s: the keys of its encrypted files must be in Secret %s of namespace %s",
			g.Path, e.Decryption, cmp.Or(e.Namespace, "default")))
	}
	if e.Directory != nil && g.Directory != nil {
		e.Directory = g.Directory
	}
	if e.Helm != nil && g.Helm != nil {
		e.Helm = g.Helm
	}
	if len(g.Lost) > 0 {
		*notes = append(*notes, fmt.Sprintf("%s: settings of %s are not carried over (%s): put them into the folder", g.Path,
			g.File, strings.Join(g.Lost, ", ")))
	}
	return e
}
