package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestSignedFromEndToEnd runs gitrollout with required signatures. An unsigned commit appears in `get`, but is not released, even after a
// kill. A promotion counts only if a promoter has signed the promotion's commit.
func TestSignedFromEndToEnd(t *testing.T) {
	t.Parallel()
	app := newShop(2, "", "setWeight: 50", "pause: {}")
	w := newWorld(t, app.files())
	dev, boss, bot := w.repo.NewKeyFile(), w.repo.NewKeyFile(), w.repo.NewKeyFile()
	list := func(keys ...string) string {
		text := ""
		for _, key := range keys {
			text += filepath.Base(filepath.Dir(key)) + "@example.com " + readText(t, key+".pub")
		}
		return tempFile(t, "signers", text)
	}
	signs := func(key string) {
		w.repo.Git("config", "gpg.format", "ssh")
		w.repo.Git("config", "commit.gpgsign", "true")
		w.repo.Git("config", "user.signingkey", key)
	}
	signs(dev)
	first := w.push("signed", map[string]string{"note": "1"})
	w.start("--verify-commits", list(dev, boss), "--promoters", list(boss), "--signing-key", bot)
	w.awaitHealthy(first)

	w.repo.Git("config", "commit.gpgsign", "false")
	evil := w.push("unsigned", app.at("v2").files())
	held := func(s rollout.State) bool {
		return s.Held != nil && s.Held.Commit == evil && strings.Contains(s.Held.Message, "not signed") && s.Source == first
	}
	w.await("held", held)
	compare.Contains(t, oneLine(w.ran("get", w.app)), "commit "+rollout.ShortID(evil)+" by Dev <dev@example.com> is not followed")
	w.restartAfterKill()
	time.Sleep(2 * time.Second)
	if s := w.state(); !held(s) {
		t.Errorf("after a kill, the state is %+v", s)
	}
	w.pods.stays(t, 300*time.Millisecond)

	signs(dev)
	w.stage("signed", map[string]string{"note": "2"})
	w.promote() // a developer without the right to promote signs the merge
	w.await("held for the promotion",
		func(s rollout.State) bool { return s.Held != nil && strings.Contains(s.Held.Message, "does not count") })
	w.repo.Pull()
	w.repo.Remove(rollout.PromotionPath("test", w.app)).Commit("not so")
	w.await("not held", func(s rollout.State) bool { return s.Held == nil && s.Phase == rollout.Paused })
	signs(boss)
	file, hash := rollout.PromotionPath("test", w.app), w.state().Release.Hash
	w.repo.CommitFiles("promote", map[string]string{file: "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: " +
		string(hash) + "\nthrough: full\ndecision: promote\n"})
	w.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Stable.Hash == hash })
	w.verifyState(list(bot))
}
