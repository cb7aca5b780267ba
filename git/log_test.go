package git_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// A log is read in steps, and no further than it takes.
func TestLog(t *testing.T) {
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"f": "0"})
	var stream strings.Builder
	const commits = 250
	for i := 1; i <= commits; i++ {
		text := fmt.Sprint(i)
		fmt.Fprintf(&stream, "commit refs/heads/state\ncommitter a <a@b> %d +0000\ndata %d\n%s\nM 644 inline f\ndata %d\n%s\n\n", 1e9+i, len(text), text, len(text), text)
	}
	repo.FastImport(stream.String())
	tip := repo.Ref("state")

	for _, c := range []struct {
		name          string
		limit, enough int
		visited       int
		whole         bool
		fetches       int64
	}{
		{"the newest", 1000, 1, 1, false, 1},
		{"some", 1000, 40, 40, false, 2},
		{"all", 1000, 1000, commits, true, 3},
		{"exactly all", commits, 1000, commits, true, 3},
		{"limited", 120, 1000, 120, false, 3},
		{"one", 1, 1000, 1, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mirrorOf(t, repo)
			n := 0
			whole, err := m.Log(t.Context(), tip, c.limit, func(s *git.Snapshot) (bool, error) {
				data, err := s.ReadFile("f")
				if want := fmt.Sprint(commits - n); err == nil && (string(data) != want || s.Commit().Subject != want) {
					t.Errorf("commit %d: file %q, subject %q", n, data, s.Commit().Subject)
				}
				n++
				return n < c.enough, err
			})
			if err != nil || n != c.visited || whole != c.whole {
				t.Errorf("visited %d, whole %t, error %v; want %d, %t", n, whole, err, c.visited, c.whole)
			}
			if got := m.Stats().Fetches; got != c.fetches {
				t.Errorf("%d fetches, want %d", got, c.fetches)
			}
		})
	}
	t.Run("an error ends it", func(t *testing.T) {
		m := mirrorOf(t, repo)
		stop := errors.New("stop")
		if _, err := m.Log(t.Context(), tip, 10, func(*git.Snapshot) (bool, error) { return true, stop }); !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	})
}

func mirrorOf(t *testing.T, repo *gittest.Repo) *git.Repo {
	t.Helper()
	m, err := git.Open(t.Context(), git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL, Branch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
