package vendoring

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// From adds the external sources of a kustomization, and of Flux and Argo CD objects, to vendor.yaml. In the
// kustomization, it replaces each address by the folder that Update fills. The objects and the field repo of helmCharts
// stay unchanged. If an entry cannot be rewritten, From writes nothing.
func From(dir *os.Root) (said []string, err error) {
	objects, err := engineObjects(dir)
	if err != nil {
		return nil, err
	}
	known, head, err := vendorYAML(dir)
	if err != nil {
		return nil, err
	}
	f := &from{known: known, before: len(known)}
	switch err := f.kustomization(dir); {
	case errors.Is(err, fs.ErrNotExist) && len(objects) == 0:
		return nil, fmt.Errorf("there is no kustomization.yaml in %s, and no object of Flux or Argo CD", dir.Name())
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	leftOut := f.engines(objects)
	if len(leftOut) > 0 && len(f.known) == 0 {
		return nil, leftOut[0]
	}
	f.said = append(f.said, rollout.Mapped(leftOut, func(err error) string { return "left out " + err.Error() })...)
	if len(f.known) == f.before {
		return f.said, nil
	}
	added := f.known[f.before:]
	for _, s := range added {
		if s.Git != nil && s.Git.Path == "." {
			s.Git.Path = ""
		}
		if s.OCI != nil && s.OCI.Tag != "" {
			s.OCI.Semver = ""
		}
	}
	data, err := yaml.Marshal(added)
	if err == nil {
		data = append(head, data...)
		_, err = rollout.ParseVendor(rollout.VendorFile, data)
	}
	if err == nil {
		err = dir.WriteFile(rollout.VendorFile, data, 0o644)
	}
	if err == nil && f.file != "" {
		err = dir.WriteFile(f.file, []byte(strings.Join(f.lines, "")), 0o644)
	}
	return f.said, err
}

func (f *from) kustomization(dir *os.Root) (err error) {
	var file string
	var text []byte
	for _, file = range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if text, err = dir.ReadFile(file); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	var doc kyaml.Node
	if kyaml.Unmarshal(text, &doc) != nil || len(doc.Content) != 1 || doc.Content[0].Kind != kyaml.MappingNode {
		return &rollout.InvalidError{File: file, Msg: "cannot be read", Fix: "write it as a mapping of YAML"}
	}
	f.file, f.lines = file, strings.SplitAfter(string(text), "\n")
	for _, field := range []string{"resources", "bases", "components", "patches", "patchesJson6902",
		"patchesStrategicMerge", "crds", "configurations", "replacements", "openapi", "configMapGenerator",
		"secretGenerator", "generators", "transformers", "validators", "helmCharts"} {
		if err := f.references(field, valueAt(doc.Content[0], field)); err != nil {
			return err
		}
	}
	return f.charts(text)
}

func (f *from) references(at string, n *kyaml.Node) error {
	switch n.Kind {
	case kyaml.ScalarNode:
		return f.reference(at, n)
	case kyaml.SequenceNode:
		for i, item := range n.Content {
			if err := f.references(fmt.Sprintf("%s[%d]", at, i), item); err != nil {
				return err
			}
		}
	case kyaml.MappingNode:
		for _, field := range []string{"path", "files", "env", "envs", "valuesFile", "additionalValuesFiles"} {
			if err := f.references(at+"."+field, valueAt(n, field)); err != nil {
				return err
			}
		}
	}
	return nil
}

func vendorYAML(dir *os.Root) (known []rollout.VendorSource, head []byte, err error) {
	head, err = dir.ReadFile(rollout.VendorFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Appendf(nil, "apiVersion: %s\nkind: Vendor\nsources:\n", rollout.APIVersion), nil
	}
	if err == nil {
		known, err = rollout.ParseVendor(rollout.VendorFile, head)
	}
	if at := bytes.LastIndex(head, []byte("\nsources:\n- ")); err == nil && at < 0 {
		err = &rollout.InvalidError{File: rollout.VendorFile, Msg: "has a sources list that gitrollout cannot append to",
			Fix: "write sources last in the file, as a list whose entries each begin on a line with -"}
	}
	if len(head) > 0 && head[len(head)-1] != '\n' {
		head = append(head, '\n')
	}
	return known, head, err
}

func valueAt(n *kyaml.Node, field string) *kyaml.Node {
	if found := kyaml.NewRNode(n).Field(field); found != nil {
		return found.Value.YNode()
	}
	return &kyaml.Node{}
}

type from struct {
	file  string // "" without a kustomization
	lines []string
	known []rollout.VendorSource
	said  []string

	before int // number of known sources before From
}

func (f *from) reference(at string, n *kyaml.Node) error {
	entry := n.Value
	if key, source, keyed := strings.Cut(entry, "="); keyed && !strings.ContainsAny(key, ":/?") {
		entry = source
	}
	refuse := func(msg, fix string) error {
		return &rollout.InvalidError{File: f.file, Field: at, Msg: entry + " " + msg, Fix: fix}
	}
	if strings.ContainsAny(entry, "\n{") || !isRemote(entry) {
		return nil
	}
	repo, ref, below := remote(entry)
	file := rawFile.FindStringSubmatch(rawHost.ReplaceAllString(entry, "https://github.com/$1/raw/"))
	if file != nil {
		repo, ref, below = file[1], file[2], file[3]
	}
	top, _, inFolder := strings.Cut(below, "/") // fetch the whole top folder: bases often use sibling folders
	switch {
	case file != nil && !inFolder:
		top = ""
	case file == nil && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(path.Join(repo, below))):
		return refuse("is not a folder of a Git repository", "download the file, and write its path here")
	case ref == "":
		return refuse("names no tag, branch or commit", "append ?ref=TAG")
	}
	into := f.gitFolder(rollout.VendorGit{URL: repo, Ref: ref, Path: path.Clean(top)})
	to := path.Join(into, strings.TrimPrefix(below, top))
	line := &f.lines[n.Line-1]
	if strings.Count(*line, entry) != 1 {
		return refuse("cannot be replaced", "write it in a separate line")
	}
	*line = strings.Replace(*line, entry, to, 1)
	f.said = append(f.said, fmt.Sprintf("%s: %s is %s now", f.file, at, to))
	return nil
}

func (f *from) gitFolder(g rollout.VendorGit) string {
	name := strings.TrimSuffix(path.Base(strings.ReplaceAll(g.URL, ":", "/")), ".git")
	if g.Path != "." {
		name += "-" + g.Path
	}
	return f.folder(rollout.VendorSource{Git: &g}, name)
}

// folder returns the folder of s. If s is not a known Git source, it adds s with a new folder.
func (f *from) folder(s rollout.VendorSource, name string) string {
	s.Into = path.Join("vendor", name)
	for n := 2; ; n++ {
		k, taken := rollout.Find(f.known, func(k rollout.VendorSource) bool { return k.Into == s.Into })
		switch {
		case !taken:
			f.known = append(f.known, s)
			return s.Into
		case k.Git != nil && s.Git != nil && *k.Git == *s.Git:
			return s.Into
		}
		s.Into = path.Join("vendor", fmt.Sprint(name, "-", n))
	}
}

func (f *from) charts(text []byte) error {
	var k struct {
		Globals struct{ ChartHome string } `json:"helmGlobals"`
		Charts  []rollout.VendorChart      `json:"helmCharts"`
	}
	if err := yaml.Unmarshal(text, &k); err != nil {
		return &rollout.InvalidError{File: f.file, Msg: "cannot be read: " + rollout.YAMLText(err.Error()), Fix: "correct it"}
	}
	for i, c := range k.Charts {
		if c.Repo == "" {
			continue
		}
		into := path.Clean(cmp.Or(k.Globals.ChartHome, "charts"))
		at := fmt.Sprintf("helmCharts[%d]", i)
		switch {
		case c.Version == "":
			return rollout.Invalidf(f.file, at+".version", "is missing").WithFix("name the version that runs")
		case into == ".." || strings.HasPrefix(into, "../") || path.IsAbs(into):
			return &rollout.InvalidError{File: f.file, Field: "helmGlobals.chartHome", Msg: into + " is not below this folder",
				Fix: "write vendor.yaml into a folder above, by hand"}
		case slices.ContainsFunc(f.known, func(s rollout.VendorSource) bool { return isChart(s, c) && !s.Chart.Flat }):
			continue
		}
		f.known = append(f.known, rollout.VendorSource{Chart: &c, Into: into})
		f.said = append(f.said, fmt.Sprintf("%s: %s will be in %s", f.file, at, path.Join(into, c.Name+"-"+c.Version)))
	}
	return nil
}

func isChart(s rollout.VendorSource, c rollout.VendorChart) bool {
	if s.Chart == nil {
		return false
	}
	c.Flat, c.Provenance = s.Chart.Flat, s.Chart.Provenance
	return *s.Chart == c
}

// hosts matches addresses that kustomize accepts without a scheme.
var hosts = regexp.MustCompile(`(?i)^(www\.)?(github\.com|gitlab\.com|bitbucket\.org)/`)

func isRemote(entry string) bool {
	return strings.Contains(entry, "://") || strings.HasPrefix(entry, "git::") || strings.HasPrefix(entry, "git@") ||
		hosts.MatchString(entry)
}

var (
	rawHost = regexp.MustCompile(`^https://raw\.githubusercontent\.com/([^/]+/[^/]+)/`)
	rawFile = regexp.MustCompile(`^(https://[^/]+/.+?)/(?:-/)?(?:raw|blob)/(?:refs/(?:heads|tags)/)?([^/]+)/([^?]+)`)
)

// remote splits a remote address as kustomize does.
func remote(entry string) (repo, ref, below string) {
	entry, query, _ := strings.Cut(strings.TrimPrefix(entry, "git::"), "?")
	if q, err := url.ParseQuery(query); err == nil {
		ref = q.Get("ref") + q.Get("version")
	}
	scheme, rest, hasScheme := strings.Cut(entry, "://")
	if !hasScheme {
		scheme, rest = "", entry
	}
	if scheme == "" && hosts.MatchString(rest) {
		scheme = "https"
	}
	parts := strings.Split(strings.ReplaceAll(rest, "github.com:", "github.com:/"), "/")
	switch before, after, is := strings.Cut(rest, "//"); {
	case is:
		rest, below = before, after
	case strings.Contains(rest, ".git/"):
		rest, below, _ = strings.Cut(rest, ".git/")
		rest += ".git"
	case strings.Contains(parts[0], "github.com") && len(parts) > 3:
		rest, below = strings.ReplaceAll(strings.Join(parts[:3], "/"), ":/", ":"), strings.Join(parts[3:], "/")
	}
	if rest = strings.TrimSuffix(rest, "/"); scheme != "" {
		rest = scheme + "://" + rest
	}
	return rest, ref, strings.Trim(below, "/")
}
