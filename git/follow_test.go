package git_test

import (
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// configured commits cluster prod's configuration, and adds the given lines at its end.
func configured(repo *gittest.Repo, more string) string {
	return repo.CommitFiles("configuration", map[string]string{
		rollout.ConfigPath("prod"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n" + more,
	})
}

func TestStateBranchIsFollowed(t *testing.T) {
	t.Parallel()
	const other = "gitrollout/state/elsewhere"
	repo := gittest.New(t)
	configured(repo, "")
	w := &world{T: t, server: repo, opts: git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL}}
	fixed := w.opts
	fixed.StateBranch = stateBranch
	r, stays := w.open(), (&world{T: t, server: repo, opts: fixed}).open()
	fetch(w, r)
	fetch(w, stays)
	first := push(w, r, stateUpdate("", "a", "1"))[0]

	// The other branch has a history that a fetch does not need.
	s := importer{clock: 100}
	for i := range 50 {
		s.commit(other, 0)
		s.file("a", randomText(20_000+i))
	}
	repo.FastImport(s.String())
	configured(repo, "stateBranch: "+other+"\n")
	before := r.Stats()
	if wantState(t, "another branch", r, repo.Ref(other)); r.StateBranch() != other {
		t.Errorf("the state branch is %s", r.StateBranch())
	}
	if spent := minus(r.Stats(), before); spent.Received > 60_000 || spent.Lookups != 2 {
		t.Errorf("to change the state branch cost %+v", spent)
	}
	wantState(t, "a mirror that is told its state branch", stays, first)
	before = r.Stats()
	fetch(w, r)
	if spent := minus(r.Stats(), before); spent.Requests != 1 {
		t.Errorf("a poll costs %+v", spent)
	}
	repo.CommitFiles("broken", map[string]string{rollout.ConfigPath("prod"): "apps: 3\n"})
	wantState(t, "after a broken configuration", r, repo.Ref(other))
	repo.Remove(rollout.ConfigPath("prod")).Commit("no configuration")
	wantState(t, "without a configuration", r, repo.Ref(other))
	configured(repo, "")
	wantState(t, "the first branch again", r, first)
}

// trusted creates a key. It returns a function that signs commits with the key, and the key's line for an allowed_signers file.
func trusted(t *testing.T, repo *gittest.Repo, who string) (commit func([]byte) ([]byte, error), public string) {
	t.Helper()
	file := repo.NewKeyFile()
	_, commit = signer(t, file)
	return commit, who + " " + read(t, file+".pub")
}

func TestHeadsAreJudged(t *testing.T) {
	t.Parallel()
	repo := gittest.New(t)
	url := repo.HTTP(gittest.HTTPOptions{}).URL
	ann, annKey := trusted(t, repo, "ann")
	bob, bobKey := trusted(t, repo, "bob")
	file := filepath.Join(t.TempDir(), "signers")
	list := func(lines ...string) { write(t, file, strings.Join(lines, "\n")) }
	list(annKey)
	keys, err := git.OpenKeys(git.KeyFiles{Commits: file})
	must(t, err)
	n := 0
	commit := func(by func([]byte) ([]byte, error)) string {
		t.Helper()
		w := &world{T: t, server: repo, opts: git.Options{URL: url, Sign: by}}
		head := repo.Ref("main")
		n++
		return push(w, w.open(), update("main", head, "m", map[string][]byte{"n": []byte(strings.Repeat("x", n))}))[0]
	}
	w := &world{T: t, server: repo, opts: git.Options{URL: url, Keys: keys}}
	r := w.open()
	expect := func(what string, r *git.Repo, main, refused string, blind bool) {
		t.Helper()
		heads := fetch(w, r)
		got := rollout.Refusal{}
		if heads.Refused != nil {
			got = *heads.Refused
		}
		if heads.Main != main || got.Commit != refused || got.Blind != blind || (refused != "") != (got.Reason != "") {
			t.Errorf("%s: main %s, want %s; refused %+v, want %q, blind %t", what, heads.Main, main, got, refused, blind)
		}
	}
	first := commit(ann)
	expect("signed", r, first, "", false)
	second := commit(bob)
	expect("signed by an unknown key", r, first, second, false)
	expect("again", r, first, second, false)
	expect("a new process", w.open(), first, second, true)
	version := fetch(w, r).Keys
	list(annKey, bobKey)
	expect("the key is trusted now", r, second, "", false)
	if now := fetch(w, r).Keys; now == version {
		t.Errorf("the version of the keys is still %s", now)
	}
	third := commit(nil)
	expect("not signed", r, second, third, false)
	list("nonsense")
	_, err = r.Fetch(t.Context())
	compare.CheckError(t, "a broken file of keys", err, "--verify-commits")
	list(annKey, bobKey)
	expect("put right", r, second, third, false)
	expect("a signature on top", r, commit(ann), "", false)

	t.Run("nothing is signed", func(t *testing.T) {
		repo := gittest.New(t)
		head := repo.CommitFiles("first", map[string]string{"f": "1"})
		_, err := open(t, git.Options{URL: repo.Bare, Branch: "main", Keys: keys}).Fetch(t.Context())
		compare.CheckError(t, "Fetch", err, rollout.ShortID(head)+" is not followed")
	})
}
