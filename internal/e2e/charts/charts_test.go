package charts

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/kustomize/kustomize/v5/commands/build"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/testbin"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/rollout"
)

// shape is a .txtar file of testdata: a repository with a chart in the folder shop, or with a kustomization in the folder app. The chart's
// values are in v1.yaml and v2.yaml. The files of a folder named *.tgz are packed into an archive of this name.
type shape struct {
	name  string
	files map[string]string
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func shapes(t *testing.T, pattern string) (all []shape) {
	t.Helper()
	found, err := filepath.Glob(pattern)
	must(t, err)
	for _, file := range found {
		archive, err := txtar.ParseFile(file)
		must(t, err)
		s := shape{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), files: map[string]string{}}
		packed := map[string][]txtar.File{}
		for _, f := range archive.Files {
			content := strings.ReplaceAll(string(f.Data), "<CR>", "\r")
			content = strings.ReplaceAll(content, "<BOM>", "\ufeff")
			if tgz, inside, is := strings.Cut(f.Name, ".tgz/"); is {
				packed[tgz+".tgz"] = append(packed[tgz+".tgz"], txtar.File{Name: inside, Data: []byte(content)})
				continue
			}
			s.files[f.Name] = content
		}
		for name, files := range packed {
			s.files[name] = pack(t, files)
		}
		all = append(all, s)
	}
	return all
}

func pack(t *testing.T, files []txtar.File) string {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	archive := tar.NewWriter(zip)
	for _, f := range files {
		must(t, archive.WriteHeader(&tar.Header{Name: f.Name, Mode: 0o644, Size: int64(len(f.Data))}))
		_, err := archive.Write(f.Data)
		must(t, err)
	}
	must(t, archive.Close())
	must(t, zip.Close())
	return b.String()
}

// write writes the shape's files to a new folder, and returns the folder.
func (s shape) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range s.files {
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(content), 0o644))
	}
	return dir
}

// values returns the names of a shape's values files.
func (s shape) values() (files []string) {
	for _, name := range []string{"v1.yaml", "v2.yaml"} {
		if _, has := s.files["shop/"+name]; has {
			files = append(files, name)
		}
	}
	return files
}

func helm(t *testing.T) string {
	t.Helper()
	program, err := testbin.Ensure("helm", "about two minutes")
	must(t, err)
	return program
}

// TestSameAsHelm renders the charts of testdata, and compares all objects except hooks with the output of `helm template`.
func TestSameAsHelm(t *testing.T) {
	program := helm(t)
	all := shapes(t, "testdata/chart-*.txtar")
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			dir := s.write(t)
			args := []string{"template", "eu", filepath.Join(dir, "shop"), "--namespace", "shop", "--include-crds",
				"--kube-version", "1.36.0", "--api-versions", "example.com/v1"}
			for _, v := range s.values() {
				args = append(args, "-f", filepath.Join(dir, "shop", v))
			}
			app := rollout.App{Name: "eu", Path: "shop", Namespace: "shop", APIVersions: "example.com/v1",
				Helm: rollout.Helm{ValueFiles: strings.Join(s.values(), "\n")}}
			cmd := exec.Command(program, args...)
			var problems bytes.Buffer
			cmd.Stderr = &problems
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, problems.Bytes())
			}
			checkSame(t, rendered(t, dir, app), objects(t, out))
		})
	}
	if len(all) < 20 {
		t.Errorf("%d charts, want at least 20", len(all))
	}
}

// TestSameAsKustomize renders the kustomizations of testdata, and one kustomization for each chart of testdata. It
// compares the objects with the output of `kustomize build --enable-helm`.
func TestSameAsKustomize(t *testing.T) {
	program := helm(t)
	all := shapes(t, "testdata/kustomization-*.txtar")
	for _, s := range shapes(t, "testdata/chart-*.txtar") {
		if _, has := s.files["shop/values.yaml"]; !has {
			s.files["shop/values.yaml"] = "" // otherwise kustomize renders no chart
		}
		moved := map[string]string{}
		for name, content := range s.files {
			moved["app/charts/"+name] = content
			if v := strings.TrimPrefix(name, "shop/"); slices.Contains(s.values(), v) {
				moved["app/"+v] = content
			}
		}
		entry := map[string]any{"name": "shop", "releaseName": "eu", "includeCRDs": true, "kubeVersion": "1.36.0",
			"apiVersions": []string{"example.com/v1"}, "additionalValuesFiles": s.values()}
		text, err := yaml.Marshal(map[string]any{"namePrefix": "my-", "helmCharts": []any{entry}})
		must(t, err)
		moved["app/kustomization.yaml"] = string(text)
		all = append(all, shape{name: "of-" + s.name, files: moved})
	}
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			dir := s.write(t)
			got := rendered(t, dir, rollout.App{Name: "app", Path: "app", Namespace: "default"})
			var out bytes.Buffer
			cmd := build.NewCmdBuild(filesys.MakeFsOnDisk(), build.MakeHelp("kustomize", "build"), &out)
			cmd.SetArgs([]string{filepath.Join(dir, "app"), "--enable-helm", "--helm-command", program, "--helm-kube-version", "1.36.0"})
			must(t, cmd.Execute())
			checkSame(t, got, objects(t, out.Bytes()))
		})
	}
	if len(all) < 30 {
		t.Errorf("%d kustomizations, want at least 30", len(all))
	}
}

// rendered returns the rendered objects of an app, without hooks.
func rendered(t *testing.T, dir string, app rollout.App) (all []map[string]any) {
	t.Helper()
	tree, err := worktree.OpenHashed(dir)
	must(t, err)
	built, err := render.New(render.InProcess{}).Render(tree, app, rollout.Commit{})
	must(t, err)
	for _, o := range built.Objects {
		if o.Annotation("helm.sh/hook") == "" {
			all = append(all, o)
		}
	}
	return all
}

// objects parses all documents of a text.
func objects(t *testing.T, text []byte) (all []map[string]any) {
	t.Helper()
	for _, doc := range strings.Split("\n"+string(text), "\n---") {
		node, err := kyaml.Parse(doc) // kustomize's parser reads n and y as strings
		if errors.Is(err, io.EOF) || err == nil && node.IsNilOrEmpty() {
			continue
		}
		if err != nil {
			t.Fatalf("%v: %s", err, doc)
		}
		data, err := node.MarshalJSON()
		must(t, err)
		var o map[string]any
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		must(t, decoder.Decode(&o))
		list := []any{o}
		if items, is := o["items"].([]any); is && strings.HasSuffix(rollout.Object(o).Kind(), "List") {
			list = items
		}
		for _, one := range list {
			if o, is := one.(map[string]any); is && o != nil && rollout.Object(o).Map("metadata", "annotations")["helm.sh/hook"] == nil {
				all = append(all, o)
			}
		}
	}
	return all
}

// checkSame compares objects in any order. If helm or kustomize prints an object without a namespace, checkSame uses the namespace of
// gitrollout's object.
func checkSame(t *testing.T, got, want []map[string]any) {
	t.Helper()
	key := func(o rollout.Object) string { return o.APIVersion() + " " + o.Kind() + " " + o.Name() }
	for _, o := range want {
		i := slices.IndexFunc(got, func(g map[string]any) bool { return key(g) == key(o) })
		if o := rollout.Object(o); i >= 0 && o.Namespace() == "" && rollout.Object(got[i]).Namespace() != "" {
			o.Map("metadata")["namespace"] = rollout.Object(got[i]).Namespace()
		}
	}
	text := func(all []map[string]any) string {
		slices.SortFunc(all, func(a, b map[string]any) int { return cmp.Compare(key(a), key(b)) })
		data, err := json.MarshalIndent(all, "", " ")
		must(t, err)
		return string(data)
	}
	if len(got) == 0 {
		t.Error("nothing is rendered")
	}
	compare.Check(t, text(want), text(got))
}
