package git_test

import (
	"crypto/rand"
	"path/filepath"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// signer reads a private key. It returns the key, and a function for Options.Sign that signs with this key.
func signer(t *testing.T, file string) (*sign.Key, func([]byte) ([]byte, error)) {
	t.Helper()
	key, err := sign.ParseKey([]byte(read(t, file)), nil)
	must(t, err)
	return key, func(commit []byte) ([]byte, error) {
		signature, err := key.Sign(rand.Reader, commit)
		if err != nil {
			return nil, err
		}
		return sign.Insert(commit, signature)
	}
}

// TestGitVerifiesOurCommits checks that the real git and SignedBy accept the signatures of pushed commits.
func TestGitVerifiesOurCommits(t *testing.T) {
	repo := gittest.New(t)
	main := repo.CommitFiles("first", map[string]string{"f": "1"})
	file := repo.NewKeyFile()
	key, sign1 := signer(t, file)
	_, sign2 := signer(t, repo.NewKeyFile())
	mirror := func(sign func([]byte) ([]byte, error)) *git.Repo {
		r := open(t, git.Options{URL: repo.Bare, Branch: "main", Cluster: "prod", Sign: sign})
		fetch(t, r)
		return r
	}
	r := mirror(sign1)
	state := update(stateBranch, "", "state\n\nA: b", map[string][]byte{"cluster.yaml": []byte("x")})
	ids := push(t, r, state, proposal("shop", "", main))
	repo.Fsck()
	allowed := write(t, filepath.Join(t.TempDir(), "signers"), "bot "+read(t, file+".pub"))
	for _, id := range ids {
		repo.InBare("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", id)
		if who, err := snapshot(t, r, id).SignedBy(sign.Policy{SSH: key.Signers("bot")}); err != nil || who != "bot" {
			t.Errorf("SignedBy: %q, %v", who, err)
		}
	}
	// The same update makes the same commit, so the second push sends nothing.
	if again := push(t, r, proposal("shop", ids[1], main)); again[0] != "" {
		t.Errorf("pushed again: %v", again)
	}
	// SignedBy refuses other writers' commits: a commit signed with another key, and an unsigned commit.
	for name, sign2 := range map[string]func([]byte) ([]byte, error){"not in": sign2, "not signed": nil} {
		other := mirror(sign2)
		id := push(t, other, stateUpdate(repo.Ref(stateBranch), "cluster.yaml", name))[0]
		_, err := snapshot(t, other, id).SignedBy(sign.Policy{SSH: key.Signers("bot")})
		compare.CheckError(t, "SignedBy", err, name)
	}
	if who, err := git.EmptySnapshot().SignedBy(sign.Policy{}); err == nil {
		t.Errorf("nothing is signed by %q", who)
	}
}
