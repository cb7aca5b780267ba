package main

import "sigs.k8s.io/yaml"

// writeKrew writes the manifest of kubectl gitrollout for `kubectl krew install --manifest`, in the format of
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest. The manifest refers to the archives.
func (r *release) writeKrew(map[platform]string) error {
	var platforms []object
	for _, of := range r.platforms {
		sum, err := r.sum(r.archiveName(of))
		if err != nil {
			return err
		}
		platforms = append(platforms, object{
			"selector": object{"matchLabels": object{"os": of.os, "arch": of.arch}},
			"uri":      r.downloads + "/" + r.archiveName(of), "sha256": sum,
			"files": []object{{"from": programName(of), "to": "."}, {"from": "LICENSE", "to": "."}},
			"bin":   programName(of),
		})
	}
	text, err := yaml.Marshal(object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin",
		"metadata": object{"name": "gitrollout"},
		"spec": object{
			"version": r.version, "homepage": homepage,
			"shortDescription": description,
			"description":      "Shows and steers the releases of gitrollout, which reconciles a Git repository with a cluster.\n",
			"platforms":        platforms,
		},
	})
	if err != nil {
		return err
	}
	return r.write("gitrollout.krew.yaml", text)
}
