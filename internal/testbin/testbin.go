// Package testbin gives tests the programs below bin/: gitrollout, a control plane, a forge and a
// proxy. The Makefile builds these programs. internal/testcluster, internal/giteatest,
// internal/proxytest and internal/e2e start them. The product does not use this package.
package testbin

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Root returns the repository's root: the nearest parent folder with the product's go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module gitrollout.dev/gitrollout\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the repository: no folder above the test has gitrollout's go.mod")
		}
		dir = parent
	}
}

// BinaryVariable is the environment variable with the path of an existing gitrollout. make test sets it.
const BinaryVariable = "GITROLLOUT_TEST_BINARY"

// Gitrollout returns the path of the program under test: the program that BinaryVariable names, or bin/gitrollout,
// which is first built from the current source.
func Gitrollout() (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return path, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	unlock, err := lock(root)
	if err != nil {
		return "", fmt.Errorf("build gitrollout: %w", err)
	}
	defer unlock()
	if err := build(root, "build"); err != nil {
		return "", fmt.Errorf("build gitrollout: %w", err)
	}
	return filepath.Join(root, "bin", "gitrollout"), nil
}

// Ensure returns the path of bin/name in the repository. If the file is missing, make builds it, and a message
// gives the expected time. Test packages that run at the same time build the file once, and see no incomplete file.
func Ensure(name, takes string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	unlock, err := lock(root)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	defer unlock()
	binary := filepath.Join(root, "bin", name)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	fmt.Fprintf(os.Stderr, "building bin/%s: it takes %s the first time\n", name, takes)
	if err := build(root, name); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	return binary, nil
}

// Module returns a module's folder in the module cache. The go.mod in the repository's folder `in` selects the version.
func Module(in, module string) (dir string, err error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	// Download first: go list prints an empty folder for a missing module.
	for _, args := range [][]string{{"mod", "download", module}, {"list", "-m", "-f", "{{.Dir}}", module}} {
		command := exec.Command("go", args...)
		command.Dir = filepath.Join(root, filepath.FromSlash(in))
		var complaint bytes.Buffer
		command.Stderr = &complaint
		out, err := command.Output()
		if err != nil {
			return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(complaint.Bytes()))
		}
		dir = strings.TrimSpace(string(out))
	}
	return dir, nil
}

// lock serializes builds below a root. It locks the folder bin instead of a lock file. A lock file would
// change with each run, so that go test would not use cached results.
func lock(root string) (unlock func(), err error) {
	dir := filepath.Join(root, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { _ = folder.Close() }, nil
}

func build(root, target string) error {
	command := exec.Command("make", target)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
