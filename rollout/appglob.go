package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// AppGlob is an entry of a Config's apps: a pattern for folders of apps, with settings.
type AppGlob struct {
	Path      string     // slash-separated folder; * ? [] match within one segment, as in path.Match
	Name      string     // the app's name; allowed only if Path has no wildcards
	Namespace string     // namespace for namespaced objects that set none; default: "default"
	Prune     bool       // delete the objects of an app whose folder is removed; default: keep them
	Directory *Directory // if set, folders with manifests but no kustomization are also apps
	Helm      *Helm      // if set, folders of charts are also apps
	Variables Variables  // values for ${name} in the apps' objects
	Links     string     // see App.Links
	Tier      int        // lower tiers get changes of shared files first; default 1
	// Decryption is the name of the Secret with the keys for the apps' encrypted files, "" for none.
	Decryption string

	Namespaces       []string // further allowed namespaces; * and ? are wildcards
	ClusterResources []string // allowed cluster-scoped kinds: group/Kind, or Kind for the core group
	ServiceAccount   string   // account that applies objects: namespace/name, or name in Namespace; "": default

	field  string // apps[i], for errors
	file   string
	limits Limits // zero for the defaults
	kube   kubernetesFile

	workloads string // encoded by PartitionedText
}

type appGlobFile struct {
	Path      string     `json:"path" needs:"name the folder of a kustomization" like:"folder"`
	Name      string     `json:"name" is:"label"`
	Namespace string     `json:"namespace" is:"label" default:"default"`
	Prune     bool       `json:"prune"`
	Directory *Directory `json:"directory"`
	Helm      *helmFile  `json:"helm"`

	Substitute     map[string]string    `json:"substitute"`
	SubstituteFrom []substituteFromFile `json:"substituteFrom" max:"20" fix:"put them into fewer files"`

	Decryption decryptionFile `json:"decryption"`

	Links map[string]string `json:"links"`

	Tier int `json:"tier" default:"1" min:"1" max:"100" fix:"write 1 for the first apps, and up to 100 for later apps"`

	Namespaces       []string `json:"namespaces" max:"100" is:"namespaces" fix:"use wildcards, such as shop-*"`
	ClusterResources []string `json:"clusterResources" max:"100" is:"groupKind" fix:"use wildcards, such as example.com/*"`
	ServiceAccount   string   `json:"serviceAccount" is:"account"`
}

type decryptionFile struct {
	Provider  string        `json:"provider" needs:"write provider: sops" oneOf:"sops"`
	SecretRef secretRefFile `json:"secretRef" needs:"name the Secret that has the keys: secretRef: {name: sops-age}"`
}

type secretRefFile struct {
	Name string `json:"name" needs:"name a Secret in the app's namespace" is:"object"`
}

type substituteFromFile struct {
	File string `json:"file" needs:"name a .env file or a ConfigMap's manifest, from the repository's root" like:"folder"`
}

type helmFile struct {
	ReleaseName  string     `json:"releaseName" is:"label"`
	ValueFiles   []string   `json:"valueFiles" max:"100"`
	ValuesObject helmValues `json:"valuesObject"`
	SkipCRDs     bool       `json:"skipCrds"`
}

// helmValues keeps null, which removes a chart's default.
type helmValues map[string]any

func (v *helmValues) ReadValue(raw any) error {
	given, is := raw.(map[string]any)
	if !is {
		return &InvalidError{Msg: "is not a mapping", Fix: "write values as in the chart's values.yaml"}
	}
	*v = given
	return nil
}

func (helmValues) Shape() map[string]any { return map[string]any{"type": "object"} }

// linkTemplate allows no placeholder in the host.
var linkTemplate = regexp.MustCompile(
	`^https?://[^\s{}/?#@]+([/?#][^\s{}]*(\{(app|namespace|query)\}[^\s{}]*)*)?$`)

func encodeLinks(at place, links map[string]string) (string, error) {
	for _, title := range slices.Sorted(maps.Keys(links)) {
		if !linkTemplate.MatchString(links[title]) {
			return "", at.invalid("links["+title+"]", "write https://host/path; {app}, {namespace} and {query} are "+
				"placeholders", "%q is not an address", Redact(links[title]))
		}
	}
	if len(links) == 0 {
		return "", nil
	}
	data, _ := json.Marshal(links)
	return string(data), nil
}

func parseGlob(file, field string, raw appGlobFile) (*AppGlob, error) {
	g := &AppGlob{Path: strings.TrimSuffix(raw.Path, "/"), Name: raw.Name, Namespace: raw.Namespace, Prune: raw.Prune,
		Directory: raw.Directory, Namespaces: raw.Namespaces, ClusterResources: raw.ClusterResources,
		ServiceAccount: raw.ServiceAccount, Decryption: raw.Decryption.SecretRef.Name, Tier: raw.Tier,
		field: field, file: file}
	at := place{file, field}
	if strings.HasPrefix(g.Path, "/") {
		return nil, at.invalid("path", "paths are relative to the repository's root", "%q begins with a slash", raw.Path)
	}
	for _, segment := range strings.Split(g.Path, "/") {
		_, err := path.Match(segment, "")
		switch {
		case segment == "" || segment == "." || segment == "..":
			return nil, at.invalid("path", "name folders from the repository's root", "%q has the segment %q", raw.Path, segment)
		case strings.Contains(segment, "**"):
			return nil, at.invalid("path", "write one * for each level", "%q has **, and a * matches within one folder",
				raw.Path)
		case err != nil:
			return nil, at.invalid("path", "", "%q is not a pattern: %v", raw.Path, err)
		}
	}
	if d := g.Directory; d != nil {
		for name, pattern := range map[string]string{"include": d.Include, "exclude": d.Exclude} {
			if _, err := MatchesAny(pattern, ""); err != nil {
				return nil, at.invalid("directory."+name, "write one pattern, as *.md, or several, as {*.md,ci/*}",
					"%q is not a pattern: %v", pattern, err)
			}
		}
	}
	var err error
	if g.Links, err = encodeLinks(at, raw.Links); err != nil {
		return nil, err
	}
	if g.Name != "" && IsGlob(g.Path) {
		return nil, at.invalid("name", "leave it out: each app is named by the text that the wildcards match",
			"%q would be the name of every app that %s matches", g.Name, g.Path)
	}
	if raw.Substitute != nil || raw.SubstituteFrom != nil {
		for _, name := range slices.Sorted(maps.Keys(raw.Substitute)) {
			if !IsVariable(name) {
				return nil, at.invalid("substitute", BadVariable, "%q is not a valid variable name", name)
			}
		}
		files := Mapped(raw.SubstituteFrom, func(from substituteFromFile) string { return from.File })
		g.Variables = NewVariables(raw.Substitute, files)
	}
	if h := raw.Helm; h != nil {
		g.Helm = &Helm{ReleaseName: h.ReleaseName, ValueFiles: strings.Join(h.ValueFiles, "\n"), SkipCRDs: h.SkipCRDs}
		if h.ValuesObject != nil {
			values, err := json.Marshal(h.ValuesObject)
			if err != nil {
				return nil, at.invalid("helm.valuesObject", "", "cannot be written as JSON: %v", err)
			}
			g.Helm.Values = string(values)
		}
	}
	return g, nil
}

// IsGlob reports whether a path has wildcards.
func IsGlob(p string) bool { return strings.ContainsAny(p, `*?[\`) }

// App returns the app in a matching folder. The app's name is Name or, without Name, the last part of dir. If Path has
// wildcards, the name is dir's parts at the wildcards, joined by "-".
func (g AppGlob) App(dir string) (App, error) {
	name := cmp.Or(g.Name, path.Base(dir))
	if IsGlob(g.Path) {
		var parts []string
		got := strings.Split(dir, "/")
		for i, segment := range strings.Split(g.Path, "/") {
			if IsGlob(segment) && i < len(got) {
				parts = append(parts, got[i])
			}
		}
		name = strings.Join(parts, "-")
	}
	if !formats["label"].Pattern.MatchString(name) {
		return App{}, &InvalidError{File: g.file, Field: g.field + ".path",
			Msg: fmt.Sprintf("%s would be the app %q, which is not a name", dir, name),
			Fix: "rename the folder (lower-case letters, digits and -, at most 63), or give it its own entry with a name"}
	}
	app := App{Name: name, Path: dir, Namespace: g.Namespace,
		Namespaces: strings.Join(g.Namespaces, " "), ClusterResources: strings.Join(g.ClusterResources, " "),
		Variables: g.Variables, Decryption: g.Decryption, Links: g.Links,
		Limits: g.limits, Kubernetes: g.kube.Version, APIVersions: strings.Join(g.kube.APIVersions, " "),
		Workloads: g.workloads}
	if g.Helm != nil {
		app.Helm = *g.Helm
	}
	if g.Directory != nil {
		app.Plain, app.Directory = true, *g.Directory
	}
	return app.As(g.ServiceAccount), nil
}

// EntryOf returns the first entry that matches the app's folder, or nil.
func (c *Config) EntryOf(app App) *AppGlob {
	for i, glob := range c.Apps {
		if is, err := path.Match(glob.Path, app.Path); err == nil && is {
			return &c.Apps[i]
		}
	}
	return nil
}

// MatchesAny reports whether a pattern matches a path or the path's last element. "{a,b}" means a or b.
func MatchesAny(pattern, name string) (is bool, err error) {
	if inner, opened := strings.CutPrefix(pattern, "{"); opened {
		if pattern, opened = strings.CutSuffix(inner, "}"); !opened {
			return false, path.ErrBadPattern
		}
	}
	for one := range strings.SplitSeq(pattern, ",") {
		whole, err := path.Match(one, name)
		if err != nil {
			return false, err
		}
		last, _ := path.Match(one, path.Base(name))
		is = is || one != "" && (whole || last)
	}
	return is, nil
}
