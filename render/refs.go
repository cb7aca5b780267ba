package render

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"gitrollout.dev/gitrollout/rollout"
)

// remotePrefix and remoteQuery match paths that kustomize would clone as Git repositories (internal/git/repospec.go).
var (
	remotePrefix = regexp.MustCompile(`(?i)^\s*(git::|[a-z][a-z0-9+.-]*://|[a-z][a-z0-9-]*@|` +
		`(www\.)?(github\.com|gitlab\.com|bitbucket\.org)[/:]|gh:|oci:)`)
	remoteQuery = regexp.MustCompile(`\?(.*&)?(ref|version|timeout|submodules)=`)
)

// clones matches the fields in which kustomize clones a path that looks remote, even if the path is a file.
var clones = regexp.MustCompile(`^(resources|bases|components|generators|transformers|validators)\b`)

func isInline(entry string) bool {
	return strings.ContainsAny(entry, "\n{") && !remotePrefix.MatchString(entry)
}

func unroot(p string) string {
	if p == "." {
		return ""
	}
	return p
}

func (in *inspector) find(at referrer, p string) (string, rollout.Entry, error) {
	var none rollout.Entry
	joined := path.Join(at.dir, p)
	escapes := joined == ".." || strings.HasPrefix(joined, "../")
	isFile := func() bool {
		if escapes || clones.MatchString(at.field) {
			return false
		}
		_, entry, err := in.fs.resolve(unroot(joined))
		return err == nil && entry.Kind == rollout.File
	}
	u, err := url.Parse(p)
	isWeb := err == nil && (u.Scheme == "http" || u.Scheme == "https") // IsRemoteFile in fileloader.go
	switch {
	case p == "":
		return "", none, at.invalid("", "is empty")
	case path.IsAbs(p):
		return "", none, at.invalid("use a path relative to the kustomization", "%s is an absolute path", p)
	case isWeb, (remotePrefix.MatchString(p) || remoteQuery.MatchString(p)) && !isFile():
		return "", none, at.invalid("vendor it into the repository, and name its path",
			"%s is remote: only files in this commit are rendered", rollout.Redact(rollout.OneLine(p)))
	case escapes:
		return "", none, at.invalid("put the files into the repository", "%s leaves the repository", p)
	}
	real, entry, err := in.fs.resolve(unroot(joined))
	if err == nil {
		return real, entry, nil
	}
	if refused := in.fs.refused; refused != nil {
		in.fs.refused = at.invalid(refused.Fix, "%s is refused: %s %s", p, refused.File, refused.Msg)
		return "", none, in.fs.refused
	}
	return "", none, orMissing(err, at.invalid("", "%s does not exist in this commit", p))
}

func (in *inspector) file(at referrer, p string) (real string, content []byte, err error) {
	real, content, isDir, err := in.open(at, p)
	if isDir {
		err = at.invalid("", "%s is a folder, not a file", p)
	}
	return real, content, err
}

// open finds a folder, or reads a file. Kustomize reads only files below its folder (LoadRestrictionsRootOnly).
func (in *inspector) open(at referrer, p string) (real string, content []byte, isDir bool, err error) {
	real, entry, err := in.find(at, p)
	if err != nil || entry.Kind == rollout.Dir {
		return real, nil, err == nil, err
	}
	if at.dir != "" && !strings.HasPrefix(real, at.dir+"/") {
		return "", nil, false, at.invalid("move the file, or give its folder a kustomization and refer to the folder",
			"%s is outside of the kustomization's folder, and kustomize reads files only from there", p)
	}
	content, err = in.fs.read(real, entry)
	if refused := in.fs.refused; refused != nil && err != nil {
		err = at.invalid(refused.Fix, "%s %s", refused.File, refused.Msg)
	}
	return real, content, false, err
}

func (in *inspector) yamlFile(at referrer, p string) error {
	real, content, err := in.file(at, p)
	if err != nil {
		return err
	}
	return in.sound(real, "", content)
}

func (in *inspector) patchText(at referrer, text string) error {
	if isInline(text) {
		return in.inline(at, text)
	}
	return in.yamlFile(at, text)
}

func (in *inspector) inline(at referrer, text string) error {
	return in.sound(at.file, at.field, []byte(text))
}

func (in *inspector) data(at referrer, p string) error {
	real, _, err := in.file(at, p)
	in.sources[real] = true
	return err
}

func (in *inspector) keyed(at referrer, source string) error {
	if _, after, ok := strings.Cut(source, "="); ok {
		source = after
	}
	return in.data(at, source)
}

func (in *inspector) references(here referrer, k *types.Kustomization) (err error) {
	one := func(check func(referrer, string) error, entry, field string, args ...any) {
		if err == nil {
			err = check(here.at(field, args...), entry)
		}
	}
	list := func(check func(referrer, string) error, field string, entries []string) {
		for i, entry := range entries {
			one(check, entry, "%s[%d]", field, i)
		}
	}
	patches := func(field string, patches []types.Patch) {
		for i, p := range patches {
			if p.Patch != "" {
				one(in.inline, p.Patch, "%s[%d].patch", field, i)
			}
			if p.Path != "" {
				one(in.yamlFile, p.Path, "%s[%d].path", field, i)
			}
		}
	}
	generator := func(kv types.KvPairSources, field string, i int) {
		list(in.keyed, fmt.Sprintf("%s[%d].files", field, i), kv.FileSources)
		envs := kv.EnvSources
		if kv.EnvSource != "" {
			envs = append([]string{kv.EnvSource}, envs...)
		}
		list(in.data, fmt.Sprintf("%s[%d].envs", field, i), envs)
	}
	list(in.resource, "resources", k.Resources)
	list(in.resource, "bases", k.Bases)
	list(in.component, "components", k.Components)
	patches("patches", k.Patches)
	patches("patchesJson6902", k.PatchesJson6902)
	for i, p := range k.PatchesStrategicMerge {
		one(in.patchText, string(p), "patchesStrategicMerge[%d]", i)
	}
	list(in.yamlFile, "crds", k.Crds)
	list(in.yamlFile, "configurations", k.Configurations)
	for i, r := range k.Replacements {
		if r.Path != "" {
			one(in.yamlFile, r.Path, "replacements[%d].path", i)
		}
	}
	if p, ok := k.OpenAPI["path"]; ok {
		one(in.yamlFile, p, "openapi.path")
	}
	for i, g := range k.ConfigMapGenerator {
		generator(g.KvPairSources, "configMapGenerator", i)
	}
	for i, g := range k.SecretGenerator {
		generator(g.KvPairSources, "secretGenerator", i)
	}
	list(in.plugin, "generators", k.Generators)
	list(in.plugin, "transformers", k.Transformers)
	list(in.plugin, "validators", k.Validators)
	return err
}
