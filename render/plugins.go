package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// plugin checks an entry of generators, transformers or validators, which is inline YAML or a path. It allows only
// built-in plugins, because other plugins start programs.
func (in *inspector) plugin(at referrer, entry string) error {
	if isInline(entry) {
		return in.configs(at, at.file, at.field, []byte(entry))
	}
	real, content, isDir, err := in.open(at, entry)
	switch {
	case err != nil:
		return err
	case isDir:
		return in.pluginDir(at, real)
	}
	return in.configs(at, real, "", content)
}

// pluginDir checks a kustomization of plugin configurations. It allows only the field "resources", because patches and
// generators could create an unchecked configuration, such as one with a URL.
func (in *inspector) pluginDir(at referrer, dir string) error {
	if in.roots++; in.roots > maxRoots {
		return at.invalid("", "brings the build to more than %d kustomizations", maxRoots)
	}
	file, k, err := in.load(dir, at)
	if err != nil {
		return err
	}
	plain := *k
	plain.TypeMeta, plain.MetaData, plain.Resources = types.TypeMeta{}, nil, nil
	if plain.CheckEmpty() == nil {
		return rollout.Invalidf(file, "", "is a kustomization of plugin configurations, and may have only "+
			"the field resources").
			WithFix("write out the configurations")
	}
	for i, p := range k.Resources {
		here := referrer{file: file, dir: dir}.at("resources[%d]", i)
		if err := in.plugin(here, p); err != nil {
			return err
		}
	}
	return nil
}

func (in *inspector) configs(at referrer, file, field string, content []byte) error {
	if err := in.sound(file, field, content); err != nil {
		return err
	}
	docs, err := decodeDocuments(content)
	if err != nil {
		return rollout.Invalidf(file, field, "is not valid YAML: %s", rollout.YAMLText(err.Error()))
	}
	for _, doc := range docs {
		var config map[string]any
		if err := doc.Decode(&config); err != nil {
			return rollout.Invalidf(file, field, "is not a plugin configuration: %s", rollout.YAMLText(err.Error()))
		}
		if err := in.config(referrer{file: file, dir: at.dir, field: field}, config); err != nil {
			return err
		}
	}
	return nil
}

// decrypts matches plugins for encrypted files, such as ksops.
var decrypts = regexp.MustCompile(`(?i)sops|secret|crypt|vault`)

func (in *inspector) config(at referrer, config map[string]any) error {
	if items, ok := config["items"].([]any); ok {
		for _, item := range items {
			if inner, ok := item.(map[string]any); ok {
				if err := in.config(at, inner); err != nil {
					return err
				}
			}
		}
		return nil
	}
	o := rollout.Object(config)
	kind, version, annotations := o.Kind(), o.APIVersion(), o.Map("metadata", "annotations")
	fix := "use a built-in transformer (apiVersion: builtin), or commit the output of the plugin"
	if decrypts.MatchString(version + " " + kind) {
		fix = "encrypt the Secret with SOPS, list the file in resources, and set decryption in the app's entry of " +
			"config.yaml (docs/encrypted-secrets.md); never commit the Secret in clear text"
	}
	for _, key := range []string{"config.kubernetes.io/function", "config.k8s.io/function"} {
		if _, ok := annotations[key]; ok {
			return at.invalid(fix, "%s is a KRM function (%s): rendering runs no programs and no containers", kind, key)
		}
	}
	if version != "builtin" {
		return at.invalid(fix, "%s %s is not built into kustomize: rendering runs no exec and no Go plugins", version, kind)
	}
	if strings.HasPrefix(kind, "HelmChart") {
		return at.invalid("name the chart in helmCharts of the kustomization", "%s is refused: kustomize would run the "+
			"helm program", kind)
	}
	return in.configPaths(at, config)
}

// fieldChecks checks plugins' fields that name files or contain patches. Names are in lower case, because Go's JSON
// decoder ignores case.
var fieldChecks = map[string]func(in *inspector, at referrer, value string) error{
	"patch": (*inspector).inline, "patches": (*inspector).inline, "jsonop": (*inspector).inline,
	"path": (*inspector).yamlFile, "targetfilepath": (*inspector).yamlFile, "paths": (*inspector).patchText,
	"files": (*inspector).keyed, "env": (*inspector).data, "envs": (*inspector).data,
}

func (in *inspector) configPaths(at referrer, config map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		lower := strings.ToLower(key)
		switch value := config[key].(type) {
		case string:
			if err := in.configPath(at.below(key), lower, value); err != nil {
				return err
			}
		case []any:
			for i, element := range value {
				item := at.below(fmt.Sprintf("%s[%d]", key, i))
				text, _ := element.(string)
				err := in.configPath(item, lower, text)
				if err == nil && lower == "replacements" {
					err = in.configPaths(item, asMap(element))
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (in *inspector) configPath(at referrer, key, value string) error {
	check, is := fieldChecks[key]
	if !is || value == "" {
		return nil
	}
	return check(in, at, value)
}

func decodeDocuments(content []byte) (docs []*kyaml.Node, err error) {
	for _, text := range splitDocuments(string(content)) {
		doc, err := kyaml.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		if doc.YNode() != nil {
			docs = append(docs, doc.YNode())
		}
	}
	return docs, nil
}
