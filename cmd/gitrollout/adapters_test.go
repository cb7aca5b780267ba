package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/rollout"
)

const testConfig = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n"

func newRepository(t *testing.T, files map[string]string) (*gittest.Repo, *adapters.Repository) {
	t.Helper()
	remote := gittest.New(t)
	remote.CommitFiles("first", files)
	r, err := openRepository(t.Context(), git.Options{URL: remote.Bare, Branch: "main", Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return remote, r
}

func fetch(t *testing.T, r *adapters.Repository) rollout.Heads {
	t.Helper()
	heads, err := r.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return heads
}

func TestRepositoryPushes(t *testing.T) {
	_, r := newRepository(t, map[string]string{rollout.ConfigPath("test"): testConfig})
	heads := fetch(t, r)
	state, proposal := "gitrollout/state/test", "gitrollout/promote/test/shop"
	push := func(updates ...rollout.Update) (map[string]string, error) { return r.Push(t.Context(), updates) }
	when := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	first := rollout.Update{Branch: state, Edits: map[string][]byte{"a": []byte("1")}, Message: "m", When: when}
	made, err := push(first, rollout.Update{Branch: proposal, Parent: heads.Main, Edits: map[string][]byte{"b": []byte("1")}, Message: "p", When: when})
	if err != nil || made[state] == "" || made[proposal] == "" {
		t.Fatalf("made %v, error %v", made, err)
	}
	if heads = fetch(t, r); heads.State != made[state] || heads.Proposals[proposal] != made[proposal] {
		t.Errorf("heads %+v after pushing %v", heads, made)
	}

	t.Run("a branch with the same content stays", func(t *testing.T) {
		again, err := push(rollout.Update{Branch: state, Old: made[state], Parent: made[state], Edits: first.Edits, Message: "m", When: when})
		if err != nil || again[state] != made[state] {
			t.Errorf("made %v, error %v", again, err)
		}
	})
	t.Run("a lost race is the loop's conflict", func(t *testing.T) {
		_, err := push(rollout.Update{Branch: state, Edits: map[string][]byte{"a": []byte("2")}, Message: "m", When: when})
		if !errors.Is(err, rollout.ErrConflict) || !errors.Is(err, git.ErrConflict) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a proposal is renewed on a newer parent, and removed", func(t *testing.T) {
		renewed, err := push(rollout.Update{Branch: proposal, Old: made[proposal], Parent: heads.Main, Edits: map[string][]byte{"b": []byte("2")}, Message: "p", When: when})
		if err != nil || renewed[proposal] == made[proposal] {
			t.Fatalf("made %v, error %v", renewed, err)
		}
		if _, err := push(rollout.Update{Branch: proposal, Old: renewed[proposal], Delete: true}); err != nil {
			t.Fatal(err)
		}
		if heads := fetch(t, r); len(heads.Proposals) != 0 {
			t.Errorf("proposals %v are left", heads.Proposals)
		}
	})
}

func TestRepositoryFollowsTheStateBranch(t *testing.T) {
	remote, r := newRepository(t, map[string]string{rollout.ConfigPath("test"): testConfig})
	if heads := fetch(t, r); heads.State != "" {
		t.Fatalf("state is at %s", heads.State)
	}
	other := "gitrollout/state/elsewhere"
	made, err := r.Push(t.Context(), []rollout.Update{{Branch: other, Edits: map[string][]byte{"a": []byte("1")}, Message: "m", When: time.Unix(1, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	remote.CommitFiles("another state branch", map[string]string{rollout.ConfigPath("test"): testConfig + "stateBranch: " + other + "\n"})
	if heads := fetch(t, r); heads.State != made[other] {
		t.Errorf("state is at %q, want %s", heads.State, made[other])
	}
	remote.CommitFiles("a broken configuration changes nothing", map[string]string{rollout.ConfigPath("test"): "apps: 3\n"})
	if heads := fetch(t, r); heads.State != made[other] {
		t.Errorf("state is at %q, want %s", heads.State, made[other])
	}
}

// TestDirTreeIsTheCommit reads the same files from a folder and from a commit.
func TestDirTreeIsTheCommit(t *testing.T) {
	remote, r := newRepository(t, map[string]string{"a/b/c.yaml": "c", "a/d.yaml": "d", "e": ""})
	for link, target := range map[string]string{"a/link": "../e", "a/dir": "b", "out": "/etc"} {
		if err := os.Symlink(target, filepath.Join(remote.Work, link)); err != nil {
			t.Fatal(err)
		}
	}
	remote.CommitFiles("links", nil)
	commit, err := r.Snapshot(t.Context(), fetch(t, r).Main)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := openDir(remote.Work)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "a", "a/b", "a/b/c.yaml", "a/link", "a/dir", "a/dir/c.yaml", "out", "out/passwd", "e/f", "none", "none/none", ".git", ".git/config", "../x", "/etc"} {
		want, wantFound, _ := commit.Lookup(path)
		got, found, err := dir.Lookup(path)
		if err != nil || found != wantFound || got.Kind != want.Kind || got.Name != want.Name {
			t.Errorf("Lookup(%q) = %+v, %t, %v; the commit has %+v, %t", path, got, found, err, want, wantFound)
		}
		switch want.Kind {
		case rollout.Dir:
			if diff := compare.Diff(children(t, commit.ReadDir, path), children(t, dir.ReadDir, path)); diff != "" {
				t.Errorf("ReadDir(%q) (-commit +folder):\n%s", path, diff)
			}
		case rollout.File, rollout.Symlink:
			wantData, _ := commit.ReadBlob(want.ID)
			data, err := dir.ReadBlob(got.ID)
			if err != nil || string(data) != string(wantData) {
				t.Errorf("%s is %q, error %v; the commit has %q", path, data, err, wantData)
			}
		}
	}
}

func children(t *testing.T, read func(string) ([]rollout.Entry, error), path string) map[string]rollout.EntryKind {
	t.Helper()
	entries, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]rollout.EntryKind{}
	for _, e := range entries {
		out[e.Name] = e.Kind
	}
	return out
}

func TestHelpShowsNoCredentials(t *testing.T) {
	t.Setenv("GITROLLOUT_REPO", "https://ann:s3cret@git.example.com/shop.git")
	var out strings.Builder
	if code := run(t.Context(), []string{"run", "--help"}, nil, &out, &out); code != 0 || strings.Contains(out.String(), "s3cret") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}
