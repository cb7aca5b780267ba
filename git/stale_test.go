package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestRefThatCannotBeWritten checks a ref that the server cannot write, without a concurrent push. The first try
// returns the server's error, and a later one succeeds when the cause is gone.
func TestRefThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	const branch = "gitrollout/state/prod"
	for name, c := range map[string]struct {
		trouble, mended func(t *testing.T, repo *gittest.Repo)
	}{
		"a stale lock": {
			func(t *testing.T, repo *gittest.Repo) {
				lock := filepath.Join(repo.Bare, "refs/heads", branch+".lock")
				if err := errors.Join(os.MkdirAll(filepath.Dir(lock), 0o755), os.WriteFile(lock, nil, 0o644)); err != nil {
					t.Fatal(err)
				}
			},
			func(t *testing.T, repo *gittest.Repo) {
				if err := os.Remove(filepath.Join(repo.Bare, "refs/heads", branch+".lock")); err != nil {
					t.Fatal(err)
				}
			},
		},
		"a branch below": {
			func(_ *testing.T, repo *gittest.Repo) { repo.InBare("branch", branch+"/x", "main") },
			func(_ *testing.T, repo *gittest.Repo) { repo.InBare("branch", "-D", branch+"/x") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.New(t)
			repo.Write(map[string]string{"a": "1"}).Commit("first")
			repo.Push()
			c.trouble(t, repo)
			r, err := git.Open(t.Context(), git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL, StateBranch: branch})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Fetch(t.Context()); err != nil {
				t.Fatal(err)
			}
			push := func(content string) error {
				_, err := r.Push(t.Context(), []rollout.Update{{
					Branch: branch, Edits: map[string][]byte{"x": []byte(content)}, Message: "m", When: time.Now(),
				}})
				return err
			}
			for i := range 4 {
				err := push(string(rune('0' + i)))
				if is := errors.Is(err, git.ErrConflict); is != (i == 0) || i > 0 && (!errors.Is(err, git.ErrRejected) || !strings.Contains(err.Error(), "ref")) {
					t.Errorf("push %d: %v", i, err)
				}
			}
			c.mended(t, repo)
			if err := push("again"); err != nil {
				t.Errorf("after it was mended: %v", err)
			}
		})
	}
}
