package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/dashboard"
)

// signs makes the test sign later commits with the given key. After signs(""), later commits are unsigned.
func (w *loopWorld) signs(key string) {
	w.Helper()
	w.repo.Git("config", "gpg.format", "ssh")
	w.repo.Git("config", "commit.gpgsign", fmt.Sprint(key != ""))
	w.repo.Git("config", "user.signingkey", key)
}

// list writes an allowed_signers file for the given keys, and returns the file's path.
func (w *loopWorld) list(keys ...string) string {
	w.Helper()
	file := filepath.Join(w.TempDir(), "allowed_signers")
	w.relist(file, keys...)
	return file
}

func (w *loopWorld) relist(file string, keys ...string) {
	w.Helper()
	text := "# who signs\n"
	for _, key := range keys {
		public, err := os.ReadFile(key + ".pub")
		must(w, err)
		text += "ann@example.com " + string(public)
	}
	must(w, os.WriteFile(file, []byte(text), 0o600))
}

// awaitHeld makes passes until the app is held with a message that contains all words.
func (p *loopProcess) awaitHeld(words ...string) rollout.State {
	p.w.Helper()
	return p.await("held: "+strings.Join(words, ", "), func(s rollout.State) bool {
		return s.Held != nil && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(s.Held.Message, word) })
	})
}

// newSignedWorld returns a world that requires signed commits, a process that has deployed a signed head, and the signing key.
func newSignedWorld(t *testing.T) (w *loopWorld, p *loopProcess, key string) {
	t.Helper()
	w = newLoopWorld(t, version("v1", halfThenGate))
	key = w.repo.NewKeyFile()
	w.keys.Commits = w.list(key)
	w.signs(key)
	w.push("signed", map[string]string{"note": "1"})
	p = w.start()
	p.awaitHealthy(w.repo.Head())
	return w, p, key
}

// TestUnsignedHeadIsNotFollowed pushes unsigned commits while a process runs, and before another process starts.
// These commits must not be released until a signed commit is on top.
func TestUnsignedHeadIsNotFollowed(t *testing.T) {
	w, p, key := newSignedWorld(t)
	first := w.repo.Head()

	w.signs("")
	evil := w.push("unsigned", version("v2", halfThenGate))
	s := p.awaitHeld(rollout.ShortID(evil), "Dev <dev@example.com>", "not signed", "git commit -S")
	if s.Source != first || s.Held.Commit != evil || s.Release != nil {
		t.Errorf("the state is %+v", s)
	}
	p.wantNoWrites(3)
	p.end()

	// A new process does not know which head was accepted last. It must not release a signed commit that is below the unsigned head.
	w.signs(key)
	between := w.push("signed, but never the head", version("v3", halfThenGate))
	w.signs("")
	evil = w.push("unsigned again", version("v4", halfThenGate))
	p = w.start()
	s = p.awaitHeld(rollout.ShortID(evil), "not signed")
	if s.Source != first || s.Release != nil {
		t.Errorf("after the restart, the signed commit is %s and the state is %+v", between, s)
	}
	p.wantNoWrites(3)

	w.signs(w.repo.NewKeyFile())
	w.push("another key", map[string]string{"note": "2"})
	p.awaitHeld("key is not in the file of --verify-commits")

	w.signs(key)
	w.push("signed", map[string]string{"note": "3"})
	s = p.awaitPaused(evil) // this commit is now below a signed head
	if s.Held != nil || s.Stable.Commit != first {
		t.Errorf("the state is %+v", s)
	}
}

// TestUnsignedHeadOfAnother checks that an unsigned commit to one app does not hold the release of another app, even after a restart.
func TestUnsignedHeadOfAnother(t *testing.T) {
	w, p, key := newSignedWorld(t)
	release := w.pushVersion("v2")
	p.awaitPaused(release)

	w.signs("")
	w.pushAs("other", "unsigned", version("v1", halfThenGate))
	_ = p.passes(2)
	p = p.restart()
	_ = p.passes(2)
	if s := w.state(); s.Held != nil || s.Phase != rollout.Paused || s.Release.Commit != release {
		t.Errorf("the state is %+v", s)
	}
	if s := w.stateOf("other"); s.Source != "" {
		t.Errorf("the unsigned app was started: %+v", s)
	}
	// After an unsigned promotion, the app is held. The promotion counts when a signed commit is on top.
	w.repo.Merge(w.promotion())
	p.awaitHeld("not signed")
	w.signs(key)
	w.push("signed", map[string]string{"note": "2"})
	p.awaitHealthy(release)
}

// TestStateBranchOfAnUnsignedHead restarts the process while the head is unsigned. The configuration in the head names another state
// branch, which has a forged record. Both the configuration and the record must be ignored.
func TestStateBranchOfAnUnsignedHead(t *testing.T) {
	w, p, _ := newSignedWorld(t)
	p.end()
	w.signs("")
	evil := w.push("unsigned", version("v2", halfThenGate))
	w.repo.Git("fetch", "-q", "origin", stateBranch)
	w.repo.Git("checkout", "-q", "-b", "gitrollout/evil", "FETCH_HEAD")
	state := w.state()
	state.Source, state.Stable.Commit = evil, evil
	w.repo.CommitFiles("forged", map[string]string{rollout.StatePath(w.app): encoded(t, state)})
	w.repo.Git("checkout", "-q", "main")
	w.configure(w.config("- path: apps/*") + "stateBranch: gitrollout/evil\n")
	p = w.start()
	p.awaitHeld("not signed")
	p.wantNoWrites(2)
	if head := w.repo.Log("gitrollout/evil")[0]; head != "forged" {
		t.Errorf("it writes to the other state branch: %s", head)
	}
}

func TestNothingIsSigned(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	key := w.repo.NewKeyFile()
	w.keys.Commits = w.list(key)
	p := w.start()
	w.wantError(p.pass(), "not signed")
	w.wantNoWritesSince(0)
	w.signs(key)
	p.awaitHealthy(w.push("signed", map[string]string{"note": "1"}))
	// The key file is read again for each check, so that a key added later is accepted without a restart.
	second := w.repo.NewKeyFile()
	w.signs(second)
	commit := w.push("by the second key", version("v2", halfThenGate))
	p.awaitHeld("key is not in")
	w.relist(w.keys.Commits, key, second)
	p.awaitPaused(commit)
}

// TestPromoters checks which users' merges count as a promotion. After a merge that does not count, the app is held and the release stays
// at its step.
func TestPromoters(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		merge func(w *loopWorld, key, proposal string)
		holds bool
	}{
		"unsigned merge":      {func(w *loopWorld, _, proposal string) { w.repo.Merge(proposal) }, true},
		"merge by a stranger": {func(w *loopWorld, _, proposal string) { w.signs(w.repo.NewKeyFile()); w.repo.Merge(proposal) }, true},
		"merge by a promoter": {func(w *loopWorld, key, proposal string) { w.signs(key); w.repo.Merge(proposal) }, false},
		"later unrelated signed": {func(w *loopWorld, key, proposal string) {
			w.repo.Merge(proposal)
			w.signs(key)
			w.push("something else", map[string]string{"note": "2"})
		}, true},
		"signed, then unsigned commits": {func(w *loopWorld, key, proposal string) {
			w.signs(key)
			w.repo.Merge(proposal)
			w.signs("")
			w.push("something else", map[string]string{"note": "2"})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tier.Rows(t, "merge_by_a_stranger", "merge_by_a_promoter")
			w := newLoopWorld(t, version("v1", halfThenGate))
			key := w.repo.NewKeyFile()
			w.keys.Promoters = w.list(key)
			p := w.startHealthy()
			commit := w.pushVersion("v2")
			p.awaitPaused(commit)
			tt.merge(w, key, w.promotion())
			if !tt.holds {
				p.awaitHealthy(commit)
				w.wantText(strings.Join(w.history(), "\n"), "ann@example.com") // the mail address of the promoter's key
				return
			}
			s := p.awaitHeld(rollout.PromotionPath("test", w.app), "does not count", "git commit -S")
			if s.Release == nil || s.Release.Commit != commit || s.Progress[0].Step != 1 {
				t.Errorf("the state is %+v", s)
			}
			p.wantNoWrites(2)
			// A revert of the release takes effect although the promotion was refused.
			w.signs("")
			w.push("back", version("v1", halfThenGate))
			p.await("healthy at v1", func(s rollout.State) bool {
				return s.Phase == rollout.Healthy && s.Held == nil && s.Release == nil
			})
		})
	}
}

// TestRecordNamesAStrangersCommit acts as an attacker who may push to branches below gitrollout/, but not to main. The attacker pushes a
// commit, and forges a record with this commit as stable. The cluster must not change, whether or not signatures are required.
func TestRecordNamesAStrangersCommit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ signed, restart bool }{
		"unsigned, same process": {}, "unsigned, new process": {restart: true},
		"signed, same process": {signed: true}, "signed, new process": {signed: true, restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			if tt.signed {
				key := w.repo.NewKeyFile()
				w.keys.Commits = w.list(key)
				w.signs(key)
			}
			first := w.push("followed", map[string]string{"note": "1"})
			p := w.start()
			state := p.awaitHealthy(first)
			w.signs("")
			const branch = "gitrollout/promote/test/zzz"
			w.repo.InBare("update-ref", "refs/heads/"+branch, first)
			manifest := strings.ReplaceAll(version("v10", halfThenGate)["app.yaml"], "APP", w.app)
			w.edit(branch, map[string]string{"apps/" + w.app + "/app.yaml": manifest})
			stranger := w.repo.Ref(branch)
			tree, err := p.created.Snapshot(t.Context(), stranger)
			must(t, err)
			app := rollout.App{Name: w.app, Path: "apps/" + w.app, Namespace: w.ns}
			theirs, err := source.NewReader("test", p.renderer).Render(tree, app)
			must(t, err)
			if tt.restart {
				p.end()
			}
			forged := state
			forged.Rejected = []rollout.Rejection{{Hash: state.Stable.Hash, Reason: "forged", Commit: first}}
			forged.Phase, forged.Reason = rollout.Degraded, "forged"
			stable := *state.Stable
			stable.Commit, stable.Hash = stranger, theirs.Release()
			forged.Source, forged.Stable = stranger, &stable
			forged.Serial++
			w.edit(stateBranch, map[string]string{rollout.StatePath(w.app): encoded(t, forged)})
			if tt.restart {
				p = w.start()
			}
			w.wantError(p.passes(6), "not part of the users' branch")
			w.wantImage("v1")
		})
	}
}

// TestForgedRecord requires signed records. A forged record that is valid except for its missing signature must change nothing, in the
// running process and in a new process.
func TestForgedRecord(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	key := w.repo.NewKeyFile()
	w.signing, w.keys.State = key, w.list(key)
	p := w.startHealthy()
	s := p.awaitPaused(w.pushVersion("v2"))
	good := w.repo.Ref(stateBranch)

	s.Phase, s.Progress[0].Step, s.Progress[0].Name = rollout.Promoting, s.Progress[0].Of, "promote"
	s.Serial++
	w.edit(stateBranch, map[string]string{rollout.StatePath(w.app): encoded(t, s)})
	forgery, writes := w.repo.Ref(stateBranch), w.api.count()
	for range 2 {
		w.wantError(p.passes(3), "is not trusted", "not signed")
		p = p.restart()
	}
	w.wantNoWritesSince(writes)
	w.wantRecorded(forgery)
	w.repo.InBare("update-ref", "refs/heads/"+stateBranch, good)
	w.skew += 10e9
	w.decide(s.Release.Hash, "promote", "")
	p.awaitHealthy(s.Release.Commit)
}

// TestDashboardPushesOnNoRefusedHead checks that the dashboard commits an action only on top of an accepted head.
// Otherwise, the signature of the dashboard's commit would also approve the unsigned commits below.
func TestDashboardPushesOnNoRefusedHead(t *testing.T) {
	w, p, key := newSignedWorld(t)
	s := p.awaitPaused(w.pushVersion("v2"))
	w.signs("")
	w.pushAs("other", "unsigned", version("v1", halfThenGate))
	d := dashActor{dashRecords(p.source, p.created, streams{out: io.Discard, err: io.Discard})}
	promote := func() error {
		_, err := d.Act(t.Context(), dashboard.Person{Name: "Ann Lee", Email: "ann@example.com"}, w.app,
			propose.Action{Verb: rollout.Promote, Release: s.Release.Hash})
		return err
	}
	head := w.repo.Ref("main")
	w.wantError(promote(), "not signed by an allowed signer", "unsigned")
	w.wantBranch("main", head)
	w.signs(key)
	head = w.push("looked at", map[string]string{"note": "2"})
	if err := promote(); err != nil || w.repo.Ref("main") == head {
		t.Errorf("on top of a signed commit: %v", err)
	}
}
