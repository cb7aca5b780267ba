package git_test

import (
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestWhatIsBetween checks fetches after different changes of main. One request gets all commits between the old and the new head. If files
// are then missing, a second request gets the new head. All files must be correct, and the number of received bytes is limited.
func TestWhatIsBetween(t *testing.T) {
	t.Parallel()
	type repo struct {
		*gittest.Repo
		big string // a file that does not compress
	}
	begun := repo{gittest.New(t), randomText(20_000)}
	files := map[string]string{"big": begun.big}
	for i := range 200 {
		files[fmt.Sprintf("f/%d", i)] = randomText(400)
	}
	begun.CommitFiles("first", files)
	manyCommits(begun.Repo, "old", 8)
	begun.CommitFiles("bad", map[string]string{"big": "small"})
	for name, c := range map[string]struct {
		change   func(repo)
		packs    int64 // the maximum number of requests for a pack
		received int64
	}{
		"a commit":          {func(r repo) { r.CommitFiles("one", map[string]string{"new": "x"}) }, 1, 1500},
		"a push of commits": {func(r repo) { manyCommits(r.Repo, "new", 8) }, 1, 6000},
		"a merge of a topic newer than our clone": {func(r repo) {
			onBranch(r.Repo, "topic", "main", func() { r.CommitFiles("topic", map[string]string{"topic": "x"}) })
			r.CommitFiles("next", map[string]string{"next": "x"})
			r.Merge("topic")
		}, 1, 2500},
		"a merge of a topic older than our clone": {func(r repo) {
			onBranch(r.Repo, "topic", "main~6", func() { r.CommitFiles("topic", map[string]string{"topic": "x"}) })
			r.Merge("topic")
		}, 2, 4000},
		"a revert":                          {func(r repo) { r.CommitFiles("more", map[string]string{"f/0": "x"}); r.Revert("HEAD") }, 1, 3000},
		"a revert to before our clone":      {func(r repo) { r.Revert("HEAD") }, 2, 30_000},
		"back to a commit before our clone": {func(r repo) { r.ForcePush("HEAD~3") }, 2, 30_000},
		"the last commit, written again":    {func(r repo) { r.Git("commit", "-q", "--amend", "-m", "again"); r.ForcePush("HEAD") }, 1, 25_000},
		"a history that is written anew":    {func(r repo) { rewritten(r.Repo) }, 2, 5 << 20 / times},
	} {
		for _, bitmaps := range []bool{false, true} {
			if bitmaps && testing.Short() && c.packs == 1 {
				continue // with -short, bitmaps are tested only in cases with several requests
			}
			t.Run(fmt.Sprintf("%s, bitmaps %t", name, bitmaps), func(t *testing.T) {
				t.Parallel()
				r := repo{begun.Copy(t), begun.big}
				w := &world{T: t, server: r.Repo, opts: git.Options{URL: r.HTTP(gittest.HTTPOptions{}).URL}}
				mirror := w.open().Narrow(times)
				fetch(w, mirror)
				state := push(w, mirror, stateUpdate("", "x", "1"))[0]
				before := mirror.Stats()
				c.change(r)
				if bitmaps {
					r.InBare("repack", "-a", "-d", "-q", "--write-bitmap-index")
				}
				heads := fetch(w, mirror)
				spent := minus(mirror.Stats(), before)
				if spent.Fetches > c.packs || spent.Received > c.received {
					t.Errorf("%d packs and %d bytes, want at most %d and %d", spent.Fetches, spent.Received, c.packs, c.received)
				}
				if !held(mirror, heads.Main) || heads.State != state {
					t.Errorf("heads %+v", heads)
				}
				sameAsGit(w, mirror, heads.Main)
				sameAsGit(w, mirror, state)
				// Log must return earlier commits with all their files, even if the fetch did not get all of them.
				n := 0
				if _, err := mirror.Log(t.Context(), heads.Main, 5, func(s *git.Snapshot) (bool, error) {
					n++
					sameAsGit(w, mirror, s.Commit().ID)
					return true, nil
				}); err != nil || n == 0 {
					t.Errorf("log: %d commits, %v", n, err)
				}
			})
		}
	}
}

// commit commits all changes in the worktree without a push.
func commit(r *gittest.Repo, message string) {
	r.Git("add", "--all")
	r.Git("commit", "-q", "-m", message)
}

// rewritten gives main a new history. The history's pack is larger than the limit for a fetch between two heads.
func rewritten(r *gittest.Repo) {
	r.Git("checkout", "-q", "--orphan", "anew")
	for i := range 6 {
		commit(r.Write(map[string]string{"past": randomText(1<<20/times + i)}), "anew")
	}
	commit(r.Remove("past"), "anew")
	r.Git("push", "-q", "--force", "origin", "HEAD:main")
}

func manyCommits(r *gittest.Repo, text string, n int) {
	for i := range n {
		commit(r.Write(map[string]string{"log": fmt.Sprintln(text, i)}), fmt.Sprint("log ", i))
	}
	r.Push()
}
