package git_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// signer reads a key and returns it with the function for git.Options.Sign.
func signer(t *testing.T, file string) (*sign.Key, func([]byte) ([]byte, error)) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := sign.ParseKey(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return key, func(commit []byte) ([]byte, error) {
		signature, err := key.Sign(rand.Reader, commit)
		if err != nil {
			return nil, err
		}
		return sign.Insert(commit, signature)
	}
}

// TestGitVerifiesOurCommits verifies pushed commits with the real git and with SignedBy.
func TestGitVerifiesOurCommits(t *testing.T) {
	repo := gittest.New(t)
	main := repo.CommitFiles("first", map[string]string{"f": "1"})
	file := repo.NewKeyFile()
	key, sign1 := signer(t, file)
	_, sign2 := signer(t, repo.NewKeyFile())
	open := func(sign func([]byte) ([]byte, error)) *git.Repo {
		r, err := git.Open(t.Context(), git.Options{URL: repo.Bare, Branch: "main", Cluster: "prod", Sign: sign})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := open(sign1)
	ids, err := pushAll(t.Context(), r,
		rollout.Update{Branch: "gitrollout/state/prod", Edits: map[string][]byte{"cluster.yaml": []byte("x")}, Message: "state\n\nA: b", When: when},
		rollout.Update{Branch: "gitrollout/promote/prod/shop", Parent: main, Edits: map[string][]byte{"p": []byte("x")}, Message: "Promote", When: when})
	if err != nil {
		t.Fatal(err)
	}
	repo.Fsck()
	public, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	allowed := filepath.Join(t.TempDir(), "signers")
	if err := os.WriteFile(allowed, []byte("bot "+string(public)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		repo.InBare("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", id)
		snapshot, err := r.Snapshot(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if who, err := snapshot.SignedBy(sign.Policy{SSH: key.Signers("bot")}); err != nil || who != "bot" {
			t.Errorf("SignedBy: %q, %v", who, err)
		}
	}
	// The same input makes the same commit, which is not pushed again.
	again, err := pushAll(t.Context(), r, rollout.Update{Branch: "gitrollout/promote/prod/shop", Old: ids[1], Parent: main,
		Edits: map[string][]byte{"p": []byte("x")}, Message: "Promote", When: when})
	if err != nil || again[0] != "" {
		t.Errorf("pushed again: %v, %v", again, err)
	}
	// Edits by hand: signed with another key, and unsigned.
	for name, sign2 := range map[string]func([]byte) ([]byte, error){"not in": sign2, "not signed": nil} {
		other := open(sign2)
		base := repo.Ref("gitrollout/state/prod")
		ids, err := pushAll(t.Context(), other, rollout.Update{Branch: "gitrollout/state/prod", Old: base, Parent: base,
			Edits: map[string][]byte{"cluster.yaml": []byte(name)}, Message: "by hand", When: when})
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := other.Snapshot(t.Context(), ids[0])
		if err != nil {
			t.Fatal(err)
		}
		if who, err := snapshot.SignedBy(sign.Policy{SSH: key.Signers("bot")}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("SignedBy: %q, %v; want %q", who, err, name)
		}
	}
	if who, err := git.EmptySnapshot().SignedBy(sign.Policy{}); err == nil {
		t.Errorf("nothing is signed by %q", who)
	}
}
