package testbin

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// rootHere creates a repository's root, and changes the test's working directory to this root.
func rootHere(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	t.Chdir(root)
	if err := os.WriteFile("go.mod", []byte("module gitrollout.dev/gitrollout\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestMissingProgramIsBuiltOnce checks that test packages that start at the same time build a missing program only once.
func TestMissingProgramIsBuiltOnce(t *testing.T) {
	root := rootHere(t)
	makefile := "x:\n\techo built >> bin/x\n.PHONY: x\n"
	if err := os.WriteFile(filepath.Join(root, "Makefile"), []byte(makefile), 0o644); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if path, err := Ensure("x", "no time"); err != nil || path != filepath.Join(root, "bin", "x") {
				t.Errorf("got %s, %v", path, err)
			}
		})
	}
	all.Wait()
	if got, err := os.ReadFile(filepath.Join(root, "bin", "x")); string(got) != "built\n" {
		t.Errorf("the builds left %q, %v", got, err)
	}
}

func TestProgramThatDoesNotBuildIsAnError(t *testing.T) {
	rootHere(t)
	if _, err := Ensure("x", "no time"); err == nil || !strings.HasPrefix(err.Error(), "build x: ") {
		t.Errorf("error is %v", err)
	}
}

func TestRootIsTheProducts(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "internal", "testbin", "testbin.go")); err != nil {
		t.Error(err)
	}
}
