package git_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

func proposal(app, base, parent string) rollout.Update {
	return rollout.Update{
		Branch: "gitrollout/promote/prod/" + app, Old: base, Parent: parent,
		Edits:   map[string][]byte{".gitrollout/prod/promote/" + app + ".yaml": []byte("through: full\n")},
		Message: "promote " + app, When: when,
	}
}

func atomicPush(w *world) {
	r := w.open()
	heads := w.fetch(r)
	ids := w.push(r, stateUpdate("", "x", "1"), proposal("shop", "", heads.Main), proposal("cart", "", heads.Main))
	heads = w.fetch(r)
	want := map[string]string{"gitrollout/promote/prod/shop": ids[1], "gitrollout/promote/prod/cart": ids[2]}
	if diff := compare.Diff(want, heads.Proposals); diff != "" || heads.State != ids[0] {
		w.Errorf("heads %+v (-want +got):\n%s", heads, diff)
	}
	pushes := r.Stats().Pushes
	if pushes != 1 {
		w.Errorf("%d pushes for one Push", pushes)
	}
	// One outdated update rejects the whole push.
	w.server.InBare("update-ref", "-d", "refs/heads/gitrollout/promote/prod/cart")
	refs := w.server.Refs()
	_, err := pushAll(w.Context(), r, stateUpdate(ids[0], "x", "2"), rollout.Update{Branch: "gitrollout/promote/prod/shop", Old: ids[1], Delete: true},
		proposal("cart", ids[2], w.server.CommitFiles("next", map[string]string{"n": "1"})))
	if !errors.Is(err, git.ErrConflict) {
		w.Errorf("Push with a stale update: %v, want ErrConflict", err)
	}
	refs["refs/heads/main"] = w.server.Head()
	if diff := compare.Diff(refs, w.server.Refs()); diff != "" {
		w.Errorf("refs moved (-before +after):\n%s", diff)
	}
}

func proposals(w *world) {
	r := w.open()
	heads := w.fetch(r)
	first := w.push(r, proposal("shop", "", heads.Main))[0]
	main := w.server.CommitFiles("next", map[string]string{"n": "1"})
	second := w.push(r, proposal("shop", first, main))[0]
	if got := w.server.InBare("rev-parse", "gitrollout/promote/prod/shop~1"); got != main {
		w.Errorf("the renewed proposal stands on %s, want %s", got, main)
	}
	other := w.open()
	heads = w.fetch(other)
	s := w.snapshot(other, heads.Proposals["gitrollout/promote/prod/shop"])
	if got, err := s.ReadFile(".gitrollout/prod/promote/shop.yaml"); string(got) != "through: full\n" {
		w.Errorf("the proposal's file = %q, %v", got, err)
	}
	remove := rollout.Update{Branch: "gitrollout/promote/prod/shop", Old: first, Delete: true}
	if _, err := pushAll(w.Context(), r, remove); !errors.Is(err, git.ErrConflict) {
		w.Errorf("removing a proposal that has moved: %v, want ErrConflict", err)
	}
	remove.Old = second
	w.push(r, remove)
	if heads := w.fetch(r); len(heads.Proposals) != 0 {
		w.Errorf("proposals left: %v", heads.Proposals)
	}
	w.push(r, remove) // a repeated removal is harmless

	// A revert proposal: files as they were.
	main = w.server.CommitFiles("bad", map[string]string{"apps/shop/app.yaml": "v2\n", "apps/shop/new": "x", "other": "stays"})
	w.push(r, rollout.Update{Branch: "gitrollout/revert/prod/shop", Parent: main, Message: "revert", When: when,
		Edits: map[string][]byte{"apps/shop/app.yaml": []byte("v1\n"), "apps/shop/new": nil}})
	if got := w.server.Git("diff", "--stat", fetched(w, "gitrollout/revert/prod/shop"), w.server.Git("rev-parse", "HEAD~1"), "--", "apps"); got != "" {
		w.Errorf("apps differ after the revert: %s", got)
	}
	w.server.Merge("gitrollout/revert/prod/shop")
	if got := w.server.Show("main", "apps/shop/app.yaml") + w.server.Show("main", "other"); got != "v1\nstays" {
		w.Errorf("after the merge: %q", got)
	}
	head, edits := w.server.Head(), map[string][]byte{"f": nil}
	for want, u := range map[string]rollout.Update{
		"only proposals may be deleted": {Branch: "main", Old: head, Delete: true},
		"only proposals may be forced":  {Branch: "main", Old: head, Parent: main, Edits: edits, Message: "m", When: when},
		"no parent and is forced":       {Branch: "main", Old: head, Edits: edits, Message: "m", When: when},
		"bad name":                      {Branch: "bad name", Message: "m", When: when},
	} {
		_, err := pushAll(w.Context(), r, u)
		if want = strings.Replace(want, "no parent and is", "only proposals may be", 1); err == nil || !strings.Contains(err.Error(), want) {
			w.Errorf("Push(%+v): %v, want %q", u, err, want)
		}
	}
}

func deterministic(w *world) {
	a, b := w.open(), w.open()
	heads := w.fetch(a)
	updates := []rollout.Update{stateUpdate("", "x/y", "1"), proposal("shop", "", heads.Main)}
	first := w.push(a, updates...)
	// The same push by a process that does not know of its success: success, and the same commits.
	w.fetch(b)
	if again := w.push(b, updates...); !compare.Equal(first, again) {
		w.Errorf("made %v, then %v", first, again)
	}
	if heads := w.fetch(b); heads.State != first[0] {
		w.Errorf("heads %+v", heads)
	}
	if got := w.server.Message(first[0]); got != "prod: x/y" {
		w.Errorf("message %q", got)
	}
	if got := w.server.InBare("log", "-1", "--format=%an <%ae> %at %cn <%ce> %ct %ai", first[0]); got !=
		"gitrollout <gitrollout@noreply.invalid> 1795176000 gitrollout <gitrollout@noreply.invalid> 1795176000 2026-11-20 12:00:00 +0000" {
		w.Errorf("stamps %q", got)
	}
}

func secondCommit(t *testing.T, r *gittest.Repo) {
	t.Helper()
	r.CommitFiles("second", map[string]string{"apps/shop/app.yaml": "v2\n"})
}

func forcePushed(w *world) {
	first, second := w.server.InBare("rev-parse", "main~1"), w.server.Head()
	r := w.open()
	w.fetch(r)
	held := w.snapshot(r, second)
	w.server.ForcePush(first)
	w.server.CommitFiles("other", map[string]string{"apps/shop/app.yaml": "v3\n"})
	w.server.InBare("reflog", "expire", "--expire=now", "--all")
	w.server.InBare("gc", "-q", "--prune=now")
	heads := w.fetch(r)
	if heads.Main != w.server.Head() {
		w.Errorf("heads %+v", heads)
	}
	sameAsGit(w, r, heads.Main)
	if got, err := held.ReadFile("apps/shop/app.yaml"); string(got) != "v2\n" {
		w.Errorf("a snapshot from before: %q, %v", got, err)
	}
	other := w.open()
	w.fetch(other)
	for range 2 {
		_, err := other.Snapshot(w.Context(), second)
		if !errors.Is(err, git.ErrNotFound) || !errors.Is(err, fs.ErrNotExist) {
			w.Errorf("a lost commit: %v, want ErrNotFound", err)
		}
	}
	before := other.Stats().Requests
	_, _ = other.Snapshot(w.Context(), second)
	if other.Stats().Requests != before {
		w.Error("a lost commit is asked for again and again")
	}
}

func fiveCommits(t *testing.T, r *gittest.Repo) {
	t.Helper()
	for i := range 5 {
		r.CommitFiles(fmt.Sprint("c", i), map[string]string{"apps/shop/app.yaml": fmt.Sprint(i)})
	}
}

func fetchByID(w *world) {
	first := w.server.InBare("rev-parse", "main~5")
	r := w.open()
	w.fetch(r)
	sameAsGit(w, r, first)
	sameAsGit(w, r, w.server.InBare("rev-parse", "main~2"))
	before := r.Stats()
	w.snapshot(r, first)
	if r.Stats() != before {
		w.Error("a commit that is here was fetched again")
	}
	// Without an earlier Fetch, as after a restart.
	sameAsGit(w, w.open(), w.server.InBare("rev-parse", "main~3"))
	for _, id := range []string{"", "main", first[:12], strings.ToUpper(first), first + "0"} {
		if _, err := r.Snapshot(w.Context(), id); err == nil {
			w.Errorf("Snapshot(%q) was allowed", id)
		}
	}
}

func missing(w *world) {
	w.opts.Branch = "production"
	r := w.open()
	_, err := r.Fetch(w.Context())
	if !errors.Is(err, git.ErrNotFound) || !strings.Contains(err.Error(), `"production"`) || !strings.Contains(err.Error(), r.Remote().String()) {
		w.Errorf("missing branch: %v", err)
	}
	w.server.InBare("update-ref", "refs/heads/production", "refs/heads/main")
	w.fetch(r)
	w.push(r, stateUpdate("", "x", "1"))
	w.server.InBare("update-ref", "-d", "refs/heads/"+stateBranch)
	if heads := w.fetch(r); heads.State != "" {
		w.Errorf("after the state branch was deleted: %+v", heads)
	}
	w.opts.Branch = ""
	opts := w.opts
	byDefault, err := git.Open(w.Context(), opts)
	if err != nil {
		w.Fatal(err)
	}
	if heads := w.fetch(byDefault); heads.Main != w.server.Head() || byDefault.Branch() != "main" {
		w.Errorf("default branch: %+v on %q", heads, byDefault.Branch())
	}
	for _, ref := range []string{"main", "production"} {
		w.server.InBare("update-ref", "-d", "refs/heads/"+ref)
	}
	empty, err := git.Open(w.Context(), opts)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := empty.Fetch(w.Context()); !errors.Is(err, git.ErrNotFound) || !strings.Contains(err.Error(), "empty") {
		w.Errorf("empty repository: %v", err)
	}
	// An empty repository accepts a push.
	w.push(empty, rollout.Update{Branch: "main", Edits: map[string][]byte{"f": []byte("x")}, Message: "begin", When: when})
	w.server.Fsck()
	if err := os.Rename(w.server.Bare, w.server.Bare+".away"); err != nil {
		w.Fatal(err)
	}
	defer os.Rename(w.server.Bare+".away", w.server.Bare)
	if _, err := r.Fetch(w.Context()); !errors.Is(err, git.ErrNotFound) {
		w.Errorf("vanished repository: %v, want ErrNotFound", err)
	}
}

func hookRefusal(w *world) {
	r := w.open()
	w.fetch(r)
	refs := w.server.Refs()
	w.server.Hook("pre-receive", "echo 'only on weekdays, please'; exit 1")
	_, err := pushAll(w.Context(), r, stateUpdate("", "x", "1"))
	if !errors.Is(err, git.ErrRejected) || errors.Is(err, git.ErrConflict) || !strings.Contains(err.Error(), "only on weekdays") {
		w.Errorf("pre-receive hook: %v, want ErrRejected with its message", err)
	}
	w.server.Hook("pre-receive", "")
	w.server.Hook("update", `case "$1" in */promote/*) echo "no proposals"; exit 1;; esac`)
	_, err = pushAll(w.Context(), r, stateUpdate("", "x", "1"), proposal("shop", "", w.server.Head()))
	if !errors.Is(err, git.ErrRejected) || !strings.Contains(err.Error(), "gitrollout/promote/prod/shop") {
		w.Errorf("update hook: %v, want ErrRejected", err)
	}
	if diff := compare.Diff(refs, w.server.Refs()); diff != "" {
		w.Errorf("a refused push moved refs (-before +after):\n%s", diff)
	}
	w.server.InBare("config", "receive.denyNonFastForwards", "true")
	w.server.InBare("config", "receive.denyDeletes", "true")
	w.server.Hook("update", "")
	id := w.push(r, proposal("shop", "", w.server.Head()))[0]
	for name, u := range map[string]rollout.Update{
		"delete": {Branch: "gitrollout/promote/prod/shop", Old: id, Delete: true},
		"force":  proposal("shop", id, w.server.CommitFiles("n", map[string]string{"n": "1"})),
	} {
		if _, err := pushAll(w.Context(), r, u); !errors.Is(err, git.ErrRejected) {
			w.Errorf("%s of a protected branch: %v, want ErrRejected", name, err)
		}
	}
}

func commitToBranch(w *world) {
	r := w.open()
	calls := 0
	build := func(s *git.Snapshot) (rollout.Update, error) {
		if calls++; calls <= 2 { // another process pushes first, twice
			w.server.CommitFiles("theirs", map[string]string{"count": fmt.Sprint(calls)})
		}
		old, err := s.ReadFile("count")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return rollout.Update{}, err
		}
		return rollout.Update{Edits: map[string][]byte{"mine": append(old, '!')}, Message: "mine", When: when}, nil
	}
	id, err := r.CommitToBranch(w.Context(), "main", build)
	if err != nil || id != w.server.Head() || calls != 3 {
		w.Fatalf("CommitToBranch = %s, %v after %d calls; head is %s", id, err, calls, w.server.Head())
	}
	if got := w.server.Show("main", "mine"); got != "2!" {
		w.Errorf("mine = %q: it was not decided on the newest commit", got)
	}
	if id, err := r.CommitToBranch(w.Context(), "main", build); id != "" || err != nil {
		w.Errorf("without a change: %q, %v", id, err)
	}
	id, err = r.CommitToBranch(w.Context(), "brand/new", func(s *git.Snapshot) (rollout.Update, error) {
		if entries, err := s.ReadDir(""); len(entries) != 0 || err != nil || s.Commit().ID != "" {
			w.Errorf("a branch that does not exist has %v, %v", entries, err)
		}
		return rollout.Update{Edits: map[string][]byte{"f": {}}, Message: "m", When: when}, nil
	})
	if err != nil || w.server.Ref("brand/new") != id {
		w.Errorf("a new branch: %s, %v", id, err)
	}
	calls = 0
	_, err = r.CommitToBranch(w.Context(), "main", func(*git.Snapshot) (rollout.Update, error) {
		calls++
		w.server.Pull()
		w.server.CommitFiles("always faster", map[string]string{"n": fmt.Sprint(calls)})
		return rollout.Update{Edits: map[string][]byte{"mine": []byte(fmt.Sprint(calls))}, Message: "m", When: when}, nil
	})
	if !errors.Is(err, git.ErrConflict) || calls != git.CommitAttempts {
		w.Errorf("always losing: %v after %d attempts", err, calls)
	}
}

func TestCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := git.Open(ctx, git.Options{URL: "."}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open: %v", err)
	}
}

func compact(w *world) {
	r := w.open()
	w.fetch(r)
	first := w.push(r, stateUpdate("", "apps/a", "1"))[0]
	second := w.push(r, stateUpdate(first, "apps/b", "2"))[0]
	archive := "gitrollout/archive/prod/2026"
	if _, err := r.Compact(w.Context(), stateBranch, archive, first, "anew", when); !errors.Is(err, git.ErrConflict) || w.server.Ref(archive) != "" {
		w.Errorf("Compact of a branch that has moved on: %v, archive %q", err, w.server.Ref(archive))
	}
	root, err := r.Compact(w.Context(), stateBranch, archive, second, "anew", when)
	if err != nil {
		w.Fatal(err)
	}
	if w.server.Ref(stateBranch) != root || w.server.Ref(archive) != second {
		w.Errorf("the branch is at %s, the archive at %s", w.server.Ref(stateBranch), w.server.Ref(archive))
	}
	if parents := w.server.InBare("log", "-1", "--format=%P", root); parents != "" {
		w.Errorf("the new root has a parent: %s", parents)
	}
	if a, b := w.server.InBare("rev-parse", root+"^{tree}"), w.server.InBare("rev-parse", second+"^{tree}"); a != b {
		w.Errorf("its files are %s, want %s", a, b)
	}
	if heads := w.fetch(r); heads.State != root {
		w.Errorf("the next fetch shows %+v", heads)
	}
	other := w.open()
	if heads := w.fetch(other); heads.State != root {
		w.Errorf("another mirror shows %+v", heads)
	}
	w.push(other, stateUpdate(root, "apps/a", "3"))
	if n := w.server.InBare("rev-list", "--count", stateBranch); n != "2" {
		w.Errorf("%s commits after the next one", n)
	}
	w.server.Fsck()
}
