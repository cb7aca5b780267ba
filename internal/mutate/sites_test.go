package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

const sample = `package sample

func less(a, b int, done bool) bool {
	if a < b && !done {
		return true
	}
	a = b + 1
	print("left " + "out")
	return a >= 0
}
`

// TestMutants checks which mutants a small file has, and that the file can be parsed with each mutant.
func TestMutants(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sample.go"), sample)
	files, err := sourcesOf(dir, ".")
	must(t, err)
	var got []string
	for _, m := range files[0].mutants {
		got = append(got, m.what)
		changed := string(m.apply([]byte(sample)))
		if changed == sample {
			t.Errorf("%s changes nothing", m.what)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "", changed, 0); err != nil {
			t.Errorf("%s cannot be read: %v\n%s", m.what, err, changed)
		}
	}
	want := strings.Split(`< becomes <=,&& becomes ||,! goes from !done,true becomes false,`+
		`always: if a < b && !done,never: if a < b && !done,left out: a = b + 1,+ becomes -,1 becomes 2,`+
		`left out: print("left " + "out"),>= becomes >,0 becomes 1`, ",")
	slices.Sort(want)
	slices.Sort(got)
	compare.Check(t, want, got)
}

// TestSomebodyIsAsked checks that every package has its own tests, or other packages in livesThrough. Otherwise no test would run on the
// package's mutants.
func TestSomebodyIsAsked(t *testing.T) {
	root, _, err := module()
	must(t, err)
	folders, err := product(root, []string{"./..."})
	if err != nil || len(folders) < 30 {
		t.Fatalf("%v: %v", folders, err)
	}
	for _, folder := range folders {
		own, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil || len(own) == 0 && len(others(folder)) == 0 {
			t.Errorf("no test is asked about %s: %v", folder, err)
		}
	}
}

// TestOthers checks which other package's tests run first on the mutants of a folder.
func TestOthers(t *testing.T) {
	for folder, want := range map[string]string{
		"analysis": "./strategies", "analysis/provider": "./reconciler/measure",
		"rollout/schedule": "./strategies", "cmd/gitrollout": "", "author/plan": "./cmd/gitrollout",
		"git/wire": "./git", "git": "./reconciler/...",
	} {
		got := others(folder)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("%s: %v, want %q first", folder, got, want)
		}
	}
}
