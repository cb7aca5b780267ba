package adapters_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/rollout"
)

// TestBelievePeer checks that a state branch counts only if its own cluster's key signs the newest commit. A change of the key file takes
// effect at the next read.
func TestBelievePeer(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if adapters.BelievePeer(nil) != nil {
		t.Error("without --verify-fleet, records need no signature")
	}
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"f": "1"})
	keyOf := map[string]string{"": "", "dev": repo.NewKeyFile(), "staging": repo.NewKeyFile(), "other": repo.NewKeyFile()}
	file := filepath.Join(t.TempDir(), "clusters")
	list := func(lines map[string]string) {
		text := ""
		for principals, key := range lines {
			public, err := os.ReadFile(keyOf[key] + ".pub")
			must(err)
			text += principals + " " + string(public)
		}
		must(os.WriteFile(file, []byte(text), 0o600))
	}
	list(map[string]string{"dev": "dev", "qa,staging-*": "staging"})
	keys, err := git.OpenKeys(git.KeyFiles{Fleet: file})
	must(err)
	mirror, err := git.Open(t.Context(), git.Options{URL: repo.Bare, Branch: "main"})
	must(err)
	peers := &adapters.Repository{mirror.Beside()}
	check := func(what, cluster, signer, want string) {
		t.Helper()
		options := git.Options{URL: repo.Bare, Branch: "main"}
		if name := keyOf[signer]; name != "" {
			options.Sign = func(commit []byte) ([]byte, error) {
				data, err := os.ReadFile(name)
				must(err)
				key, err := sign.ParseKey(data, nil)
				must(err)
				signature, err := key.Sign(rand.Reader, commit)
				must(err)
				return sign.Insert(commit, signature)
			}
		}
		writer, err := git.Open(t.Context(), options)
		must(err)
		branch := rollout.StateBranch(cluster)
		_, err = writer.CommitToBranch(t.Context(), branch, func(*git.Snapshot) (rollout.Update, error) {
			return rollout.Update{Edits: map[string][]byte{"f": []byte(what)}, Message: what, When: time.Unix(1e9, 0)}, nil
		})
		must(err)
		heads, err := peers.Branches(t.Context(), "", map[string]string{branch: ""})
		must(err)
		tree, held := peers.Held(heads[branch])
		if !held {
			t.Fatalf("%s: commit %q is not here", what, heads[branch])
		}
		compare.CheckError(t, what, adapters.BelievePeer(keys)(cluster, tree), want)
	}
	check("its own key", "dev", "dev", "")
	check("a pattern", "staging-eu", "staging", "")
	check("a second principal", "qa", "staging", "")
	check("the key of another cluster", "dev", "staging", "its key is not in the lines of dev in the file of --verify-fleet")
	check("an unknown key", "staging-eu", "other", "its key is not in the lines of staging-eu in the file of --verify-fleet")
	check("no key", "dev", "", "the commit is not signed")
	check("a cluster without a line", "prod", "dev", "its key is not in the lines of prod in the file of --verify-fleet")
	list(map[string]string{"dev": "other"})
	must(keys.Read())
	check("a replaced key", "dev", "other", "")
	check("the former key", "dev", "dev", "its key is not in the lines of dev")
}
