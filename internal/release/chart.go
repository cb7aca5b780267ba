package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// writeChart packs deploy/chart, with the release's version and image.
func (r *release) writeChart(map[platform]string) error {
	root := filepath.Join(r.source, "deploy", "chart")
	var entries []entry
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		entries = append(entries, entry{"gitrollout/" + filepath.ToSlash(rel), 0o644, data})
		return err
	})
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(r.version, "v")
	for name, change := range map[string][2]string{
		"gitrollout/Chart.yaml":  {"version: 0.0.0 # make release writes the release's version\nappVersion: \"1\" # the image's tag\n", "version: " + number + "\nappVersion: " + r.version + "\n"},
		"gitrollout/values.yaml": {"repository: " + placeholder + "\n", "repository: " + r.image + "\n"},
	} {
		if err := edit(entries, name, change[0], change[1]); err != nil {
			return err
		}
	}
	data, err := tarGzip(entries, r.date)
	if err != nil {
		return err
	}
	return r.write("gitrollout-"+number+".tgz", data)
}

// edit replaces a text in a file of an archive. The file and the text must exist.
func edit(entries []entry, name, old, with string) error {
	for i, e := range entries {
		if e.name == name && strings.Contains(string(e.data), old) {
			entries[i].data = []byte(strings.Replace(string(e.data), old, with, 1))
			return nil
		}
	}
	return errors.New(name + " has no " + old)
}
