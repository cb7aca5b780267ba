package render_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

var update = flag.Bool("update", false, "write the messages that the rejected inputs get")

const wantPrefix = "want: "

// TestInvalid checks the message for each rejected input in testdata/invalid. A message must be one line with file, field, value and fix.
//
// An input is a txtar archive of a repository whose root is the app. The content "-> target" makes a symlink, and "(submodule)" a
// submodule. The files of base.txtar in the same folder are added, unless the archive has a file of that name.
func TestInvalid(t *testing.T) {
	repos := rejectedRepos(t, "*")
	for file, repo := range repos {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/invalid/"), ".txtar"), func(t *testing.T) {
			got := rejection(t, file, repo).Error()
			if strings.Contains(got, "\n") || strings.Contains(got, "/repository-root") || strings.Contains(got, os.TempDir()) {
				t.Errorf("message has more than one line or a path of this machine: %q", got)
			}
			archive, err := txtar.ParseFile(file)
			must(t, err)
			reason, want, _ := strings.Cut(string(archive.Comment), wantPrefix)
			if *update {
				archive.Comment = []byte(strings.TrimSpace(reason) + "\n" + wantPrefix + got + "\n")
				must(t, os.WriteFile(file, txtar.Format(archive), 0o644))
			} else if strings.TrimSpace(want) != got {
				t.Errorf("message\n got: %s\nwant: %s", got, strings.TrimSpace(want))
			}
		})
	}
	if len(repos) < 380 {
		t.Errorf("%d rejected inputs, want at least 380: some have gone", len(repos))
	}
}

// rejections caches the errors of the rejected inputs, by file. TestInvalid compares these errors, and TestErrorsPage lists them.
var rejections = map[string]*rollout.InvalidError{}

func rejection(t *testing.T, file string, repo map[string]string) *rollout.InvalidError {
	t.Helper()
	if known := rejections[file]; known != nil {
		return known
	}
	_, err := render.New(render.InProcess{CheckProvider: provider.Check}).Render(newTree(repo), demo, rollout.Commit{})
	var invalid *rollout.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("%s: error %v, want an InvalidError", file, err)
	}
	rejections[file] = invalid
	return invalid
}

// rejectedRepos returns the repositories of the rejected inputs in a folder of testdata/invalid, by file.
func rejectedRepos(t testing.TB, folder string) map[string]map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata/invalid", folder, "*.txtar"))
	must(t, err)
	repos := map[string]map[string]string{}
	for _, file := range files {
		base := filepath.Join(filepath.Dir(file), "base.txtar")
		switch {
		case file == base:
		case slices.Contains(files, base):
			repos[file] = merged(archiveFiles(t, base), archiveFiles(t, file))
		default:
			repos[file] = archiveFiles(t, file)
		}
	}
	return repos
}

func archiveFiles(t testing.TB, file string) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	must(t, err)
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
		if content := strings.TrimSpace(files[f.Name]); strings.HasPrefix(content, linkTo) || strings.HasPrefix(content, submodule) {
			files[f.Name] = content
		}
	}
	return files
}
