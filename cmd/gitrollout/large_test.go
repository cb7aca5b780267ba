package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// TestAHugeFileCostsNoMemory checks a commit with a file of 700 MB of zeros, which are compressed to 700 kB in a Git pack. The memory of
// the program must stay small, and an app that uses a file of 17 MB must get an error.
func TestAHugeFileCostsNoMemory(t *testing.T) {
	tier.All(t)
	repo := gittest.New(t)
	huge, err := os.Create(filepath.Join(repo.Work, "huge.bin"))
	must(t, err)
	must(t, huge.Truncate(700<<20))
	must(t, huge.Close())
	repo.CommitFiles("first", map[string]string{
		rollout.ConfigPath("prod"):     testConfig,
		"apps/good/kustomization.yaml": "configMapGenerator: [{name: c, literals: [a=b]}]\n",
		"apps/huge/kustomization.yaml": "configMapGenerator: [{name: c, files: [huge.bin]}]\n",
		"apps/huge/huge.bin":           strings.Repeat("\x00", 17<<20),
	})
	cmd := exec.Command("/proc/self/exe", "validate", "--repo", repo.HTTP(gittest.HTTPOptions{}).URL, "--commit", repo.Head())
	cmd.Args[0], cmd.Dir = "gitrollout", t.TempDir()
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), "huge.bin is too large") || !regexp.MustCompile(`ok +good`).Match(out) {
		t.Errorf("error %v:\n%s", err, out)
	}
	most := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	t.Logf("at most %d MiB", most)
	if most > 256 {
		t.Errorf("it took %d MiB, want 256 at most", most)
	}
}
