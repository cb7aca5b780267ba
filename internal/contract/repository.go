package contract

import (
	"errors"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// Remote is a Git server with a branch main. The methods of Remote are users' actions, and faults of the server.
type Remote interface {
	// Open returns an empty mirror for the cluster "test".
	Open(t *testing.T) reconciler.Repository
	// Commit adds files, by path, to a branch, and returns the commit.
	Commit(t *testing.T, branch string, files map[string]string) string
	Force(t *testing.T, branch, commit string)
	// Head returns a branch's commit, or "" if the branch does not exist.
	Head(t *testing.T, branch string) string
	// Down makes the server unreachable, or reachable again.
	Down(down bool)
	// LoseAnswer lets the next push succeed, but drops the response.
	LoseAnswer()
}

const (
	stateBranch = "gitrollout/state/test"
	proposal    = "gitrollout/promote/test/shop"
	config      = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n"
)

var when = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// repositoryTest is one test case with its server.
type repositoryTest struct {
	*testing.T
	remote Remote
	repo   reconciler.Repository
}

// Repository runs each case against a separate server. The server's branch main has a configuration and the file apps/shop/a.
func Repository(t *testing.T, serve func(t *testing.T) Remote) {
	for name, run := range map[string]func(*repositoryTest){
		"heads follow pushes":                               headsFollow,
		"a snapshot is the commit":                          snapshotIsCommit,
		"edits write and delete":                            editsWriteAndDelete,
		"a stale push changes nothing, on any branch":       staleChangesNothing,
		"a branch with the same content stays":              nothingToChange,
		"the same push again is harmless":                   sameAgain,
		"proposals are renewed and removed":                 proposalsMove,
		"the state branch is neither forced nor deleted":    stateIsKept,
		"main may be forced, and old commits stay":          mainForced,
		"the configuration names the state branch":          stateBranchNamed,
		"without a server no branch is reported as changed": serverDown,
		"a push whose answer is lost has happened once":     answerLost,
		"a merge's result is known before the merge":        mergeIsForeseen,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote := serve(t)
			remote.Commit(t, "main", map[string]string{rollout.ConfigPath("test"): config, "apps/shop/a": "1"})
			run(&repositoryTest{T: t, remote: remote, repo: remote.Open(t)})
		})
	}
}

func (r *repositoryTest) fetch() rollout.Heads {
	r.Helper()
	heads, err := r.repo.Fetch(r.Context())
	if err != nil {
		r.Fatalf("Fetch: %v", err)
	}
	return heads
}

func (r *repositoryTest) push(updates ...rollout.Update) map[string]string {
	r.Helper()
	made, err := r.repo.Push(r.Context(), updates)
	if err != nil {
		r.Fatalf("Push: %v", err)
	}
	return made
}

// snapshot returns the snapshot of a commit. It fetches the commit if necessary.
func (r *repositoryTest) snapshot(commit string) reconciler.Snapshot {
	r.Helper()
	gone, err := r.repo.Bring(r.Context(), []string{commit})
	if err != nil || len(gone) > 0 {
		r.Fatalf("Bring: gone %v, %v", gone, err)
	}
	s, held := r.repo.Held(commit)
	if !held {
		r.Fatalf("%s was brought and is not held", commit)
	}
	return s
}

func (r *repositoryTest) read(commit, path string) string {
	r.Helper()
	s := r.snapshot(commit)
	e, found, err := s.Lookup(path)
	if err != nil {
		r.Fatalf("Lookup: %v", err)
	}
	if !found {
		return "(none)"
	}
	data, err := s.ReadBlob(e.ID)
	if err != nil {
		r.Fatalf("ReadBlob: %v", err)
	}
	return string(data)
}

func state(old, path, content string) rollout.Update {
	return rollout.Update{Branch: stateBranch, Old: old, Parent: old, Edits: map[string][]byte{path: []byte(content)}, Message: "subject\n\nbody", When: when}
}

func promote(old, parent, content string) rollout.Update {
	return rollout.Update{Branch: proposal, Old: old, Parent: parent, Edits: map[string][]byte{"p": []byte(content)}, Message: "p", When: when}
}

func (r *repositoryTest) want(what, got, want string) {
	r.Helper()
	if got != want {
		r.Errorf("%s is %q, want %q", what, got, want)
	}
}

func headsFollow(r *repositoryTest) {
	heads := r.fetch()
	r.want("main", heads.Main, r.remote.Head(r.T, "main"))
	r.want("state", heads.State, "")
	made := r.push(state("", "a", "1"), promote("", heads.Main, "1"))
	heads = r.fetch()
	r.want("state", heads.State, made[stateBranch])
	r.want("the proposal", heads.Proposals[proposal], made[proposal])
	r.want("the server's state", r.remote.Head(r.T, stateBranch), made[stateBranch])
	id := r.remote.Commit(r.T, "main", map[string]string{"b": "2"})
	r.want("main", r.fetch().Main, id)
	r.want("b", r.read(id, "b"), "2")
}

func snapshotIsCommit(r *repositoryTest) {
	made := r.push(state("", "apps/x/shop.yaml", "s"))
	s := r.snapshot(made[stateBranch])
	c := s.Commit()
	if c.ID != made[stateBranch] || c.Subject != "subject" || !c.When.Equal(when) || c.Author != "a merged proposal" {
		r.Errorf("the commit is %+v", c)
	}
	dir, found, err := s.Lookup("apps/x")
	if err != nil || !found || dir.Kind != rollout.Dir || dir.Name != "x" || dir.ID == "" {
		r.Errorf("apps/x is %+v, %t, %v", dir, found, err)
	}
	list, err := s.ReadDir("apps/x")
	if err != nil || len(list) != 1 || list[0].Name != "shop.yaml" || list[0].Kind != rollout.File {
		r.Errorf("apps/x holds %+v, %v", list, err)
	}
	if e, found, err := s.Lookup(""); err != nil || !found || e.Kind != rollout.Dir {
		r.Errorf("the root is %+v, %t, %v", e, found, err)
	}
	for _, path := range []string{"none", "apps/x/shop.yaml/below", "apps/none"} {
		if _, found, err := s.Lookup(path); found || err != nil {
			r.Errorf("%s is found: %t, %v", path, found, err)
		}
	}
}

func editsWriteAndDelete(r *repositoryTest) {
	u := state("", "a/b", "1")
	u.Edits["a/c"], u.Edits["d"] = []byte("2"), []byte("3")
	first := r.push(u)[stateBranch]
	u = state(first, "d", "4")
	u.Edits["a"] = nil
	second := r.push(u)[stateBranch]
	r.want("a/b", r.read(second, "a/b"), "(none)")
	r.want("d", r.read(second, "d"), "4")
	r.want("d before", r.read(first, "d"), "3")
}

func staleChangesNothing(r *repositoryTest) {
	main := r.fetch().Main
	first := r.push(state("", "a", "1"))[stateBranch]
	other := r.remote.Commit(r.T, stateBranch, map[string]string{"README": "hello"})
	_, err := r.repo.Push(r.Context(), []rollout.Update{promote("", main, "1"), state(first, "a", "2")})
	if !errors.Is(err, rollout.ErrConflict) {
		r.Errorf("the error is %v, want a conflict", err)
	}
	r.want("state", r.remote.Head(r.T, stateBranch), other)
	r.want("the proposal", r.remote.Head(r.T, proposal), "")
	heads := r.fetch()
	r.want("state", heads.State, other)
	r.want("a", r.read(r.push(state(heads.State, "a", "2"))[stateBranch], "README"), "hello")
	if _, err := r.repo.Push(r.Context(), []rollout.Update{state("", "a", "3")}); !errors.Is(err, rollout.ErrConflict) {
		r.Errorf("creating a branch that exists: %v, want a conflict", err)
	}
}

func nothingToChange(r *repositoryTest) {
	first := r.push(state("", "a", "1"))[stateBranch]
	again := r.push(state(first, "a", "1"))
	r.want("state", again[stateBranch], first)
	r.want("the server's", r.remote.Head(r.T, stateBranch), first)
}

func sameAgain(r *repositoryTest) {
	other := r.remote.Open(r.T)
	if _, err := other.Fetch(r.Context()); err != nil {
		r.Fatal(err)
	}
	first := r.push(state("", "a", "1"))[stateBranch]
	made, err := other.Push(r.Context(), []rollout.Update{state("", "a", "1")})
	if err != nil {
		r.Fatalf("the same input by another process: %v", err)
	}
	r.want("the commit", made[stateBranch], first)
}

func proposalsMove(r *repositoryTest) {
	main := r.fetch().Main
	first := r.push(promote("", main, "1"))[proposal]
	newer := r.remote.Commit(r.T, "main", map[string]string{"b": "2"})
	r.fetch()
	second := r.push(promote(first, newer, "2"))[proposal]
	r.want("b in the proposal", r.read(second, "b"), "2")
	r.push(rollout.Update{Branch: proposal, Old: second, Delete: true})
	r.want("the proposal", r.remote.Head(r.T, proposal), "")
	if left := r.fetch().Proposals; len(left) > 0 {
		r.Errorf("proposals %v are left", left)
	}
}

func stateIsKept(r *repositoryTest) {
	main := r.fetch().Main
	first := r.push(state("", "a", "1"))[stateBranch]
	forced := state(first, "a", "2")
	forced.Parent = main
	for what, u := range map[string]rollout.Update{"forced": forced, "deleted": {Branch: stateBranch, Old: first, Delete: true}} {
		if _, err := r.repo.Push(r.Context(), []rollout.Update{u}); err == nil {
			r.Errorf("the state branch was %s", what)
		}
	}
	r.want("state", r.remote.Head(r.T, stateBranch), first)
}

func mainForced(r *repositoryTest) {
	first := r.fetch().Main
	second := r.remote.Commit(r.T, "main", map[string]string{"b": "2"})
	r.want("main", r.fetch().Main, second)
	r.remote.Force(r.T, "main", first)
	r.want("main", r.fetch().Main, first)
	r.want("b, as it was", r.read(second, "b"), "2")
}

func stateBranchNamed(r *repositoryTest) {
	r.fetch()
	elsewhere := "gitrollout/state/elsewhere"
	id := r.remote.Commit(r.T, elsewhere, map[string]string{"a": "1"})
	r.remote.Commit(r.T, "main", map[string]string{rollout.ConfigPath("test"): config + "stateBranch: " + elsewhere + "\n"})
	r.want("state", r.fetch().State, id)
	r.remote.Commit(r.T, "main", map[string]string{rollout.ConfigPath("test"): "apps: 3\n"})
	r.want("state, with a configuration that cannot be read", r.fetch().State, id)
}

func serverDown(r *repositoryTest) {
	heads := r.fetch()
	r.want("a", r.read(heads.Main, "apps/shop/a"), "1")
	r.remote.Down(true)
	if _, err := r.repo.Fetch(r.Context()); err == nil {
		r.Error("Fetch without a server succeeded")
	}
	if _, err := r.repo.Push(r.Context(), []rollout.Update{state("", "a", "1")}); err == nil || errors.Is(err, rollout.ErrConflict) {
		r.Errorf("Push without a server: %v", err)
	}
	r.want("a, which was fetched", r.read(heads.Main, "apps/shop/a"), "1")
	r.remote.Down(false)
	r.want("state", r.fetch().State, "")
	r.push(state("", "a", "1"))
}

func answerLost(r *repositoryTest) {
	r.fetch()
	r.remote.LoseAnswer()
	_, _ = r.repo.Push(r.Context(), []rollout.Update{state("", "a", "1")})
	there := r.remote.Head(r.T, stateBranch)
	if there == "" {
		r.Fatal("the push did not happen")
	}
	r.want("the same push again", r.push(state("", "a", "1"))[stateBranch], there)
	r.want("state", r.fetch().State, there)
}

// mergeIsForeseen checks the predicted result of merging a proposal after each kind of change to main, such as a force push.
func mergeIsForeseen(r *repositoryTest) {
	first := r.fetch().Main
	made := r.push(promote("", first, "1"))[proposal]
	is := func(what string, clean bool) {
		r.Helper()
		main := r.fetch().Main
		m, err := r.repo.(reconciler.Past).Merge(r.Context(), made, main)
		if err != nil || m.Clean != clean {
			r.Errorf("%s: clean %t, %v; want %t", what, m.Clean, err, clean)
		}
		if clean != m.Does(map[string][]byte{"p": []byte("1")}) || m.Does(map[string][]byte{"p": nil}) || m.Does(nil) {
			r.Errorf("%s: it does %q", what, m.Edits)
		}
	}
	is("main is where it was", true)
	for i := range 3 {
		r.remote.Commit(r.T, "main", map[string]string{"other": string(rune('a' + i))})
		is("main has moved", true)
	}
	moved := r.remote.Commit(r.T, "main", map[string]string{"p": "2"})
	is("main has the file", false)
	r.remote.Force(r.T, "main", first)
	is("main is back", true)
	r.remote.Commit(r.T, "main", map[string]string{"elsewhere": "x"})
	on := r.fetch().Main
	made = r.push(promote(made, on, "1"))[proposal]
	is("it is made anew", true)
	line, err := r.repo.(reconciler.Past).Between(r.Context(), first, on)
	if err != nil || len(line) != 2 || line[0].Commit().ID != first || line[1].Commit().ID != on {
		r.Errorf("between two heads are %v, %v", line, err)
	}
	if line, err := r.repo.(reconciler.Past).Between(r.Context(), made, on); err == nil {
		r.Errorf("the commits from a commit outside main to main are %v", line)
	}
	outside, err := r.repo.(reconciler.Past).Outside(r.Context(), on, []string{first, made, on, moved})
	if err != nil || !slices.Equal(outside, []string{made, moved}) {
		r.Errorf("main is not built on %v, %v; want %v", outside, err, []string{made, moved})
	}
	r.remote.Force(r.T, "main", moved)
	is("main's history lacks the proposal's base", false)
	r.remote.Force(r.T, "main", on)
	made = r.remote.Commit(r.T, proposal, map[string]string{"q": "2"})
	is("the proposal has one more commit", false)
}
