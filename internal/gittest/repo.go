// Package gittest gives tests real Git repositories and real Git servers.
//
// A [Repo] is a bare repository and a worktree in a temporary folder. In the worktree, tests run the git command as a developer would.
// [Repo.HTTP], [Repo.SSH] and [Repo.Daemon] serve the bare repository with git's server programs. [Server] can inject faults. The tests of
// package git use all servers. Other packages use a Repo as a fixture.
package gittest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"
)

// TB has the methods of testing.TB that this package needs. The demo and the benchmarks, which are not tests,
// also implement TB.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	TempDir() string
	Cleanup(func())
}

// Repo is a bare repository and one worktree cloned from it. Its methods end the test when git fails.
type Repo struct {
	t TB

	// Bare is the folder of the bare repository, which the servers serve. It is also a valid local remote.
	Bare string
	// Work is the folder of the worktree, which Write, Commit and similar methods use. The worktree is on branch main.
	Work string

	mu sync.Mutex
	n  int // number of commits so far: each commit is dated a minute after the previous commit

	answers answers[string] // cache of read
}

// New creates an empty repository with default branch main.
func New(t TB) *Repo {
	t.Helper()
	r := in(t, t.TempDir())
	if err := writeBlank(filepath.Dir(r.Bare)); err != nil {
		t.Fatalf("gittest: %v", err)
	}
	return r
}

func in(t TB, dir string) *Repo {
	bare := filepath.Join(dir, "repo.git")
	return &Repo{t: t, Bare: bare, Work: filepath.Join(dir, "work"), answers: answers[string]{bare: bare}}
}

// Write writes files to the worktree, by path; a path must not end in a slash.
func (r *Repo) Write(files map[string]string) *Repo {
	r.t.Helper()
	for name, content := range files {
		r.write(filepath.Join(r.Work, filepath.FromSlash(name)), content, 0o644)
	}
	return r
}

// Remove deletes files or folders from the worktree.
func (r *Repo) Remove(paths ...string) *Repo {
	r.t.Helper()
	for _, name := range paths {
		r.check("remove "+name, os.RemoveAll(filepath.Join(r.Work, filepath.FromSlash(name))))
	}
	return r
}

// Commit commits all changes in the worktree, pushes the current branch, and returns the commit's ID. Without
// changes, it makes an empty commit.
func (r *Repo) Commit(message string) string {
	r.t.Helper()
	r.Git("add", "--all")
	r.Git("commit", "-q", "--allow-empty", "-m", message)
	return r.Push()
}

// CommitFiles calls Write and Commit.
func (r *Repo) CommitFiles(message string, files map[string]string) string {
	r.t.Helper()
	return r.Write(files).Commit(message)
}

// CommitNothing adds n empty commits to main by one git process, and returns the new head.
func (r *Repo) CommitNothing(n int) string {
	r.t.Helper()
	var stream strings.Builder
	for i := range n {
		date := strings.TrimPrefix(r.clock("commit")[0], "GIT_AUTHOR_DATE=")
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter Dev <dev@example.com> %s\ndata 14\nsomething else\n", date)
		if i == 0 {
			fmt.Fprintf(&stream, "from %s\n", r.Head())
		}
	}
	r.FastImport(stream.String())
	return r.Pull()
}

// Push pushes the worktree's branch and returns its head.
func (r *Repo) Push() string {
	r.t.Helper()
	r.Git("push", "-q", "origin", "HEAD")
	return r.tip(filepath.Join(r.Work, ".git"), "HEAD")
}

// ForcePush resets the worktree's branch and files to rev, force-pushes the branch, and returns its head.
func (r *Repo) ForcePush(rev string) string {
	r.t.Helper()
	r.Git("reset", "-q", "--hard", rev)
	r.Git("push", "-q", "--force", "origin", "HEAD")
	return r.tip(filepath.Join(r.Work, ".git"), "HEAD")
}

// Pull updates the worktree's branch from the server.
func (r *Repo) Pull() string {
	r.t.Helper()
	r.Git("fetch", "-q", "--prune", "origin")
	r.Git("merge", "-q", "--ff-only", "origin/"+r.Git("branch", "--show-current"))
	return r.tip(filepath.Join(r.Work, ".git"), "HEAD")
}

// Merge merges a branch of the server into the worktree's branch, as a user does to promote. It pushes the merge
// commit, and returns the new head.
func (r *Repo) Merge(branch string) string {
	r.t.Helper()
	r.Pull()
	r.Git("merge", "-q", "--no-ff", "-m", "Merge "+branch, "origin/"+branch)
	return r.Push()
}

// Revert reverts a commit on the worktree's branch, as a user does to roll back. It reverts a merge commit against the
// first parent. It pushes the branch, and returns the new head.
func (r *Repo) Revert(commit string) string {
	r.t.Helper()
	args := []string{"revert", "--no-edit"}
	if strings.Contains(r.Git("rev-list", "--parents", "-1", commit)[41:], " ") {
		args = append(args, "-m", "1")
	}
	r.Git(append(args, commit)...)
	return r.Push()
}

// Head returns the commit of main on the server.
func (r *Repo) Head() string { r.t.Helper(); return r.tip(r.Bare, "refs/heads/main") }

// tip returns the commit of a ref. It starts git only for a packed ref, because tests call tip after every commit.
func (r *Repo) tip(gitDir, ref string) string {
	r.t.Helper()
	for name, isRef := ref, true; isRef; {
		content, err := os.ReadFile(filepath.Join(gitDir, filepath.FromSlash(name)))
		if err != nil {
			break
		}
		text := strings.TrimSpace(string(content))
		if name, isRef = strings.CutPrefix(text, "ref: "); !isRef {
			return text
		}
	}
	return r.run(gitDir, "rev-parse", ref)
}

// Ref returns the commit of a branch on the server, or "" if the branch does not exist.
func (r *Repo) Ref(branch string) string { r.t.Helper(); return r.Refs()["refs/heads/"+branch] }

// Refs returns every ref of the server, by full name.
func (r *Repo) Refs() map[string]string {
	r.t.Helper()
	refs := map[string]string{}
	for _, line := range lines(r.read("for-each-ref", "--format=%(refname) %(objectname)")) {
		name, id, _ := strings.Cut(line, " ")
		refs[name] = id
	}
	return refs
}

// Log returns the subjects of a branch's commits on the server, newest first.
func (r *Repo) Log(ref string) []string {
	r.t.Helper()
	return lines(r.read("log", "--format=%s", ref))
}

// Message returns the whole message of a commit on the server.
func (r *Repo) Message(rev string) string {
	r.t.Helper()
	return strings.TrimSpace(r.read("log", "-1", "--format=%B", rev))
}

// Show returns the content of a file at a ref of the server.
func (r *Repo) Show(ref, path string) string {
	r.t.Helper()
	return r.read("cat-file", "blob", ref+":"+path)
}

// Files returns the sorted paths of all files at a ref of the server.
func (r *Repo) Files(ref string) []string {
	r.t.Helper()
	files := strings.FieldsFunc(r.read("ls-tree", "-r", "-z", "--name-only", ref), func(c rune) bool { return c == 0 })
	sort.Strings(files)
	return files
}

// FastImport feeds a stream to git fast-import on the server, which adds thousands of commits or refs in a second.
func (r *Repo) FastImport(stream string) {
	r.t.Helper()
	cmd := exec.Command("git", "fast-import", "--quiet", "--force")
	cmd.Dir, cmd.Env, cmd.Stdin = r.Bare, Env(), strings.NewReader(stream)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("gittest: git fast-import: %v\n%s", err, out)
	}
}

// Fsck checks the whole server repository and ends the test if git finds an error.
func (r *Repo) Fsck() {
	r.t.Helper()
	out := r.InBare("fsck", "--strict", "--no-dangling", "--no-progress")
	if out != "" {
		r.t.Fatalf("gittest: git fsck --strict: %s", out)
	}
}

// Hook installs a server hook (pre-receive, update, ...) as a shell script. An empty script removes the hook.
func (r *Repo) Hook(name, script string) {
	r.t.Helper()
	file := filepath.Join(r.Bare, "hooks", name)
	if script == "" {
		_ = os.Remove(file)
		return
	}
	r.write(file, "#!/bin/sh\n"+script+"\n", 0o755)
}

// write writes a file and creates its folder.
func (r *Repo) write(file, content string, mode os.FileMode) {
	r.t.Helper()
	r.check("write "+file, os.MkdirAll(filepath.Dir(file), 0o755))
	r.check("write "+file, os.WriteFile(file, []byte(content), mode))
}

// check ends the test unless err is nil.
func (r *Repo) check(doing string, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("gittest: %s: %v", doing, err)
	}
}

// Git runs git in the worktree and returns its trimmed output.
func (r *Repo) Git(args ...string) string { r.t.Helper(); return r.run(r.Work, args...) }

// InBare runs git in the bare repository, on the server, and returns its trimmed output.
func (r *Repo) InBare(args ...string) string { r.t.Helper(); return r.run(r.Bare, args...) }

// read returns the output of a git command on the server. The output is cached until a ref moves, because tests poll.
func (r *Repo) read(args ...string) string {
	r.t.Helper()
	return r.answers.get(strings.Join(args, "\x00"), func() (string, bool) { return r.output(r.Bare, args...), true })
}

func (r *Repo) run(dir string, args ...string) string {
	r.t.Helper()
	return strings.TrimSpace(r.output(dir, args...))
}

func (r *Repo) output(dir string, args ...string) string {
	r.t.Helper()
	out, err := r.try(dir, args...)
	if err != nil {
		r.t.Fatalf("gittest: %v", err)
	}
	return out
}

func (r *Repo) try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(Env(), r.clock(args[0])...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// clock returns environment variables that date commits a minute apart, from 2026-01-01 on. Equal calls thus make
// commits with equal IDs.
func (r *Repo) clock(command string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch command {
	case "commit", "merge", "revert", "cherry-pick", "rebase", "am", "commit-tree":
		r.n++
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.n) * time.Minute)
	date := fmt.Sprintf("%d +0000", at.Unix())
	return []string{"GIT_AUTHOR_DATE=" + date, "GIT_COMMITTER_DATE=" + date}
}

// execPath is the folder of git's internal programs.
var execPath = sync.OnceValues(func() (string, error) {
	path, err := new(Repo).try("", "--exec-path")
	return strings.TrimSpace(path), err
})

// program returns the path of an internal program of git.
func (r *Repo) program(name string) string {
	r.t.Helper()
	path, err := execPath()
	if err == nil {
		path, err = exec.LookPath(filepath.Join(path, name))
	}
	r.check(name, err)
	return path
}

// Env returns a hermetic environment for the git command: only the repository's configuration, no prompts, and the
// fixed identity Dev <dev@example.com>.
func Env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=/nonexistent",
		"LC_ALL=C",
		"TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=Dev",
		"GIT_AUTHOR_EMAIL=dev@example.com",
		"GIT_COMMITTER_NAME=Dev",
		"GIT_COMMITTER_EMAIL=dev@example.com",
	}
}

func lines(s string) []string {
	if s = strings.TrimSpace(s); s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
