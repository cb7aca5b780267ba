package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

//go:embed on/on.go
var onSource []byte

// build is an overlay: files that the compiler reads instead of the module's files.
type build struct {
	root, dir string
	replace   map[string]string
}

func newBuild(root string) (*build, error) {
	dir, err := os.MkdirTemp("", "mutant")
	return &build{root, dir, map[string]string{}}, err
}

func (b *build) add(path string, content []byte) error {
	b.replace[path] = filepath.Join(b.dir, fmt.Sprintf("%d.go", len(b.replace)))
	return os.WriteFile(b.replace[path], content, 0o600)
}

func (b *build) overlay() (string, error) {
	replace, err := json.Marshal(map[string]any{"Replace": b.replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.dir, "overlay.json")
	return path, os.WriteFile(path, replace, 0o600)
}

// compile builds the tests of a package, if it has tests. It always uses Go's linker. For tests that import the package
// plugin, Go would use the system's linker, which is five times slower.
func (b *build) compile(pkg, binary string) error {
	overlay, err := b.overlay()
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay="+overlay, "-ldflags=-s -w -linkmode=internal", "-o", binary, pkg)
	cmd.Dir = b.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w: %s", pkg, err, out)
	}
	return nil
}

// weave returns the build with all drawn mutants behind switches. It marks mutants that must be compiled separately.
func (c *checker) weave(root string, sources map[string][]*source, drawn []*mutant) (*build, error) {
	b, err := newBuild(root)
	if err != nil {
		return nil, err
	}
	if err := b.add(filepath.Join(root, "internal/mutate/on/on.go"), onSource); err != nil {
		return nil, err
	}
	for folder, files := range sources {
		for _, s := range files {
			its := slices.DeleteFunc(slices.Clone(drawn), func(m *mutant) bool { return m.file != s.name })
			if len(its) == 0 {
				continue
			}
			info, err := c.types(folder, files)
			if err != nil {
				return nil, err
			}
			for _, m := range its {
				m.own = s.reckoned(m.node, info)
			}
			if err := b.add(s.path, s.woven(c.path, c.fit(s, nil, its, info), info)); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}
