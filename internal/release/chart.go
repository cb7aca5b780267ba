package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// writeChart packs deploy/chart, with the release's version and image.
func (r *release) writeChart(map[platform]string) error {
	entries, err := entriesOf(filepath.Join(r.source, "deploy", "chart"), "gitrollout/")
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return strings.HasSuffix(e.name, "/") })
	number := strings.TrimPrefix(r.version, "v")
	for _, change := range [][3]string{
		{"gitrollout/Chart.yaml", "version: 0.0.0 # make release writes the release's version\nappVersion: \"1\" # the image's tag\n", "version: " + number + "\nappVersion: " + r.version + "\n"},
		{"gitrollout/Chart.yaml", `"` + placeholder + `:1"`, `"` + r.image + ":" + r.version + `"`},
		{"gitrollout/values.yaml", "repository: " + placeholder + "\n", "repository: " + r.image + "\n"},
	} {
		if err := edit(entries, change[0], change[1], change[2]); err != nil {
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
