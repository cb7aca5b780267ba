package vendoring

import (
	"cmp"
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

type engineObject struct {
	file             string
	err              error
	APIVersion, Kind string
	Metadata         struct{ Name string }
	Spec             struct {
		URL, Path           string
		Ref                 struct{ Branch, Tag, Semver, Commit string }
		SourceRef, ChartRef sourceRef
		Chart               struct {
			Spec struct {
				Chart, Version string
				SourceRef      sourceRef
			}
		}
		Source  argoSource
		Sources []argoSource
	}
}

type argoSource struct{ RepoURL, Chart, TargetRevision string }

func (o engineObject) group() string { group, _, _ := strings.Cut(o.APIVersion, "/"); return group }

type sourceRef struct{ Kind, Name string }

var engineGroups = []string{
	"argoproj.io", "helm.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io",
}

// ownSource is the name of the GitRepository that flux bootstrap creates for the repository itself.
const ownSource = "flux-system"

var betweenDocuments = regexp.MustCompile(`(?m)^---.*$`)

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
			if o.err = yaml.Unmarshal([]byte(text), &o); slices.Contains(engineGroups, o.group()) {
				all = append(all, o)
			}
		}
		return nil
	})
	return all, err
}

var engineKinds = map[string]func(o engineObject, objects []engineObject) ([]rollout.VendorSource, error){
	"helm.toolkit.fluxcd.io/HelmRelease":        helmRelease,
	"kustomize.toolkit.fluxcd.io/Kustomization": fluxKustomization,
	"argoproj.io/Application":                   application,
}

// engines adds the external sources of HelmReleases, Flux Kustomizations and Applications. These objects stay
// unchanged, because "gitrollout init" reads them. leftOut has an error for each source that vendor.yaml cannot
// express.
func (f *from) engines(objects []engineObject) (leftOut []error) {
	for _, o := range objects {
		read, is := engineKinds[o.group()+"/"+o.Kind]
		if !is {
			continue
		}
		add, err := read(o, objects)
		if o.err != nil {
			add, err = nil, errors.New("cannot be read")
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
		into = f.gitFolder(*s.Git)
	case slices.ContainsFunc(f.known, func(k rollout.VendorSource) bool { return k.Wants() == s.Wants() }):
	case s.Chart != nil && slices.ContainsFunc(f.known, func(k rollout.VendorSource) bool { return isChart(k, *s.Chart) }):
	case s.Chart != nil: // the folder's name has no version, because "gitrollout init" writes the name into an entry
		s.Chart.Flat, s.Into = true, "charts"
		isThere := func(k rollout.VendorSource) bool {
			return k.Chart != nil && k.Chart.Flat && k.Chart.Name == s.Chart.Name && k.Into == s.Into
		}
		for n := 2; slices.ContainsFunc(f.known, isThere); n++ { // each version gets a folder
			s.Into = path.Join("charts", fmt.Sprint(n))
		}
		into = path.Join(s.Into, s.Chart.Name)
		f.known = append(f.known, s)
	default:
		into = f.folder(s, path.Base(s.OCI.URL))
	}
	return into, len(f.known) > before
}

func named(ref sourceRef, objects []engineObject) (engineObject, error) {
	source, found := rollout.Find(objects, func(o engineObject) bool {
		return o.group() == "source.toolkit.fluxcd.io" && o.Kind == ref.Kind && o.Metadata.Name == ref.Name
	})
	switch {
	case !found:
		return source, fmt.Errorf("uses %s %s, which is not in this folder; name a folder that has both",
			ref.Kind, ref.Name)
	case source.err != nil || source.Spec.URL == "":
		return source, fmt.Errorf("uses %s %s, whose url cannot be read", ref.Kind, ref.Name)
	}
	return source, nil
}

func (o engineObject) git(at string) ([]rollout.VendorSource, error) {
	ref := cmp.Or(o.Spec.Ref.Commit, o.Spec.Ref.Tag, o.Spec.Ref.Branch)
	if ref == "" || o.Spec.Ref.Semver != "" {
		return nil, errors.New("uses a repository without a tag, a branch or a commit in its ref")
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(path.Clean("/"+at), "/"), "/") // for "../base"
	return []rollout.VendorSource{{Git: &rollout.VendorGit{URL: o.Spec.URL, Ref: ref, Path: path.Clean(top)}}}, nil
}

func helmRelease(o engineObject, objects []engineObject) ([]rollout.VendorSource, error) {
	wants := o.Spec.Chart.Spec
	ref := wants.SourceRef
	if o.Spec.ChartRef.Name != "" {
		ref = o.Spec.ChartRef
	}
	if ref.Kind == "GitRepository" && ref.Name == ownSource || ref.Name == "" { // an object without a name is a patch
		return nil, nil
	}
	s, err := named(ref, objects)
	if err != nil {
		return nil, err
	}
	c := rollout.VendorChart{Repo: s.Spec.URL, Name: wants.Chart, Version: wants.Version}
	switch ref.Kind {
	case "GitRepository":
		return s.git(wants.Chart)
	case "OCIRepository":
		c.Repo, c.Name = path.Split(strings.TrimPrefix(s.Spec.URL, "oci://"))
		c.Repo, c.Version = "oci://"+strings.TrimSuffix(c.Repo, "/"), cmp.Or(s.Spec.Ref.Semver, s.Spec.Ref.Tag)
	}
	c.Version = cmp.Or(c.Version, "*")
	return []rollout.VendorSource{{Chart: &c}}, nil
}

func fluxKustomization(o engineObject, objects []engineObject) ([]rollout.VendorSource, error) {
	if o.Spec.SourceRef.Kind == "GitRepository" && o.Spec.SourceRef.Name == ownSource {
		return nil, nil
	}
	s, err := named(o.Spec.SourceRef, objects)
	tag, semver := s.Spec.Ref.Tag, s.Spec.Ref.Semver
	switch {
	case err != nil:
		return nil, err
	case o.Spec.SourceRef.Kind == "OCIRepository" && tag+semver == "":
		return nil, errors.New("uses an artifact without a tag or a semver in its ref")
	case o.Spec.SourceRef.Kind == "OCIRepository":
		return []rollout.VendorSource{{OCI: &rollout.VendorOCI{URL: s.Spec.URL, Tag: tag, Semver: semver}}}, nil
	default:
		return s.git(o.Spec.Path)
	}
}

// application returns an Application's charts. It skips other sources, because these are usually in this repository.
func application(o engineObject, _ []engineObject) (all []rollout.VendorSource, err error) {
	for _, s := range append(o.Spec.Sources, o.Spec.Source) {
		if s.Chart == "" {
			continue
		}
		if !strings.Contains(s.RepoURL, "://") { // Argo CD's registries have no scheme
			s.RepoURL = "oci://" + s.RepoURL
		}
		all = append(all, rollout.VendorSource{Chart: &rollout.VendorChart{
			Repo: s.RepoURL, Name: s.Chart, Version: cmp.Or(s.TargetRevision, "*")}})
	}
	return all, nil
}
