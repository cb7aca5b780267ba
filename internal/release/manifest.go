package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// placeholder is the image's name in deploy/kubernetes. A release replaces this name.
const placeholder = "registry.example.com/gitrollout"

// writeManifests writes install.yaml, which kustomize builds from deploy/kubernetes with the release's image.
func (r *release) writeManifests(map[platform]string) error {
	files := filesys.MakeFsInMemory()
	dir := filepath.Join(r.source, "deploy", "kubernetes")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if err := files.WriteFile("/base/"+e.Name(), data); err != nil {
			return err
		}
	}
	overlay, err := yaml.Marshal(types.Kustomization{
		Resources: []string{"../base"},
		Images:    []types.Image{{Name: placeholder, NewName: r.image, NewTag: r.version}},
	})
	if err != nil {
		return err
	}
	if err := files.WriteFile("/release/kustomization.yaml", overlay); err != nil {
		return err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/release")
	if err != nil {
		return fmt.Errorf("install.yaml: %w", err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return fmt.Errorf("install.yaml: %w", err)
	}
	about := fmt.Sprintf("# gitrollout %s: run kubectl apply -f install.yaml, and create a Secret with the URL of the repository:\n"+
		"#   kubectl -n gitrollout create secret generic gitrollout --from-literal=repo=URL --from-file=token\n", r.version)
	return r.write("install.yaml", append([]byte(about), text...))
}
