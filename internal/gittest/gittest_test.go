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

// TestServersServeGit checks the servers with the git command, because the tests of package git rely on these servers.
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
	compare.CheckNamed(t, "files after the revert", []string{"f"}, repo.Files("main"))
	if repo.ForcePush(first); repo.Head() != first {
		t.Errorf("head = %s, want %s", repo.Head(), first)
	}
	compare.CheckNamed(t, "log", []string{"first"}, repo.Log("main"))

	again := gittest.New(t)
	if got := again.CommitFiles("first", map[string]string{"f": "1"}); got != first {
		t.Errorf("the same calls made %s, then %s", first, got)
	}
}

// TestCopy checks that a copy has all contents and is independent of the original.
func TestCopy(t *testing.T) {
	repo := gittest.New(t)
	first := repo.CommitFiles("first", map[string]string{"f": "1", "d/g": "2", "config": "mine", "objects/x": "3"})
	repo.Git("branch", "topic")
	repo.Write(map[string]string{"not/committed": "x"})
	repo.Hook("update", "exit 0")
	repo.InBare("config", "receive.denyDeletes", "true")

	copied := repo.Copy(t)
	if copied.Head() != first || copied.Git("rev-parse", "topic") != first {
		t.Errorf("head %s, want %s", copied.Head(), first)
	}
	compare.CheckNamed(t, "status", "?? not/", copied.Git("status", "--porcelain"))
	if got := copied.Git("remote", "get-url", "origin"); got != copied.Bare {
		t.Errorf("origin is %s, want %s", got, copied.Bare)
	}
	if info, err := os.Stat(filepath.Join(copied.Bare, "hooks", "update")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("the hook: %v", err)
	}
	if got := copied.InBare("config", "receive.denyDeletes"); got != "true" {
		t.Errorf("receive.denyDeletes = %q", got)
	}
	// A commit in the copy does not change the original. The same call then makes the same commit in the original.
	second := copied.CommitFiles("second", map[string]string{"f": "2"})
	copied.InBare("repack", "-adq")
	copied.Fsck()
	if repo.Head() != first {
		t.Errorf("the original moved to %s", repo.Head())
	}
	repo.Fsck()
	if got := repo.CommitFiles("second", map[string]string{"f": "2"}); got != second {
		t.Errorf("the original made %s, the copy %s", got, second)
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

// TestAnswersAboutRefsAreNew checks that the cache of the list of refs is discarded when a ref is created, moved, packed or deleted.
func TestAnswersAboutRefsAreNew(t *testing.T) {
	repo := gittest.New(t)
	first := repo.CommitFiles("first", map[string]string{"f": "1"})
	server := repo.HTTP(gittest.HTTPOptions{})
	for _, move := range []func(){
		func() {},
		func() { repo.CommitFiles("second", map[string]string{"f": "2"}) },
		func() { repo.InBare("update-ref", "refs/heads/topic", first) },
		func() { repo.InBare("pack-refs", "--all") },
		func() { repo.InBare("update-ref", "-d", "refs/heads/topic") },
		func() { repo.ForcePush(first) },
		func() {
			repo.CommitFiles("third", map[string]string{"f": "3"})
			repo.InBare("update-ref", "refs/heads/other", first)
		},
		func() { repo.InBare("symbolic-ref", "HEAD", "refs/heads/other") },
	} {
		move()
		for range 2 {
			served, want := map[string]string{}, map[string]string{}
			for _, line := range strings.Split(strings.TrimSpace(git(t, ".", "", "ls-remote", server.URL, "refs/*")), "\n") {
				id, name, _ := strings.Cut(line, "\t")
				served[name] = id
			}
			for _, line := range strings.Split(repo.InBare("for-each-ref", "--format=%(refname) %(objectname)"), "\n") {
				name, id, _ := strings.Cut(line, " ")
				want[name] = id
			}
			compare.CheckNamed(t, "served refs", served, want)
			compare.CheckNamed(t, "refs", repo.Refs(), want)
			compare.CheckNamed(t, "log of HEAD", repo.Log("HEAD"), strings.Split(repo.InBare("log", "--format=%s", "HEAD"), "\n"))
			compare.CheckNamed(t, "the file of main", repo.Show("main", "f"), repo.InBare("cat-file", "blob", "main:f"))
		}
	}
	if err := os.Rename(filepath.Join(repo.Bare, "objects"), filepath.Join(repo.Bare, "lost")); err != nil {
		t.Fatal(err)
	}
	compare.CheckNamed(t, "the cached file of main", "3", repo.Show("main", "f"))
	compare.Contains(t, git(t, ".", "", "ls-remote", server.URL, "refs/heads/other"), first)
}

// TestFolderOfAnyName checks that the path of a repository may contain a #, which starts a comment in
// Git's configuration. The temporary folders of subtests without a name have a # in their path.
func TestFolderOfAnyName(t *testing.T) {
	t.Run("", func(t *testing.T) {
		repo := gittest.New(t)
		head := repo.CommitFiles("first", map[string]string{"f": "1"})
		again := repo.Copy(t)
		if again.CommitFiles("second", map[string]string{"f": "2"}); again.Ref("main") == head || repo.Ref("main") != head {
			t.Error("a push of the copy has not come to the copy's server alone")
		}
	})
}
