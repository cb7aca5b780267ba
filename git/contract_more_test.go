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
	edits := map[string][]byte{".gitrollout/prod/promote/" + app + ".yaml": []byte("through: full\n")}
	u := update("gitrollout/promote/prod/"+app, base, "promote "+app, edits)
	u.Parent = parent
	return u
}

func atomicPush(w *world) {
	r := w.open()
	heads := fetch(w, r)
	ids := push(w, r, stateUpdate("", "x", "1"), proposal("shop", "", heads.Main), proposal("cart", "", heads.Main))
	heads = fetch(w, r)
	want := map[string]string{"gitrollout/promote/prod/shop": ids[1], "gitrollout/promote/prod/cart": ids[2]}
	compare.CheckNamed(w, "heads", rollout.Heads{Main: heads.Main, State: ids[0], Proposals: want}, heads)
	if pushes := r.Stats().Pushes; pushes != 1 {
		w.Errorf("%d pushes for one Push", pushes)
	}
	// If one update has an outdated Old, the server refuses the whole push.
	w.server.InBare("update-ref", "-d", "refs/heads/gitrollout/promote/prod/cart")
	refs := w.server.Refs()
	_, err := pushAll(w.Context(), r, stateUpdate(ids[0], "x", "2"),
		rollout.Update{Branch: "gitrollout/promote/prod/shop", Old: ids[1], Delete: true},
		proposal("cart", ids[2], w.server.CommitFiles("next", map[string]string{"n": "1"})))
	wantError(w, "a push with a stale update", err, git.ErrConflict)
	refs["refs/heads/main"] = w.server.Head()
	compare.CheckNamed(w, "refs", refs, w.server.Refs())
}

func proposals(w *world) {
	r := w.open()
	heads := fetch(w, r)
	first := push(w, r, proposal("shop", "", heads.Main))[0]
	main := w.server.CommitFiles("next", map[string]string{"n": "1"})
	second := push(w, r, proposal("shop", first, main))[0]
	if got := w.server.InBare("rev-parse", "gitrollout/promote/prod/shop~1"); got != main {
		w.Errorf("the renewed proposal stands on %s, want %s", got, main)
	}
	other := w.open()
	heads = fetch(w, other)
	s := snapshot(w, other, heads.Proposals["gitrollout/promote/prod/shop"])
	if got, err := s.ReadFile(".gitrollout/prod/promote/shop.yaml"); string(got) != "through: full\n" {
		w.Errorf("the proposal's file = %q, %v", got, err)
	}
	remove := rollout.Update{Branch: "gitrollout/promote/prod/shop", Old: first, Delete: true}
	_, err := pushAll(w.Context(), r, remove)
	wantError(w, "removing a proposal that has moved", err, git.ErrConflict)
	remove.Old = second
	push(w, r, remove)
	if heads := fetch(w, r); len(heads.Proposals) != 0 {
		w.Errorf("proposals left: %v", heads.Proposals)
	}
	push(w, r, remove) // repeating a removal is harmless

	// A proposal to revert restores the app's files.
	main = w.server.CommitFiles("bad", map[string]string{"apps/shop/app.yaml": "v2\n", "apps/shop/new": "x", "other": "stays"})
	push(w, r, rollout.Update{Branch: "gitrollout/revert/prod/shop", Parent: main, Message: "revert", When: when,
		Edits: map[string][]byte{"apps/shop/app.yaml": []byte("v1\n"), "apps/shop/new": nil}})
	reverted, before := fetched(w, "gitrollout/revert/prod/shop"), w.server.Git("rev-parse", "HEAD~1")
	if got := w.server.Git("diff", "--stat", reverted, before, "--", "apps"); got != "" {
		w.Errorf("apps differ after the revert: %s", got)
	}
	w.server.Merge("gitrollout/revert/prod/shop")
	if got := w.server.Show("main", "apps/shop/app.yaml") + w.server.Show("main", "other"); got != "v1\nstays" {
		w.Errorf("after the merge: %q", got)
	}
	head, edits := w.server.Head(), map[string][]byte{"f": nil}
	for name, c := range map[string]struct {
		update rollout.Update
		want   string
	}{
		"delete main": {rollout.Update{Branch: "main", Old: head, Delete: true}, "only proposals may be deleted"},
		"another parent": {rollout.Update{Branch: "main", Old: head, Parent: main, Edits: edits, Message: "m", When: when},
			"only proposals may be forced"},
		"no parent": {rollout.Update{Branch: "main", Old: head, Edits: edits, Message: "m", When: when}, "only proposals may be forced"},
		"bad name":  {rollout.Update{Branch: "bad name", Message: "m", When: when}, "bad name"},
	} {
		_, err := pushAll(w.Context(), r, c.update)
		compare.CheckError(w, name, err, c.want)
	}
}

func deterministic(w *world) {
	a, b := w.open(), w.open()
	heads := fetch(w, a)
	updates := []rollout.Update{stateUpdate("", "x/y", "1"), proposal("shop", "", heads.Main)}
	first := push(w, a, updates...)
	// A second process, which has not seen the push, repeats the push and gets the same commits.
	fetch(w, b)
	if again := push(w, b, updates...); !compare.Equal(first, again) {
		w.Errorf("made %v, then %v", first, again)
	}
	wantState(w, "the second process", b, first[0])
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
	fetch(w, r)
	held := snapshot(w, r, second)
	w.server.ForcePush(first)
	w.server.CommitFiles("other", map[string]string{"apps/shop/app.yaml": "v3\n"})
	w.server.InBare("reflog", "expire", "--expire=now", "--all")
	w.server.InBare("gc", "-q", "--prune=now")
	heads := fetch(w, r)
	if heads.Main != w.server.Head() {
		w.Errorf("heads %+v", heads)
	}
	sameAsGit(w, r, heads.Main)
	if got, err := held.ReadFile("apps/shop/app.yaml"); string(got) != "v2\n" {
		w.Errorf("a snapshot from before: %q, %v", got, err)
	}
	other := w.open()
	fetch(w, other)
	for range 2 {
		_, err := other.Snapshot(w.Context(), second)
		wantError(w, "a lost commit", err, git.ErrNotFound)
		wantError(w, "a lost commit", err, fs.ErrNotExist)
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
	fetch(w, r)
	sameAsGit(w, r, first)
	sameAsGit(w, r, w.server.InBare("rev-parse", "main~2"))
	before := r.Stats()
	snapshot(w, r, first)
	if r.Stats() != before {
		w.Error("a commit that is here was fetched again")
	}
	// After a restart, Snapshot must work before the first Fetch.
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
	wantError(w, "missing branch", err, git.ErrNotFound, `"production"`, r.Remote().String())
	w.server.InBare("update-ref", "refs/heads/production", "refs/heads/main")
	fetch(w, r)
	push(w, r, stateUpdate("", "x", "1"))
	w.server.InBare("update-ref", "-d", "refs/heads/"+stateBranch)
	wantState(w, "after the state branch was deleted", r, "")
	w.opts.Branch = ""
	byDefault := open(w, w.opts)
	if heads := fetch(w, byDefault); heads.Main != w.server.Head() || byDefault.Branch() != "main" {
		w.Errorf("default branch: %+v on %q", heads, byDefault.Branch())
	}
	for _, ref := range []string{"main", "production"} {
		w.server.InBare("update-ref", "-d", "refs/heads/"+ref)
	}
	empty := open(w, w.opts)
	_, err = empty.Fetch(w.Context())
	wantError(w, "empty repository", err, git.ErrNotFound, "empty")
	// A push to an empty repository succeeds.
	push(w, empty, rollout.Update{Branch: "main", Edits: map[string][]byte{"f": []byte("x")}, Message: "begin", When: when})
	w.server.Fsck()
	must(w, os.Rename(w.server.Bare, w.server.Bare+".away"))
	defer os.Rename(w.server.Bare+".away", w.server.Bare)
	_, err = r.Fetch(w.Context())
	wantError(w, "vanished repository", err, git.ErrNotFound)
}

func hookRefusal(w *world) {
	r := w.open()
	fetch(w, r)
	refs := w.server.Refs()
	w.server.Hook("pre-receive", "echo 'only on weekdays, please'; exit 1")
	_, err := pushAll(w.Context(), r, stateUpdate("", "x", "1"))
	if wantError(w, "pre-receive hook", err, git.ErrRejected, "only on weekdays"); errors.Is(err, git.ErrConflict) {
		w.Errorf("pre-receive hook: %v is a conflict", err)
	}
	w.server.Hook("pre-receive", "")
	w.server.Hook("update", `case "$1" in */promote/*) echo "no proposals"; exit 1;; esac`)
	_, err = pushAll(w.Context(), r, stateUpdate("", "x", "1"), proposal("shop", "", w.server.Head()))
	wantError(w, "update hook", err, git.ErrRejected, "gitrollout/promote/prod/shop")
	compare.CheckNamed(w, "refs after a refused push", refs, w.server.Refs())
	w.server.InBare("config", "receive.denyNonFastForwards", "true")
	w.server.InBare("config", "receive.denyDeletes", "true")
	w.server.Hook("update", "")
	id := push(w, r, proposal("shop", "", w.server.Head()))[0]
	for name, u := range map[string]rollout.Update{
		"delete": {Branch: "gitrollout/promote/prod/shop", Old: id, Delete: true},
		"force":  proposal("shop", id, w.server.CommitFiles("n", map[string]string{"n": "1"})),
	} {
		_, err := pushAll(w.Context(), r, u)
		wantError(w, name+" of a protected branch", err, git.ErrRejected)
	}
}

func commitToBranch(w *world) {
	r := w.open()
	calls := 0
	build := func(s *git.Snapshot) (rollout.Update, error) {
		if calls++; calls <= 2 { // before each of the first two attempts, another process pushes
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
	_, err := git.Open(ctx, git.Options{URL: "."})
	wantError(t, "Open", err, context.Canceled)
}

func compact(w *world) {
	r := w.open()
	fetch(w, r)
	first := push(w, r, stateUpdate("", "apps/a", "1"))[0]
	second := push(w, r, stateUpdate(first, "apps/b", "2"))[0]
	archive := "gitrollout/archive/prod/2026"
	_, err := r.Compact(w.Context(), stateBranch, archive, first, "anew", when)
	if wantError(w, "a branch that has moved on", err, git.ErrConflict); w.server.Ref(archive) != "" {
		w.Errorf("Compact of a branch that has moved on made the archive %q", w.server.Ref(archive))
	}
	root, err := r.Compact(w.Context(), stateBranch, archive, second, "anew", when)
	must(w, err)
	if w.server.Ref(stateBranch) != root || w.server.Ref(archive) != second {
		w.Errorf("the branch is at %s, the archive at %s", w.server.Ref(stateBranch), w.server.Ref(archive))
	}
	if parents := w.server.InBare("log", "-1", "--format=%P", root); parents != "" {
		w.Errorf("the new root has a parent: %s", parents)
	}
	if a, b := w.server.InBare("rev-parse", root+"^{tree}"), w.server.InBare("rev-parse", second+"^{tree}"); a != b {
		w.Errorf("its files are %s, want %s", a, b)
	}
	wantState(w, "the next fetch", r, root)
	other := w.open()
	wantState(w, "another mirror", other, root)
	push(w, other, stateUpdate(root, "apps/a", "3"))
	if n := w.server.InBare("rev-list", "--count", stateBranch); n != "2" {
		w.Errorf("%s commits after the next one", n)
	}
	w.server.Fsck()
}
