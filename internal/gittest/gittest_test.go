package gittest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// The servers must work for git itself before they are used to judge our client.
func TestServersServeGit(t *testing.T) {
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"a/b.txt": "one\n"})

	http := repo.HTTP(gittest.HTTPOptions{})
	tls := repo.HTTP(gittest.HTTPOptions{TLS: true})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, tls.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := repo.Daemon()
	for name, url := range map[string]string{"http": http.URL, "https": tls.URL, "git": daemon.URL, "path": repo.Bare} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "clone")
			git(t, ".", ca, "clone", "-q", url, dir)
			if got := strings.TrimSpace(git(t, dir, ca, "log", "--format=%s")); got != "first" {
				t.Fatalf("log = %q", got)
			}
			git(t, dir, ca, "push", "-q", "origin", "HEAD:refs/heads/from-"+name)
			if repo.Ref("from-"+name) != repo.Head() {
				t.Fatalf("push over %s did not arrive", name)
			}
		})
	}
	repo.Fsck()
}

func TestRepoHelpers(t *testing.T) {
	repo := gittest.New(t)
	first := repo.CommitFiles("first", map[string]string{"f": "1"})
	repo.Git("checkout", "-q", "-b", "topic")
	repo.CommitFiles("topic", map[string]string{"g": "2"})
	repo.Git("checkout", "-q", "main")
	merge := repo.Merge("topic")
	if got := repo.Show("main", "g"); got != "2" {
		t.Errorf("merged file = %q", got)
	}
	repo.Revert(merge)
	if diff := compare.Diff([]string{"f"}, repo.Files("main")); diff != "" {
		t.Errorf("files after the revert (-want +got):\n%s", diff)
	}
	if repo.ForcePush(first); repo.Head() != first {
		t.Errorf("head = %s, want %s", repo.Head(), first)
	}
	if diff := compare.Diff([]string{"first"}, repo.Log("main")); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}

	again := gittest.New(t)
	if got := again.CommitFiles("first", map[string]string{"f": "1"}); got != first {
		t.Errorf("the same calls made %s, then %s", first, got)
	}
}

func git(t *testing.T, dir, ca string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(gittest.Env(), "GIT_SSL_CAINFO="+ca)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}
