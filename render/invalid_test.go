package render

import (
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/rollout"
)

var update = flag.Bool("update", false, "write the messages that the rejected inputs get")

const wantPrefix = "want: "

// TestInvalid renders each rejected input of testdata/invalid and compares the message, which must be one line with
// file, field, value and remedy.
//
// An archive is a repository whose root is the app. A file "-> target" is a symlink, "(submodule)" a submodule.
// Archives in a folder with a base.txtar add its files, unless they replace them.
func TestInvalid(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	bases := map[string]map[string]string{}
	for _, folder := range []string{"testdata/invalid/rollout", "testdata/invalid/traffic", "testdata/invalid/analysis"} {
		bases[folder] = archiveFiles(parseArchive(t, filepath.Join(folder, "base.txtar")))
	}
	cases := 0
	for _, file := range files {
		if filepath.Base(file) == "base.txtar" {
			continue
		}
		cases++
		t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/invalid/"), ".txtar"), func(t *testing.T) {
			archive := parseArchive(t, file)
			repo := map[string]string{}
			maps.Copy(repo, bases[filepath.Dir(file)])
			maps.Copy(repo, archiveFiles(archive))
			checkInvalid(t, file, archive, repo)
		})
	}
	if cases < 380 {
		t.Errorf("%d rejected inputs, want at least 380: some have gone", cases)
	}
}

// rejections has the errors of rendered inputs by file: they are compared, and listed on a page.
var rejections = map[string]*rollout.InvalidError{}

func rejection(t *testing.T, file string, repo map[string]string) *rollout.InvalidError {
	t.Helper()
	if known := rejections[file]; known != nil {
		return known
	}
	_, err := New(InProcess{CheckProvider: provider.Check}).Render(newTree(repo), rollout.App{Name: "demo", Namespace: "shop"}, rollout.Commit{})
	var invalid *rollout.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("%s: error %v, want an InvalidError", file, err)
	}
	rejections[file] = invalid
	return invalid
}

func checkInvalid(t *testing.T, file string, archive *txtar.Archive, repo map[string]string) {
	t.Helper()
	got := rejection(t, file, repo).Error()
	if strings.Contains(got, "\n") || strings.Contains(got, mount) || strings.Contains(got, os.TempDir()) {
		t.Errorf("message has more than one line or a path of this machine: %q", got)
	}
	reason, want, _ := strings.Cut(string(archive.Comment), wantPrefix)
	if *update {
		archive.Comment = []byte(strings.TrimSpace(reason) + "\n" + wantPrefix + got + "\n")
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if strings.TrimSpace(want) != got {
		t.Errorf("message\n got: %s\nwant: %s", got, strings.TrimSpace(want))
	}
}

func parseArchive(t *testing.T, file string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func archiveFiles(a *txtar.Archive) map[string]string {
	files := map[string]string{}
	for _, f := range a.Files {
		content := string(f.Data)
		if strings.HasPrefix(content, linkTo) || strings.HasPrefix(content, submodule) {
			content = strings.TrimSpace(content)
		}
		files[f.Name] = content
	}
	return files
}
