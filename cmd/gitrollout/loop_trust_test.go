package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/dashboard"
)

// signs sets the key for the test's later commits; "" for unsigned ones.
func (w *loopWorld) signs(key string) {
	w.Helper()
	w.repo.Git("config", "gpg.format", "ssh")
	w.repo.Git("config", "commit.gpgsign", fmt.Sprint(key != ""))
	w.repo.Git("config", "user.signingkey", key)
}

// list writes an allowed_signers file with some keys.
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
		if err != nil {
			w.Fatal(err)
		}
		text += "ann@example.com " + string(public)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// awaitHeld waits until the app is held with a message.
func (p *loopProcess) awaitHeld(words ...string) rollout.State {
	p.w.Helper()
	return p.await("held: "+strings.Join(words, ", "), func(s rollout.State) bool {
		for _, word := range words {
			if s.Held == nil || !strings.Contains(s.Held.Message, word) {
				return false
			}
		}
		return true
	})
}

// wantNoWrites makes passes without writes to the cluster.
func (p *loopProcess) wantNoWrites(n int) {
	p.w.Helper()
	before := p.w.api.count()
	if err := p.passes(n); err != nil {
		p.w.Error(err)
	}
	if wrote := p.w.api.since(before); len(wrote) > 0 {
		p.w.Errorf("the cluster was written to: %v", wrote)
	}
}

// TestUnsignedHeadIsNotFollowed pushes unsigned commits at rest, before and after restarts, and repairs that with a
// signed one.
func TestUnsignedHeadIsNotFollowed(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	key := w.repo.NewKeyFile()
	w.keys.commits = w.list(key)
	w.signs(key)
	first := w.push("signed", map[string]string{"note": "1"})
	p := w.start()
	p.awaitHealthy(first)

	w.signs("")
	evil := w.push("unsigned", version("v2", halfThenGate))
	s := p.awaitHeld(rollout.ShortID(evil), "Dev <dev@example.com>", "not signed", "git commit -S")
	if s.Source != first || s.Held.Commit != evil || s.Release != nil {
		t.Errorf("the state is %+v", s)
	}
	p.wantNoWrites(3)
	p.end()

	// A new process does not know the last accepted head. A signed commit that was never the head is not released either.
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
	s = p.awaitPaused(evil) // the commit that made the version, which the signed head now covers
	if s.Held != nil || s.Stable.Commit != first {
		t.Errorf("the state is %+v", s)
	}
}

// newSignedWorld requires and has signed commits, with a process that follows them, and returns the key.
func newSignedWorld(t *testing.T) (w *loopWorld, p *loopProcess, key string) {
	t.Helper()
	w = newLoopWorld(t, version("v1", halfThenGate))
	key = w.repo.NewKeyFile()
	w.keys.commits = w.list(key)
	w.signs(key)
	w.push("signed", map[string]string{"note": "1"})
	p = w.start()
	p.awaitHealthy(w.repo.Head())
	return w, p, key
}

// TestUnsignedHeadOfAnother continues a release after an unsigned commit to another app, and after a restart.
func TestUnsignedHeadOfAnother(t *testing.T) {
	w, p, key := newSignedWorld(t)
	release := w.push("v2", version("v2", halfThenGate))
	p.awaitPaused(release)

	w.signs("")
	w.pushAs("other", "unsigned", version("v1", halfThenGate))
	p.passes(2)
	p.end()
	p = w.start()
	p.passes(2)
	if s := w.state(); s.Held != nil || s.Phase != rollout.Paused || s.Release.Commit != release {
		t.Errorf("the state is %+v", s)
	}
	if s := w.stateOf("other"); s.Source != "" {
		t.Errorf("the unsigned app was started: %+v", s)
	}
	// An unsigned promotion holds the app, a signed one promotes.
	w.repo.Pull()
	proposal := "gitrollout/promote/test/" + w.app
	w.repo.Merge(proposal)
	p.awaitHeld("not signed")
	w.signs(key)
	w.push("signed", map[string]string{"note": "2"})
	p.awaitHealthy(release)
}

// TestStateBranchOfAnUnsignedHead restarts under a head whose configuration
// names another state branch, with a forged state on it.
func TestStateBranchOfAnUnsignedHead(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	key := w.repo.NewKeyFile()
	w.keys.commits = w.list(key)
	w.signs(key)
	first := w.push("signed", map[string]string{"note": "1"})
	p := w.start()
	p.awaitHealthy(first)
	p.end()
	w.signs("")
	evil := w.push("unsigned", version("v2", halfThenGate))
	w.repo.Git("fetch", "-q", "origin", stateBranch)
	w.repo.Git("checkout", "-q", "-b", "gitrollout/evil", "FETCH_HEAD")
	state := w.state()
	state.Source, state.Stable.Commit = evil, evil
	forged, err := state.Encode()
	if err != nil {
		t.Fatal(err)
	}
	w.repo.CommitFiles("forged", map[string]string{rollout.StatePath(w.app): string(forged)})
	w.repo.Git("checkout", "-q", "main")
	w.repo.CommitFiles("unsigned", map[string]string{configFile: w.config("- path: apps/*") + "stateBranch: gitrollout/evil\n"})
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
	w.keys.commits = w.list(key)
	p := w.start()
	if err := p.pass(); err == nil || !strings.Contains(err.Error(), "not signed") {
		t.Errorf("the pass ends with %v", err)
	}
	if n := w.api.count(); n > 0 {
		t.Errorf("the cluster was written to: %v", w.api.since(0))
	}
	w.signs(key)
	p.awaitHealthy(w.push("signed", map[string]string{"note": "1"}))
	// The file is read again: a key that is added later counts at once.
	second := w.repo.NewKeyFile()
	w.signs(second)
	commit := w.push("by the second key", version("v2", halfThenGate))
	p.awaitHeld("key is not in")
	w.relist(w.keys.commits, key, second)
	p.awaitPaused(commit)
}

// TestPromoters merges valid and invalid promotions.
func TestPromoters(t *testing.T) {
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
			w.keys.promoters = w.list(key)
			p := w.start()
			p.awaitHealthy(w.repo.Head())
			commit := w.push("v2", version("v2", halfThenGate))
			p.awaitPaused(commit)
			tt.merge(w, key, "gitrollout/promote/test/"+w.app)
			if !tt.holds {
				s := p.awaitHealthy(commit)
				if log := strings.Join(w.history(), "\n"); !strings.Contains(log, "ann@example.com") {
					t.Errorf("the log does not name the promoter: %s\n%+v", log, s)
				}
				return
			}
			s := p.awaitHeld(rollout.PromotionPath("test", w.app), "does not count", "git commit -S")
			if s.Release == nil || s.Release.Commit != commit || s.Progress[0].Step != 1 {
				t.Errorf("the state is %+v", s)
			}
			p.wantNoWrites(2)
			// A revert of the release works despite the invalid promotion.
			w.signs("")
			w.push("back", version("v1", halfThenGate))
			p.await("healthy at v1", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Held == nil && s.Release == nil })
		})
	}
}

// TestRecordNamesAStrangersCommit has an attacker with push access below gitrollout/ but not to main. The attacker puts
// a commit on a proposal's branch, and forges a record with the app at that commit. The cluster is unchanged, in a
// running process and a new one, with and without signatures.
func TestRecordNamesAStrangersCommit(t *testing.T) {
	for name, tt := range map[string]struct{ signed, restart bool }{
		"unsigned, same process": {}, "unsigned, new process": {restart: true},
		"signed, same process": {signed: true}, "signed, new process": {signed: true, restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			if tt.signed {
				key := w.repo.NewKeyFile()
				w.keys.commits = w.list(key)
				w.signs(key)
			}
			first := w.push("followed", map[string]string{"note": "1"})
			p := w.start()
			state := p.awaitHealthy(first)
			w.signs("")
			const branch = "gitrollout/promote/test/zzz"
			w.repo.InBare("update-ref", "refs/heads/"+branch, first)
			w.edit(branch, map[string]string{"apps/" + w.app + "/app.yaml": strings.ReplaceAll(version("v10", halfThenGate)["app.yaml"], "APP", w.app)})
			stranger := w.repo.Ref(branch)
			tree, err := p.created.Snapshot(t.Context(), stranger)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := source.NewReader("test", p.renderer).Render(tree, rollout.App{Name: w.app, Path: "apps/" + w.app, Namespace: w.ns})
			if err != nil {
				t.Fatal(err)
			}
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
			text, err := forged.Encode()
			if err != nil {
				t.Fatal(err)
			}
			w.edit(stateBranch, map[string]string{rollout.StatePath(w.app): string(text)})
			if tt.restart {
				p = w.start()
			}
			if err := p.passes(6); err == nil || !strings.Contains(err.Error(), "not part of the users' branch") {
				t.Errorf("the error is %v", err)
			}
			if got := w.image(); got != "v1" {
				t.Errorf("the Deployment asks for %s", got)
			}
		})
	}
}

// TestForgedRecord requires signed records: a perfect forgery without the signature changes nothing, neither in the
// running process nor in a new one.
func TestForgedRecord(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	key := w.repo.NewKeyFile()
	w.signing, w.keys.state = key, w.list(key)
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	second := w.push("v2", version("v2", halfThenGate))
	s := p.awaitPaused(second)
	good := w.repo.Ref(stateBranch)

	s.Phase, s.Progress[0].Step, s.Progress[0].Name = rollout.Promoting, s.Progress[0].Of, "promote"
	s.Serial++
	forged, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	w.edit(stateBranch, map[string]string{rollout.StatePath(w.app): string(forged)})
	forgery, writes := w.repo.Ref(stateBranch), w.api.count()
	for range 2 {
		if err := p.passes(3); err == nil || !strings.Contains(err.Error(), "is not believed") || !strings.Contains(err.Error(), "not signed") {
			t.Errorf("the error is %v", err)
		}
		p.end()
		p = w.start()
	}
	if made := w.api.since(writes); len(made) > 0 || w.repo.Ref(stateBranch) != forgery {
		t.Errorf("writes %v, recorded %v", made, w.history())
	}
	w.repo.InBare("update-ref", "refs/heads/"+stateBranch, good)
	w.skew += 10e9
	w.decide(s.Release.Hash, "promote", "")
	p.awaitHealthy(second)
}

// TestDashboardPushesOnNoRefusedHead commits actions of the dashboard only on top of an accepted head, since
// gitrollout's signature would also cover an unsigned one.
func TestDashboardPushesOnNoRefusedHead(t *testing.T) {
	w, p, key := newSignedWorld(t)
	s := p.awaitPaused(w.push("v2", version("v2", halfThenGate)))
	w.signs("")
	w.pushAs("other", "unsigned", version("v1", halfThenGate))
	d := dashActor{dashRecords(p.source, p.created, streams{out: io.Discard, err: io.Discard})}
	promote := func() error {
		_, err := d.Act(t.Context(), dashboard.Person{Name: "Ann Lee", Email: "ann@example.com"}, w.app,
			propose.Action{Verb: rollout.Promote, Release: s.Release.Hash})
		return err
	}
	head := w.repo.Ref("main")
	if err := promote(); err == nil || !strings.Contains(err.Error(), "not signed by an allowed signer") || !strings.Contains(err.Error(), "unsigned") {
		t.Errorf("the error is %v", err)
	}
	if now := w.repo.Ref("main"); now != head {
		t.Errorf("%s was pushed on top of %s", now, head)
	}
	w.signs(key)
	head = w.push("looked at", map[string]string{"note": "2"})
	if err := promote(); err != nil || w.repo.Ref("main") == head {
		t.Errorf("on top of a signed commit: %v", err)
	}
}
