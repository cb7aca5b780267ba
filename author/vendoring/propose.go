package vendoring

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// WorkingCopy is the folder of a clone.
type WorkingCopy string

// Clean returns an error if the working copy has changes, because a proposal would include the changes.
func (w WorkingCopy) Clean(ctx context.Context) error {
	changes, err := w.git(ctx, nil, "status", "--porcelain")
	if err == nil && changes != "" {
		return errors.New("the working copy has changes, which the proposal would include: commit or stash these changes")
	}
	return err
}

// Commit commits all changes on top of HEAD. If there are none, it returns "". The working copy stays unchanged. If
// origin's branch already has a commit with the same tree and parent, Commit returns that commit.
func (w WorkingCopy) Commit(ctx context.Context, branch, message string) (string, error) {
	temp, err := os.MkdirTemp("", "gitrollout-vendor")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	git := func(args ...string) (out string) {
		if err == nil {
			out, err = w.git(ctx, []string{"GIT_INDEX_FILE=" + filepath.Join(temp, "index")}, args...)
		}
		return out
	}
	head, was := git("rev-parse", "HEAD"), git("rev-parse", "HEAD^{tree}")
	git("read-tree", "HEAD")
	git("add", "--all", ":/")
	tree := git("write-tree")
	if err != nil || tree == was {
		return "", err
	}
	if _, missing := w.git(ctx, nil, "fetch", "--quiet", "origin", branch); missing == nil {
		there := git("rev-parse", "FETCH_HEAD")
		if git("rev-parse", "FETCH_HEAD^{tree}") == tree && git("rev-parse", "FETCH_HEAD^") == head {
			return there, err
		}
	}
	return git("commit-tree", tree, "-p", head, "-m", message), err
}

// Push forces origin's branch to a commit.
func (w WorkingCopy) Push(ctx context.Context, commit, branch string) error {
	_, err := w.git(ctx, nil, "push", "--quiet", "--force", "origin", commit+":refs/heads/"+branch)
	return err
}

func (w WorkingCopy) git(ctx context.Context, env []string, args ...string) (string, error) {
	out, err := runGit(ctx, []string{"-C", string(w)}, env, args...)
	return strings.TrimSpace(out), err
}
