package chart

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/ignore"

	"gitrollout.dev/gitrollout/rollout"
)

// File is one file of a chart.
type File struct {
	Name string // slash-separated, relative to the chart's folder
	Data []byte
}

const (
	maxSize  = 20 << 20 // bytes
	MaxFiles = 5_000
)

// Main is the file that makes a folder a chart.
const Main = "Chart.yaml"

// Ignored returns a function that reports whether .helmignore excludes a path of the chart.
func Ignored(helmignore []byte) (func(name string, isDir bool) bool, error) {
	rules, err := ignore.Parse(bytes.NewReader(helmignore))
	if err != nil {
		return nil, invalid(ignore.HelmIgnore, err)
	}
	rules.AddDefaults()
	return func(name string, isDir bool) bool {
		e := tar.Header{Name: name}
		if isDir {
			e.Typeflag = tar.TypeDir
		}
		return rules.Ignore(name, e.FileInfo())
	}, nil
}

// Merge returns the values with a YAML text merged over them.
func Merge(values map[string]any, text []byte) (map[string]any, error) {
	more, err := loader.LoadValues(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("is not valid YAML: %w", err)
	}
	return loader.MergeMaps(values, more), nil
}

func load(files []File) (*helm.Chart, error) {
	all, err := new(unpacker).unpack(files)
	if err != nil {
		return nil, err
	}
	c, err := loader.LoadFiles(all)
	if err != nil {
		return nil, invalid(".", err)
	}
	if c.Metadata.Type == "library" {
		return nil, rollout.Invalidf(Main, "type", "is library: such a chart has nothing to render").
			WithFix("name the chart that uses it")
	}
	return c, arrange(c, ".")
}

type unpacker struct{ files, size int }

func (u *unpacker) unpack(files []File) (all []*archive.BufferedFile, err error) {
	for _, f := range files {
		if u.files++; u.files > MaxFiles {
			return nil, tooMuch("files", MaxFiles)
		}
		if u.size += len(f.Data); u.size > maxSize {
			return nil, tooMuch("bytes", maxSize)
		}
		folder, name := path.Split(f.Name)
		if path.Base(folder) != "charts" || path.Ext(name) != ".tgz" || strings.HasPrefix(name, "_") || name[0] == '.' {
			all = append(all, &archive.BufferedFile{Name: f.Name, Data: bytes.TrimPrefix(f.Data, []byte("\uFEFF"))})
			continue
		}
		packed, err := archive.LoadArchiveFiles(bytes.NewReader(f.Data))
		if err != nil {
			return nil, invalid(f.Name, err)
		}
		unpacked, err := u.unpack(rollout.Mapped(packed, func(p *archive.BufferedFile) File {
			return File{Name: p.Name, Data: p.Data}
		}))
		if err != nil {
			return nil, err
		}
		for _, p := range unpacked {
			p.Name = path.Join(folder, name+".d", p.Name)
		}
		all = append(all, unpacked...)
	}
	return all, nil
}

func tooMuch(what string, most int) error {
	return &rollout.InvalidError{File: ".", Msg: fmt.Sprintf("is a chart with more than %d unpacked %s", most, what),
		Fix: "name unneeded files in .helmignore"}
}

// arrange sorts dependencies, because Helm's order is random.
func arrange(c *helm.Chart, dir string) error {
	dependencies := c.Dependencies()
	slices.SortFunc(dependencies, func(a, b *helm.Chart) int {
		return strings.Compare(a.Name()+" "+a.Metadata.Version, b.Name()+" "+b.Metadata.Version)
	})
	c.SetDependencies(dependencies...)
	for i, d := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(dependencies, func(has *helm.Chart) bool { return has.Name() == d.Name }) {
			invalid := &rollout.InvalidError{File: path.Join(dir, Main), Field: fmt.Sprintf("dependencies[%d]", i),
				Msg: fmt.Sprintf("the chart %s is not in charts/", d.Name),
				Fix: "run helm dependency build, and commit its output: charts are read from Git alone"}
			if at, is := strings.CutPrefix(d.Repository, "file://"); is {
				invalid.Fix = fmt.Sprintf("if this repository has the chart, commit charts/%s as a symbolic link to %s", d.Name,
					path.Join("..", at))
			}
			return invalid
		}
	}
	for _, d := range dependencies {
		if err := arrange(d, path.Join(dir, "charts", d.Name())); err != nil {
			return err
		}
	}
	return nil
}

// localSchemas removes remote references from values' schemas and warns about them, because gitrollout's Helm fetches
// nothing.
func localSchemas(c *helm.Chart) (warnings []string) {
	decoder := json.NewDecoder(bytes.NewReader(c.Schema))
	decoder.UseNumber()
	var schema any
	if c.Schema != nil && decoder.Decode(&schema) == nil { // otherwise Helm reports the error
		if gone := withoutRemote(schema); len(gone) > 0 {
			c.Schema, _ = json.Marshal(schema)
			for _, ref := range gone {
				warnings = append(warnings, fmt.Sprintf(
					"chart %s: values.schema.json refers to %s, which is not in the chart: values are checked without it",
					c.Name(), ref))
			}
		}
	}
	for _, d := range c.Dependencies() {
		warnings = append(warnings, localSchemas(d)...)
	}
	return warnings
}

func withoutRemote(v any) (gone []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			text, isText := v[key].(string)
			switch {
			case !isText:
				gone = append(gone, withoutRemote(v[key])...)
			case key == "$schema" && !strings.Contains(text, "://json-schema.org/"):
				delete(v, key)
			case (key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef") && !strings.HasPrefix(text, "#"):
				delete(v, key)
				gone = append(gone, text)
			}
		}
	case []any:
		for _, item := range v {
			gone = append(gone, withoutRemote(item)...)
		}
	}
	return gone
}
