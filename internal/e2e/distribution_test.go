package e2e

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// sums are the SHA-256 of a folder's files.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		all[filepath.Base(file)] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// git asks the repository that the tests are in; "" is that there is none.
func git(args ...string) string {
	out, err := exec.Command("git", append([]string{"-C", "../.."}, args...)...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// TestReleaseIsReproducible makes the release in another folder, of a copy that is no clone: every file is the same.
func TestReleaseIsReproducible(t *testing.T) {
	t.Parallel()
	first := releaseOf(t)
	elsewhere := t.TempDir()
	root := filepath.Join(elsewhere, "a", "copy")
	for _, name := range strings.Split(git("ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		data, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			continue // removed, and not committed yet
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(elsewhere, "dist")
	if err := makeRelease(root, out, "-commit", git("rev-parse", "HEAD"), "-date", git("log", "-1", "--format=%ct")); err != nil {
		t.Fatal(err)
	}
	want, got := sums(t, first), sums(t, out)
	if len(want) < 2 || !maps.Equal(got, want) {
		t.Errorf("the release is\n%v\nand that of a copy\n%v", want, got)
	}
}

// TestArchive unpacks the archive for this machine as somebody does who downloads it, and runs the program.
func TestArchive(t *testing.T) {
	t.Parallel()
	base := "gitrollout_" + releasedVersion + "_linux_" + runtime.GOARCH
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-C", dir, "-xzf", filepath.Join(releaseOf(t), base+".tar.gz")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := slices.Sorted(maps.Keys(sums(t, dir))); !slices.Equal(got, []string{"LICENSE", "gitrollout"}) {
		t.Errorf("the archive has %v", got)
	}
	out, err := exec.Command(filepath.Join(dir, "gitrollout"), "version").CombinedOutput()
	if want := fmt.Sprintf("gitrollout %s (%.12s) ", releasedVersion, git("rev-parse", "HEAD")); err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("version: %v: %s, want %s", err, out, want)
	}
}
