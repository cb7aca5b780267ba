package scaffold

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/chart"
	"gitrollout.dev/gitrollout/rollout"
)

// SchemaFolder has the generated files' JSON Schemas.
const SchemaFolder = ".gitrollout/schemas"

// File is a file to write.
type File struct {
	Path    string
	Content string
	Changes bool // the file exists, and lines are added
}

// Write writes the file below dir. If Changes is not set, an existing file is an error.
func (f File) Write(dir string) error {
	name := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.Changes {
		how = os.O_WRONLY | os.O_TRUNC
	}
	file, err := os.OpenFile(name, how, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(f.Content)
	return errors.Join(err, file.Close())
}

// Folders returns the folders to add to Git: .gitrollout and the apps' folders.
func Folders(files []File) []string {
	dirs := rollout.Mapped(files, func(f File) string {
		if strings.HasPrefix(f.Path, ".gitrollout/") {
			return ".gitrollout"
		}
		return path.Dir(f.Path)
	})
	return slices.Compact(slices.Sorted(slices.Values(dirs)))
}

// ConfigFile returns the proposed configuration.
func (p Proposal) ConfigFile() File {
	file := rollout.ConfigPath(p.Cluster)
	text := configText(p.Entries)
	if p.StateRepo != "" {
		text = strings.Replace(text, "apps:\n", "stateRepo: "+render.Quoted(p.StateRepo)+"\napps:\n", 1)
	}
	return File{Path: file, Content: modeline(file, "config") + text}
}

func configText(entries []Entry) string {
	var b strings.Builder
	b.WriteString("apiVersion: " + rollout.APIVersion + "\nkind: Config\napps:\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "- path: %s\n", render.Quoted(e.Path))
		for _, f := range [][2]string{{"name", e.Name}, {"namespace", e.Namespace}} {
			if f[1] != "" {
				fmt.Fprintf(&b, "  %s: %s\n", f[0], render.Quoted(f[1]))
			}
		}
		if d := e.Directory; d != nil {
			b.WriteString(settings("directory", map[string]any{
				"recurse": d.Recurse, "include": d.Include, "exclude": d.Exclude,
			}))
		}
		if h := e.Helm; h != nil {
			var values map[string]any
			_ = json.Unmarshal([]byte(cmp.Or(h.Values, "null")), &values) // asJSON has marshaled the values
			b.WriteString(settings("helm", map[string]any{
				"releaseName": h.ReleaseName, "valueFiles": h.Files(), "valuesObject": values, "skipCrds": h.SkipCRDs,
			}))
		}
		if e.Decryption != "" {
			fmt.Fprintf(&b, "  decryption: {provider: sops, secretRef: {name: %s}}\n", render.Quoted(e.Decryption))
		}
		b.WriteString(variablesText(e.Variables))
		for _, line := range e.Needs.Lines(nil, nil) {
			b.WriteString("  " + line + "\n")
		}
	}
	return b.String()
}

func variablesText(v rollout.Variables) string {
	if !v.On {
		return ""
	}
	lines := map[string]any{}
	if values := v.Map(); len(values) > 0 || len(v.From()) == 0 {
		lines["substitute"] = values
	}
	if len(v.From()) > 0 {
		lines["substituteFrom"] = rollout.Mapped(v.From(), func(file string) any { return map[string]string{"file": file} })
	}
	return "  " + strings.Join(yamlLines(lines), "\n  ") + "\n"
}

func yamlLines(v map[string]any) []string {
	text, _ := yaml.Marshal(v)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func settings(field string, all map[string]any) string {
	maps.DeleteFunc(all, func(_ string, v any) bool {
		of := reflect.ValueOf(v)
		return of.IsZero() || of.Kind() != reflect.Bool && of.Len() == 0
	})
	lines := yamlLines(all)
	if list, is := all["valueFiles"].([]string); is && len(all) == 1 && len(list) == 1 {
		lines = []string{"valueFiles: [" + render.Quoted(list[0]) + "]"}
	}
	switch {
	case len(all) == 0:
		return "  " + field + ": {}\n"
	case len(lines) == 1:
		return "  " + field + ": {" + lines[0] + "}\n"
	default:
		return "  " + field + ":\n    " + strings.Join(lines, "\n    ") + "\n"
	}
}

func modeline(file, kind string) string {
	return "# yaml-language-server: $schema=" + relative(path.Dir(file), SchemaFolder+"/"+kind+".json") + "\n"
}

// Rollouts returns new Rollouts and the changed kustomization. The texts say why other Deployments get no Rollout.
func Rollouts(tree rollout.Tree, r *rollout.Render) (files []File, told []string, err error) {
	var names []string
	for _, o := range r.Objects {
		ref := o.Ref()
		if ref.Group != "apps" || ref.Kind != "Deployment" {
			continue
		}
		if _, staged := r.Spec(rollout.Workload{Namespace: ref.Namespace, Name: ref.Name}); staged {
			told = append(told, fmt.Sprintf("Deployment %s has a Rollout document already", ref.Name))
			continue
		}
		if o.Map("spec", "strategy")["type"] == "Recreate" {
			told = append(told, fmt.Sprintf(
				"Deployment %s has strategy Recreate, but steps need old and new pods side by side", ref.Name))
			continue
		}
		names = append(names, ref.Name)
	}
	if len(names) == 0 {
		return nil, append(told, r.App.Path+" has no Deployment that needs a Rollout document"), nil
	}
	dir, err := documentFolder(tree, r.App.Path)
	if err != nil {
		return nil, told, err
	}
	var lines []string
	for _, name := range names {
		file := "rollout.yaml"
		if len(names) > 1 {
			file = "rollout-" + name + ".yaml"
		}
		full := path.Join(dir, file)
		if _, exists, err := tree.Lookup(full); err != nil || exists {
			return nil, append(told, full+" exists already, and nothing is overwritten"), err
		}
		files = append(files, File{Path: full, Content: modeline(full, "rollout") +
			strings.ReplaceAll(rolloutText, "NAME", render.Quoted(name))})
		lines = append(lines, file)
	}
	k, err := kustomizationWith(tree, r.App.Path, lines)
	switch {
	case k.Path != "":
		files = append(files, k)
	case err == nil && !r.App.Plain && dir == r.App.Path:
		err = &rollout.InvalidError{File: r.App.Path, Msg: "has no kustomization", Fix: "name a folder that has one"}
	}
	return files, told, err
}

func documentFolder(tree rollout.Tree, app string) (string, error) {
	for _, name := range render.KustomizationNames {
		if _, found, err := tree.Lookup(path.Join(app, name)); err != nil || found {
			return app, err
		}
	}
	if _, found, err := tree.Lookup(path.Join(app, chart.Main)); err != nil || !found {
		return app, err
	}
	return path.Join(app, "templates"), nil
}

// rolloutText is a Rollout with a canary strategy that needs one promotion. NAME stands for the Deployment's name.
//
//go:embed rollout.yaml
var rolloutText string

var resources = regexp.MustCompile(`(?m)^resources:[ \t]*(#.*)?\n(([ \t]*)- )?`)

var oneLine = regexp.MustCompile(`(?m)^resources:[ \t]*\[[^\]\n#]*\][ \t]*$`)

func asLines(text string) string {
	var k struct{ Resources []string }
	if yaml.Unmarshal([]byte(text), &k) != nil {
		return text
	}
	return strings.Join(append([]string{"resources:"}, rollout.Mapped(k.Resources, render.Quoted)...), "\n- ")
}

func kustomizationWith(tree rollout.Tree, dir string, lines []string) (File, error) {
	for _, name := range render.KustomizationNames {
		file := path.Join(dir, name)
		e, found, err := tree.Lookup(file)
		if err != nil {
			return File{}, err
		}
		if !found {
			continue
		}
		data, err := tree.ReadBlob(e.ID)
		if err != nil {
			return File{}, err
		}
		text := oneLine.ReplaceAllStringFunc(string(data), asLines)
		at := resources.FindStringSubmatchIndex(text)
		if at == nil && strings.Contains("\n"+text, "\nresources:") {
			return File{}, &rollout.InvalidError{File: file, Field: "resources", Msg: "is not a list with one entry per line",
				Fix: "write one entry per line, or add these entries yourself: " + strings.Join(lines, ", ")}
		}
		item := "- "
		if at != nil && at[6] >= 0 {
			item = text[at[6]:at[7]] + item // with the list's indentation
		}
		added := item + strings.Join(lines, "\n"+item) + "\n"
		if at == nil {
			return File{Path: file, Changes: true, Content: strings.TrimRight(text, "\n") + "\nresources:\n" + added}, nil
		}
		end := at[0] + strings.IndexByte(text[at[0]:], '\n') + 1
		return File{Path: file, Changes: true, Content: text[:end] + added + text[end:]}, nil
	}
	return File{}, nil
}
