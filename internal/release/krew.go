package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// plugin is krew's manifest, https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
type plugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       pluginSpec        `json:"spec"`
}

type pluginSpec struct {
	Version          string           `json:"version"`
	Homepage         string           `json:"homepage"`
	ShortDescription string           `json:"shortDescription"`
	Description      string           `json:"description"`
	Platforms        []pluginPlatform `json:"platforms"`
}

type pluginPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string       `json:"uri"`
	SHA256 string       `json:"sha256"`
	Files  []pluginFile `json:"files"`
	Bin    string       `json:"bin"`
}

type pluginFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// writeKrew writes the manifest of kubectl gitrollout for `kubectl krew install --manifest`. The manifest refers to the archives.
func (r *release) writeKrew(map[platform]string) error {
	p := plugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "gitrollout"},
		Spec: pluginSpec{
			Version: r.version, Homepage: "https://gitrollout.dev/gitrollout",
			ShortDescription: "Progressive delivery from a Git repository",
			Description:      "Shows and steers the releases of gitrollout, which reconciles a Git repository with a cluster.\n",
		},
	}
	for _, of := range r.platforms {
		data, err := os.ReadFile(filepath.Join(r.out, r.archiveName(of)))
		if err != nil {
			return err
		}
		one := pluginPlatform{
			URI: r.downloads + "/" + r.archiveName(of), SHA256: fmt.Sprintf("%x", sha256.Sum256(data)), Bin: programName(of),
			Files: []pluginFile{{programName(of), "."}, {"LICENSE", "."}},
		}
		one.Selector.MatchLabels = map[string]string{"os": of.os, "arch": of.arch}
		p.Spec.Platforms = append(p.Spec.Platforms, one)
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	return r.write("gitrollout.krew.yaml", text)
}
