// Package testbin gives tests the programs below bin/ that they run as
// neighbours: a control plane, a forge, a proxy. The Makefile says how each is
// built. internal/testcluster, internal/giteatest and internal/proxytest start
// them; nothing in the product does.
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

// Root is the repository's: the nearest folder upwards with the product's go.mod.
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

// Ensure returns the path of bin/name below a repository's root. If it is
// missing, make builds it, which takes so long as is said to the person who
// waits. A file lock makes test packages that run at the same time build it once,
// and none of them sees it half written.
func Ensure(root, name, takes string) (string, error) {
	binary := filepath.Join(root, "bin", name)
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	lock, err := os.OpenFile(binary+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("build %s: lock %s: %w", name, lock.Name(), err)
	}
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	fmt.Fprintf(os.Stderr, "building bin/%s: it takes %s the first time\n", name, takes)
	build := exec.Command("make", name)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return binary, nil
}
