package vendoring

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// engineObject is an object of Flux or Argo CD. Its spec depends on its kind.
type engineObject struct {
	file             string
	APIVersion, Kind string
	Metadata         struct{ Name string } `json:"metadata"`
	Spec             json.RawMessage       `json:"spec"`
}

func (o engineObject) group() string { group, _, _ := strings.Cut(o.APIVersion, "/"); return group }

type sourceRef struct{ Kind, Name string }

// engineGroups lists the API groups of objects that name external sources.
var engineGroups = []string{
	"argoproj.io", "helm.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io",
}

// ownSource is the GitRepository that flux bootstrap creates for the repository itself.
const ownSource = "flux-system"

var betweenDocuments = regexp.MustCompile(`(?m)^---.*$`)

// engineObjects returns the objects of Flux and Argo CD in and below a folder. It skips text that is not YAML.
func engineObjects(dir *os.Root) (all []engineObject, err error) {
	err = fs.WalkDir(dir.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{".git", "charts", "vendor", "node_modules"}, e.Name()):
			return fs.SkipDir
		case !e.Type().IsRegular() || path.Ext(name) != ".yaml" && path.Ext(name) != ".yml":
			return nil
		}
		data, err := dir.ReadFile(name)
		if err != nil {
			return err
		}
		for _, text := range betweenDocuments.Split(string(data), -1) {
			o := engineObject{file: name}
			if yaml.Unmarshal([]byte(text), &o) == nil && slices.Contains(engineGroups, o.group()) {
				all = append(all, o)
			}
		}
		return nil
	})
	return all, err
}

// engines adds the external sources of HelmReleases, Flux Kustomizations and Applications. It does not change the
// objects, because "gitrollout init" reads them. It returns an error for each source that vendor.yaml cannot express.
func (f *from) engines(objects []engineObject) (leftOut []error) {
	for _, o := range objects {
		var add []rollout.VendorSource
		var err error
		switch {
		case o.Kind == "HelmRelease" && o.group() == "helm.toolkit.fluxcd.io":
			add, err = helmRelease(o, objects)
		case o.Kind == "Kustomization" && o.group() == "kustomize.toolkit.fluxcd.io":
			add, err = fluxKustomization(o, objects)
		case o.Kind == "Application" && o.group() == "argoproj.io":
			add, err = application(o)
		}
		if err != nil {
			leftOut = append(leftOut, rollout.Invalidf(o.file, "", "%s %s %v", o.Kind, o.Metadata.Name, err).
				WithFix("write the entry of vendor.yaml by hand: docs/vendor.md"))
		}
		for _, s := range add {
			if into, isNew := f.add(s); isNew {
				who := fmt.Sprintf("%s: %s %s", o.file, o.Kind, o.Metadata.Name)
				f.said = append(f.said, fmt.Sprintf("%s: %s will be in %s", who, s.Wants(), into))
			}
		}
	}
	return leftOut
}

func (f *from) add(s rollout.VendorSource) (into string, isNew bool) {
	before := len(f.known)
	switch {
	case s.Git != nil:
		into = f.folder(*s.Git)
	case slices.ContainsFunc(f.known, func(k rollout.VendorSource) bool { return k.Wants() == s.Wants() }):
	case s.Chart != nil && slices.ContainsFunc(f.known, func(k rollout.VendorSource) bool { return isChart(k, *s.Chart) }):
	case s.Chart != nil: // gitrollout init writes the folder's name, so the name must not contain the version
		s.Chart.Flat, s.Into = true, "charts"
		isThere := func(k rollout.VendorSource) bool {
			return k.Chart != nil && k.Chart.Flat && k.Chart.Name == s.Chart.Name && k.Into == s.Into
		}
		for n := 2; slices.ContainsFunc(f.known, isThere); n++ { // give each further version of the chart its own folder
			s.Into = path.Join("charts", fmt.Sprint(n))
		}
		into = path.Join(s.Into, s.Chart.Name)
		f.known = append(f.known, s)
	default:
		s.Into = path.Join("vendor", path.Base(s.OCI.URL))
		for n := 2; slices.ContainsFunc(f.known, func(k rollout.VendorSource) bool { return k.Into == s.Into }); n++ {
			s.Into = path.Join("vendor", fmt.Sprint(path.Base(s.OCI.URL), "-", n))
		}
		into = s.Into
		f.known = append(f.known, s)
	}
	return into, len(f.known) > before
}

// fluxSource holds the used fields of a HelmRepository, GitRepository or OCIRepository.
type fluxSource struct {
	URL string                                       `json:"url"`
	Ref struct{ Branch, Tag, Semver, Commit string } `json:"ref"`
}

func named(ref sourceRef, objects []engineObject) (s fluxSource, err error) {
	i := slices.IndexFunc(objects, func(o engineObject) bool {
		return o.group() == "source.toolkit.fluxcd.io" && o.Kind == ref.Kind && o.Metadata.Name == ref.Name
	})
	if i < 0 {
		return s, fmt.Errorf("uses %s %s, which is not in this folder; name a folder that has both", ref.Kind, ref.Name)
	}
	if err := json.Unmarshal(objects[i].Spec, &s); err != nil || s.URL == "" {
		return s, fmt.Errorf("uses %s %s, whose url cannot be read", ref.Kind, ref.Name)
	}
	return s, nil
}

// git returns a folder of a GitRepository as a source. It refuses a range of versions.
func (s fluxSource) git(at string) ([]rollout.VendorSource, error) {
	ref := cmp.Or(s.Ref.Commit, s.Ref.Tag, s.Ref.Branch)
	if ref == "" || s.Ref.Semver != "" {
		return nil, errors.New("uses a repository without a tag, a branch or a commit in its ref")
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(path.Clean("/"+at), "/"), "/") // take the top folder, for "../base"
	return []rollout.VendorSource{{Git: &rollout.VendorGit{URL: s.URL, Ref: ref, Path: path.Clean(top)}}}, nil
}

func helmRelease(o engineObject, objects []engineObject) ([]rollout.VendorSource, error) {
	var spec struct {
		Chart struct {
			Spec struct {
				Chart, Version string
				SourceRef      sourceRef `json:"sourceRef"`
			} `json:"spec"`
		} `json:"chart"`
		ChartRef sourceRef `json:"chartRef"`
	}
	if err := json.Unmarshal(o.Spec, &spec); err != nil {
		return nil, errors.New("cannot be read")
	}
	ref, wants := spec.Chart.Spec.SourceRef, spec.Chart.Spec
	if spec.ChartRef.Name != "" {
		ref = spec.ChartRef
	}
	if ref.Kind == "GitRepository" && ref.Name == ownSource || ref.Name == "" { // without a name, the object is a patch
		return nil, nil
	}
	s, err := named(ref, objects)
	if err != nil {
		return nil, err
	}
	c := rollout.VendorChart{Repo: s.URL, Name: wants.Chart, Version: wants.Version}
	switch ref.Kind {
	case "GitRepository":
		return s.git(wants.Chart)
	case "OCIRepository":
		c.Repo, c.Name = path.Split(strings.TrimPrefix(s.URL, "oci://"))
		c.Repo, c.Version = "oci://"+strings.TrimSuffix(c.Repo, "/"), cmp.Or(s.Ref.Semver, s.Ref.Tag)
	}
	c.Version = cmp.Or(c.Version, "*")
	return []rollout.VendorSource{{Chart: &c}}, nil
}

func fluxKustomization(o engineObject, objects []engineObject) ([]rollout.VendorSource, error) {
	var spec struct {
		Path      string    `json:"path"`
		SourceRef sourceRef `json:"sourceRef"`
	}
	if err := json.Unmarshal(o.Spec, &spec); err != nil {
		return nil, errors.New("cannot be read")
	}
	if spec.SourceRef.Kind == "GitRepository" && spec.SourceRef.Name == ownSource {
		return nil, nil
	}
	s, err := named(spec.SourceRef, objects)
	switch {
	case err != nil:
		return nil, err
	case spec.SourceRef.Kind == "OCIRepository" && s.Ref.Tag+s.Ref.Semver == "":
		return nil, errors.New("uses an artifact without a tag or a semver in its ref")
	case spec.SourceRef.Kind == "OCIRepository":
		return []rollout.VendorSource{{OCI: &rollout.VendorOCI{URL: s.URL, Tag: s.Ref.Tag, Semver: s.Ref.Semver}}}, nil
	default:
		return s.git(spec.Path)
	}
}

// application returns the charts of an Application. Its other sources are usually this repository.
func application(o engineObject) (all []rollout.VendorSource, err error) {
	type source struct{ RepoURL, Chart, TargetRevision string }
	var spec struct {
		Source  source   `json:"source"`
		Sources []source `json:"sources"`
	}
	if err := json.Unmarshal(o.Spec, &spec); err != nil {
		return nil, errors.New("cannot be read")
	}
	for _, s := range append(spec.Sources, spec.Source) {
		if s.Chart == "" {
			continue
		}
		if !strings.Contains(s.RepoURL, "://") { // Argo CD writes registries without a scheme
			s.RepoURL = "oci://" + s.RepoURL
		}
		all = append(all, rollout.VendorSource{Chart: &rollout.VendorChart{
			Repo: s.RepoURL, Name: s.Chart, Version: cmp.Or(s.TargetRevision, "*")}})
	}
	return all, nil
}
