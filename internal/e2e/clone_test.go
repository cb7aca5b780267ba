package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/gittest"
)

type clone struct {
	*testing.T
	dir string
	env []string
}

// newClone returns a clone of an empty repository.
func newClone(t *testing.T, origin string) *clone {
	t.Helper()
	c := &clone{T: t, dir: t.TempDir(), env: gittest.Env()}
	c.git("init", "-q", "-b", "main")
	c.git("remote", "add", "origin", origin)
	return c
}

func (c *clone) git(args ...string) string {
	c.Helper()
	out, err := c.tryGit(args...)
	if err != nil {
		c.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (c *clone) tryGit(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (c *clone) write(files map[string]string) {
	c.Helper()
	for name, content := range files {
		path := filepath.Join(c.dir, filepath.FromSlash(name))
		must(c, os.MkdirAll(filepath.Dir(path), 0o755))
		must(c, os.WriteFile(path, []byte(content), 0o600))
	}
}

func (c *clone) commit(message string) {
	c.Helper()
	c.git("add", ".")
	c.git("commit", "-q", "-m", message)
}

// push commits the written files, rebases the commit onto the server's branch, and pushes it.
func (c *clone) push(message string) string {
	c.Helper()
	c.commit(message)
	if out, err := c.tryGit("fetch", "-q", "origin", "main"); err == nil {
		c.git("rebase", "-q", "FETCH_HEAD")
	} else if !strings.Contains(out, "couldn't find remote ref") {
		c.Fatalf("git fetch: %s", out)
	}
	c.git("push", "-q", "origin", "HEAD:main")
	return c.git("rev-parse", "HEAD")
}
