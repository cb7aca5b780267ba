package git_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"sort"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// model maps files' paths to their content.
type model map[string]string

var errModel = errors.New("not possible")

// apply applies edits as the documentation of Update.Edits says.
func (m model) apply(edits map[string][]byte) (model, error) {
	next := maps.Clone(m)
	maps.DeleteFunc(next, func(old, _ string) bool {
		for p, content := range edits {
			if content == nil && (old == p || strings.HasPrefix(old, p+"/")) {
				return true
			}
		}
		return false
	})
	for p, content := range edits {
		if content == nil {
			continue
		}
		for other := range next {
			if strings.HasPrefix(other, p+"/") {
				return nil, errModel // p is a directory
			}
		}
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, ok := next[dir]; ok {
				return nil, errModel // a parent of p is a file
			}
		}
		next[p] = string(content)
	}
	return next, nil
}

func readAll(t *testing.T, s *git.Snapshot) model {
	t.Helper()
	m := model{}
	walk(t, s, "", func(file string, e rollout.Entry) {
		if e.Kind != rollout.Dir {
			content, err := s.ReadFile(file)
			must(t, err)
			m[file] = string(content)
		}
	})
	return m
}

// randomEdits returns edits whose paths often collide, because all paths are built from six names. Git sorts some of these names
// differently for a directory.
func randomEdits(r *rand.Rand) map[string][]byte {
	names := []string{"a", "a.b", "a-", "b", "c0", "ü"}
	edits := map[string][]byte{}
	for range 1 + r.IntN(4) {
		p := names[r.IntN(len(names))]
		for range r.IntN(3) {
			p += "/" + names[r.IntN(len(names))]
		}
		if edits[p] = nil; r.IntN(3) > 0 {
			edits[p] = []byte(fmt.Sprint(r.IntN(3)))
		}
	}
	return edits
}

// TestEditsAgainstModel applies random edits one after the other. After each push, the files must equal the model's. At
// the end, git fsck must accept the order and the modes in all trees.
func TestEditsAgainstModel(t *testing.T) {
	repo := gittest.New(t)
	r := mirrorOf(t, repo)
	random := rand.New(rand.NewPCG(1, 2))
	want, base, commits := model{}, "", 0
	for i := range 200 {
		edits := randomEdits(random)
		next, wantErr := want.apply(edits)
		ids, err := pushAll(t.Context(), r, update("main", base, fmt.Sprint(i), edits))
		if wantErr != nil {
			if err == nil {
				t.Fatalf("edits %q on %q were allowed", edits, want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("edits %q on %q: %v", edits, want, err)
		}
		if unchanged := base != "" && compare.Equal(want, next); unchanged != (ids[0] == "") {
			t.Fatalf("edits %q on %q: commit %q", edits, want, ids[0])
		}
		if want = next; ids[0] == "" {
			continue
		}
		base = ids[0]
		commits++
		if diff := compare.Diff(want, readAll(t, snapshot(t, r, base))); diff != "" {
			t.Fatalf("after %q (-model +snapshot):\n%s", edits, diff)
		}
	}
	if commits < 40 {
		t.Fatalf("only %d commits: the test tests little", commits)
	}
	repo.Fsck()
	compare.CheckNamed(t, "files", slices.Sorted(maps.Keys(want)), repo.Files("main"))
}

func TestEditsKeepModes(t *testing.T) {
	repo := gittest.New(t)
	repo.Write(map[string]string{"run.sh": "1", "f": "1"})
	must(t, os.Chmod(repo.Work+"/run.sh", 0o755))
	must(t, os.Symlink("f", repo.Work+"/link"))
	base := repo.Commit("first")
	edits := map[string][]byte{"run.sh": []byte("2"), "link": []byte("a file now"), "new": {}, "f": nil}
	push(t, open(t, git.Options{URL: repo.Bare, Branch: "main"}), update("main", base, "m", edits))
	want := "100644 link\n100644 new\n100755 run.sh"
	if got := repo.InBare("ls-tree", "-r", "--format=%(objectmode) %(path)", "main"); got != want {
		t.Errorf("modes:\n%s\nwant:\n%s", got, want)
	}
	repo.Fsck()
}

func TestEditPathsRefused(t *testing.T) {
	repo := gittest.New(t)
	base := repo.CommitFiles("first", map[string]string{"f": "1", "d/g": "1"})
	r := open(t, git.Options{URL: repo.Bare, Branch: "main"})
	for _, p := range []string{
		"", ".", "/", "/abs", "a/", "a//b", "../x", "a/../b", "./a", ".git", "a/.GIT/hooks/x", ".git.", ".git /x",
		"git~1", ".g\u200cit", ".git::$INDEX_ALLOCATION", `a\b`, "a\x00b", ".gitmodules", "GITMOD~1", "f/below", "d",
	} {
		if _, err := pushAll(t.Context(), r, update("main", base, "m", map[string][]byte{p: []byte("x")})); err == nil {
			t.Errorf("writing %q was allowed", p)
		}
	}
	if repo.Head() != base {
		t.Error("something was pushed")
	}
}

func TestChanges(t *testing.T) {
	repo := gittest.New(t)
	files := map[string]string{"top": "1", "sub/x": "1"}
	for i := range 300 {
		files[fmt.Sprintf("apps/%d/%d.yaml", i/10, i)] = fmt.Sprint(i)
	}
	old := repo.CommitFiles("old", files)
	repo.Remove("top", "apps/3", "sub").Write(map[string]string{"apps/7/70.yaml": "new", "apps/7/a": "added", "sub": "now a file"})
	fresh := repo.Commit("new")
	r := open(t, git.Options{URL: repo.Bare, Branch: "main"})
	a, b := snapshot(t, r, old), snapshot(t, r, fresh)
	for _, dir := range []string{"", ".", "apps", "apps/7", "apps/3", "sub", "nope"} {
		changes, err := git.Changes(a, b, dir)
		must(t, err)
		var got []string
		for _, c := range changes {
			status := "M"
			if c.Old.Kind == "" {
				status = "A"
			} else if c.New.Kind == "" {
				status = "D"
			}
			got = append(got, status+"\t"+c.Path)
		}
		args := []string{"diff-tree", "-r", "--name-status", old, fresh}
		if dir != "" && dir != "." {
			args = append(args, "--", dir)
		}
		want := strings.Split(repo.InBare(args...), "\n")
		if want[0] == "" {
			want = nil
		}
		sort.Strings(got)
		sort.Strings(want)
		compare.CheckNamed(t, "changes of "+dir, want, got)
	}
}
