package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// TestSignedFromEndToEnd requires signatures on both sides. An unsigned commit is shown by get and not released, even
// after a kill, and a promotion counts when a promoter merges it.
func TestSignedFromEndToEnd(t *testing.T) {
	t.Parallel()
	app := shop{version: "v1", replicas: "replicas: 2", strategy: canary("", "setWeight: 50", "pause: {}")}
	w := newWorld(t, app.files())
	dev, boss, bot := w.repo.NewKeyFile(), w.repo.NewKeyFile(), w.repo.NewKeyFile()
	list := func(keys ...string) string {
		var text strings.Builder
		for _, key := range keys {
			public, err := os.ReadFile(key + ".pub")
			must(t, err)
			text.WriteString(filepath.Base(filepath.Dir(key)) + "@example.com " + string(public))
		}
		file := filepath.Join(t.TempDir(), "signers")
		must(t, os.WriteFile(file, []byte(text.String()), 0o600))
		return file
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
	if out, err := w.cli("get", w.app); err != nil ||
		!strings.Contains(strings.Join(strings.Fields(out), " "), "commit "+rollout.ShortID(evil)+" by Dev <dev@example.com> is not followed") {
		t.Errorf("get: %v\n%s", err, out)
	}
	w.restartAfterKill()
	time.Sleep(2 * time.Second)
	if s := w.state(); !held(s) {
		t.Errorf("after a kill, the state is %+v", s)
	}
	w.pods.stays(t, 300*time.Millisecond)

	signs(dev)
	w.push("signed", map[string]string{"note": "2"})
	w.awaitStep(1, rollout.Paused)
	w.promote() // signed by a developer without the right to promote
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
	allowed := list(bot)
	for _, id := range strings.Fields(w.repo.InBare("rev-list", w.stateBranch())) {
		w.repo.InBare("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", id)
	}
}
