package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestRefThatCannotBeWritten checks pushes to a ref that the server can never write, for example because of a stale lock. The first push
// returns ErrConflict, and later pushes return ErrRejected with the server's message. When the cause is removed, a push succeeds.
func TestRefThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	lockOf := func(repo *gittest.Repo) string { return filepath.Join(repo.Bare, "refs/heads", stateBranch+".lock") }
	for name, c := range map[string]struct {
		trouble, mended func(t *testing.T, repo *gittest.Repo)
	}{
		"a stale lock": {
			func(t *testing.T, repo *gittest.Repo) {
				lock := lockOf(repo)
				must(t, errors.Join(os.MkdirAll(filepath.Dir(lock), 0o755), os.WriteFile(lock, nil, 0o644)))
			},
			func(t *testing.T, repo *gittest.Repo) { must(t, os.Remove(lockOf(repo))) },
		},
		"a branch below": {
			func(_ *testing.T, repo *gittest.Repo) { repo.InBare("branch", stateBranch+"/x", "main") },
			func(_ *testing.T, repo *gittest.Repo) { repo.InBare("branch", "-D", stateBranch+"/x") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.New(t)
			repo.Write(map[string]string{"a": "1"}).Commit("first")
			repo.Push()
			c.trouble(t, repo)
			r := open(t, git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL, StateBranch: stateBranch})
			fetch(t, r)
			for i := range 4 {
				_, err := pushAll(t.Context(), r, stateUpdate("", "x", fmt.Sprint(i)))
				if i == 0 {
					wantError(t, "the first push", err, git.ErrConflict)
					continue
				}
				if wantError(t, "a later push", err, git.ErrRejected, "ref"); errors.Is(err, git.ErrConflict) {
					t.Errorf("push %d is a conflict: %v", i, err)
				}
			}
			c.mended(t, repo)
			push(t, r, stateUpdate("", "x", "again"))
		})
	}
}
