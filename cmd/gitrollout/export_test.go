package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestDashboardExport checks exports from Git alone. Two exports have the same bytes, and an export replaces an earlier export. A folder
// with other files is refused and stays. A dangling link, too, is refused and stays. A repository without state is an error, and leaves no
// folder. A link to a folder stays. A killed export's folders are removed. A user's folders and links stay, as does the folder of another
// running export.
func TestDashboardExport(t *testing.T) {
	repo, parent := fleetRepo(t, 2), t.TempDir()
	export := func(url, dir string) (code int, said string) {
		var errs bytes.Buffer
		code = run(t.Context(), []string{"dashboard", "export", dir, "--repo", url, "--cluster", "prod", "--kubeconfig",
			filepath.Join(parent, "none")}, nil, io.Discard, &errs)
		return code, errs.String()
	}
	files := func(dir string) map[string]string {
		t.Helper()
		entries, err := os.ReadDir(dir)
		must(t, err)
		all := map[string]string{}
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			must(t, err)
			all[e.Name()] = string(text)
		}
		return all
	}
	first, second := filepath.Join(parent, "new", "first"), filepath.Join(parent, "second")
	must(t, os.Mkdir(second, 0o755))
	for _, dir := range []string{first, second, first} {
		if code, said := export(repo.Bare, dir); code != 0 {
			t.Fatalf("exit %d: %s", code, said)
		}
	}
	written := files(first)
	compare.Check(t, written, files(second))
	compare.Check(t, 4, len(written))
	compare.Contains(t, written["index.html"], "as of 2001-09-09 01:46:40 UTC", "app-0001")
	compare.Contains(t, written["app-app-0000.html"], `"subject":"first"`, "shown from Git alone", `"command":"gitrollout `)
	if page := written["app-app-0000.html"] + written["index.html"]; strings.Contains(page, repo.Bare) || strings.Contains(page, parent) {
		t.Error("a page shows a path on this machine")
	}

	link := filepath.Join(parent, "link")
	must(t, os.Symlink(second, link))
	for _, dir := range []string{second + ".gitrollout-new", second + ".gitrollout-old", second + ".old"} {
		must(t, os.Mkdir(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, exportMark), nil, 0o600))
		must(t, os.Chtimes(dir, time.Time{}, time.Now().Add(-time.Hour)))
	}
	must(t, os.Remove(filepath.Join(second, "index.html")))
	if code, said := export(repo.Bare, link); code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	compare.Check(t, written, files(second))
	target, err := os.Readlink(link)
	must(t, err)
	compare.Check(t, second, target)

	compare.Check(t, map[string]string{exportMark: ""}, files(second+".old")) // a user's copy
	must(t, os.RemoveAll(second+".old"))

	next, mine := second+".gitrollout-new", map[string]string{"notes.txt": "mine"}
	must(t, os.Mkdir(next, 0o755))
	must(t, os.WriteFile(filepath.Join(next, "notes.txt"), []byte("mine"), 0o600))
	for _, c := range []struct {
		age  time.Duration
		want string
	}{{0, "another export writes " + next}, {time.Hour, "second.gitrollout-new: file exists"}} {
		must(t, os.Chtimes(next, time.Time{}, time.Now().Add(-c.age)))
		code, said := export(repo.Bare, second)
		compare.Check(t, exitFailed, exitCode(code))
		compare.Contains(t, said, c.want)
	}
	compare.Check(t, mine, files(next))
	must(t, os.RemoveAll(next))
	must(t, os.Symlink(first, next)) // of a user
	must(t, os.Symlink(filepath.Join(parent, "missing"), filepath.Join(parent, "dangling")))
	export(repo.Bare, second)
	compare.Check(t, written, files(first))
	must(t, os.Remove(next))
	must(t, os.Remove(filepath.Join(second, exportMark)))
	must(t, os.WriteFile(filepath.Join(first, "notes.txt"), []byte("mine"), 0o600))
	third := filepath.Join(parent, "third")
	export(repo.Bare, third)
	must(t, os.WriteFile(filepath.Join(third, "about.html"), []byte("mine"), 0o600))
	fourth := filepath.Join(parent, "fourth")
	export(repo.Bare, fourth)
	must(t, os.Mkdir(filepath.Join(fourth, "app-mine.html"), 0o755))
	empty := gittest.New(t)
	empty.CommitFiles("first", map[string]string{rollout.ConfigPath("prod"): configOf("fleet", "- path: apps/*")})
	for _, c := range []struct {
		url, dir, want string
		code           exitCode
	}{
		{repo.Bare, first, "has files that are not from an export", exitUsage},
		{repo.Bare, second, "has files that are not from an export", exitUsage},
		{repo.Bare, third, "has files that are not from an export", exitUsage},
		{repo.Bare, fourth, "has files that are not from an export", exitUsage},
		{repo.Bare, filepath.Join(parent, "dangling"), "is no folder, or has files", exitUsage},
		{repo.Bare, filepath.Join(first, "notes.txt"), "has files that are not from an export", exitUsage},
		{empty.Bare, filepath.Join(parent, "fifth"), "nothing to export: there is no state branch gitrollout/state/prod", exitFailed},
	} {
		code, said := export(c.url, c.dir)
		compare.Check(t, c.code, exitCode(code))
		compare.Contains(t, said, c.want)
	}
	compare.Check(t, "mine", files(first)["notes.txt"])
	entries, err := os.ReadDir(parent)
	must(t, err)
	compare.Check(t, 6, len(entries)) // new, second, link, dangling, third and fourth: no temporary folder stays
}

// TestRemoveExport lists a folder while removeExport removes its pages. The mark stays until all pages are gone.
func TestRemoveExport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site.old")
	must(t, os.Mkdir(dir, 0o755))
	for i := range 3000 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("app-%d.html", i)), nil, 0o600))
	}
	must(t, os.WriteFile(filepath.Join(dir, exportMark), nil, 0o600))
	done := make(chan error)
	go func() { done <- removeExport(dir) }()
	for {
		select {
		case err := <-done:
			must(t, err)
			return
		default:
			if _, err := os.Stat(filepath.Join(dir, exportMark)); err == nil {
				continue
			}
			if pages, _ := os.ReadDir(dir); len(pages) > 0 {
				t.Errorf("%d pages without a mark", len(pages))
			}
		}
	}
}

// TestReplaceExportAfterAKill replaces exports that were killed at each step. Only the new export stays.
func TestReplaceExportAfterAKill(t *testing.T) {
	whole, partial := []string{exportMark, "index.html"}, []string{exportMark}
	for name, left := range map[string]map[string][]string{
		"nothing":                       {},
		"before the mark":               {"site": whole, "site.gitrollout-new": {}},
		"while writing":                 {"site": whole, "site.gitrollout-new": partial},
		"between the moves":             {"site.gitrollout-new": whole, "site.gitrollout-old": whole},
		"while removing":                {"site": whole, "site.gitrollout-old": partial},
		"before removing the folder":    {"site": whole, "site.gitrollout-old": {}},
		"an empty folder and no export": {"site": {}},
	} {
		parent, day := t.TempDir(), time.Now().Add(-24*time.Hour)
		for dir, files := range left {
			dir = filepath.Join(parent, dir)
			must(t, os.Mkdir(dir, 0o755))
			for _, file := range files {
				must(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
			}
			must(t, os.Chtimes(dir, day, day))
		}
		must(t, replaceExport(filepath.Join(parent, "site"), map[string][]byte{"app-a.html": nil}))
		paths, err := filepath.Glob(filepath.Join(parent, "*", "*"))
		must(t, err)
		compare.CheckNamed(t, name, []string{filepath.Join(parent, "site", exportMark), filepath.Join(parent, "site", "app-a.html")}, paths)
	}
}

// TestExportsAtOnce makes several exports to one folder at once. The folder then has all pages of one export, and no temporary folder
// stays.
func TestExportsAtOnce(t *testing.T) {
	pages := map[string][]byte{}
	for i := range 30 {
		pages[fmt.Sprintf("app-%d.html", i)] = nil
	}
	for range 50 {
		parent := t.TempDir()
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() { _ = replaceExport(filepath.Join(parent, "site"), pages) })
		}
		all.Wait()
		paths, err := filepath.Glob(filepath.Join(parent, "*", "*"))
		must(t, err)
		compare.Check(t, len(pages)+1, len(paths))
	}
}
