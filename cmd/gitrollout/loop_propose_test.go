package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// manyGates is a strategy with two pauses without a duration, one after the other.
const manyGates = halfThenGate + "      - pause: {}\n"

// TestPromotionProposal checks the branch with the proposal to promote, during a release with two pauses.
func TestPromotionProposal(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", manyGates))
	branch, file := w.promotion(), rollout.PromotionPath("test", w.app)
	second := w.push("Faster checkout", version("v2", manyGates))
	s := p.awaitPaused(second)
	first := w.repo.Ref(branch)
	if parent := w.repo.InBare("rev-parse", branch+"~1"); parent != second {
		t.Errorf("it stands on %s, want main's %s", parent, second)
	}
	if files := w.repo.InBare("diff", "--name-only", second, branch); files != file {
		t.Errorf("it changes %s", files)
	}
	promotion, err := rollout.ParsePromotion("x", []byte(w.repo.Show(branch, file)))
	if err != nil || promotion.Release != s.Release.Hash || promotion.Through != "2" ||
		!promotion.Since.Equal(s.Release.Since) || promotion.Decision != rollout.Promote {
		t.Errorf("promotion %+v, %v", promotion, err)
	}
	w.wantText(w.repo.Message(branch), w.app, "step 2", string(s.Release.Hash), second[:7], "Dev <dev@example.com>",
		"Faster checkout", "50%", "gitrollout undo "+w.app)
	entered := s.Progress[0].Entered.Format("2006-01-02T15:04:05")
	if at := w.repo.InBare("log", "-1", "--format=%aI %cI", branch); strings.Count(at, entered) != 2 {
		t.Errorf("its times are %s, want when the step was entered: %s", at, entered)
	}

	// A user deletes the branch. Other changes of the app during the same pause must not create the branch again.
	w.repo.InBare("update-ref", "-d", "refs/heads/"+branch)
	w.push("more pods", map[string]string{
		"app.yaml": strings.ReplaceAll(version("v2", "")["app.yaml"], "replicas: 2", "replicas: 4"),
	})
	p.await("the change followed", func(s rollout.State) bool { return s.Source == w.repo.Head() && s.Phase == rollout.Paused })
	w.wantBranch(branch, "")
	// Promote with a file in the first version of its format, which counts steps from 0. The next pause gets another proposal.
	w.repo.CommitFiles("promote", map[string]string{file: fmt.Sprintf(
		"apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: %s\nthrough: 1\n", s.Release.Hash)})
	p.await("at the second gate", pausedAt(2))
	next := w.repo.Ref(branch)
	if next == "" || next == first || !strings.Contains(w.repo.Show(branch, file), `through: "3"`) {
		t.Fatalf("the second gate's proposal is %q", next)
	}
	// An unrelated commit on main does not change the proposal.
	w.repo.CommitFiles("unrelated", map[string]string{"README": "hello"})
	_ = p.passes(2)
	w.wantBranch(branch, next)
	// While another writer's commit is on the branch, `get` must not suggest merging the branch. The next passes replace the commit.
	merge := "git merge --no-ff origin/" + branch
	w.wantText(w.command(exitOK, "get", w.app), merge)
	w.edit(branch, map[string]string{"app.yaml": version("evil", "")["app.yaml"]})
	if text := w.command(exitOK, "get", w.app); strings.Contains(text, merge) {
		t.Errorf("it says to merge a stranger's commit:\n%s", text)
	}
	_ = p.passes(2)
	if files := w.repo.InBare("diff", "--name-only", "main", branch); files != file {
		t.Errorf("made anew, it changes %s", files)
	}
	w.wantText(w.command(exitOK, "get", w.app), merge)
	w.repo.Merge(branch)
	p.awaitPhase(rollout.Healthy)
	w.wantBranch(branch, "")
}

// TestProposalIsDeterministic removes a proposal and the newest commit of the state branch. A new process must make exactly the same
// commits again.
func TestProposalIsDeterministic(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	branch := w.promotion()
	second := w.pushVersion("v2")
	p.await("released", func(s rollout.State) bool { return s.Release != nil })
	// Refuse writes to the Deployment. Otherwise, the Deployment's label would be newer than the record after the reset below, and the app
	// would be held.
	w.api.refuse("/deployments/")
	p.awaitPaused(second)
	id, recorded := w.repo.Ref(branch), w.repo.Ref(stateBranch)
	p.end()
	w.api.refuse()
	// Reset the branches to before the last push, and the clock to 1 ms before the step. The record rounds this time up to a full second.
	s := w.state()
	w.repo.InBare("update-ref", "refs/heads/"+stateBranch, stateBranch+"~1")
	w.repo.InBare("update-ref", "-d", "refs/heads/"+branch)
	again := w.start()
	await(t, "the proposal is made again", func() bool {
		early := func() time.Time { return s.Progress[0].Entered.Add(-time.Millisecond) }
		must(t, again.RunOnce(again.ctx, early, true))
		return w.repo.Ref(branch) != ""
	})
	w.wantBranch(branch, id)
	w.wantRecorded(recorded)
}

// TestProposalsThatAreStale checks that a proposal is deleted in the same push as the transition that makes the proposal outdated.
func TestProposalsThatAreStale(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(w *loopWorld, s rollout.State){
		"aborted":    func(w *loopWorld, s rollout.State) { w.decide(s.Release.Hash, "abort", "") },
		"superseded": func(w *loopWorld, _ rollout.State) { w.pushVersion("v3") },
		"opened":     func(w *loopWorld, s rollout.State) { w.decide(s.Release.Hash, "promote", "") },
	} {
		t.Run(name, func(t *testing.T) {
			w, p, s := newPausedWorld(t)
			recorded := w.repo.Ref(stateBranch)
			leave(w, s)
			for w.repo.Ref(stateBranch) == recorded {
				_ = p.pass()
			}
			w.wantBranch(w.promotion(), "")
		})
	}
}

// TestAmendedProposal checks that gitrollout replaces and reports another writer's commit on a proposal's branch.
// Every user with gitrollout's rights in Git can push such a commit.
func TestAmendedProposal(t *testing.T) {
	w, p, _ := newPausedWorld(t)
	branch := w.promotion()
	proposed := w.repo.Ref(branch)
	app := "apps/" + w.app + "/app.yaml"
	w.edit(branch, map[string]string{app: strings.ReplaceAll(version("mallory", halfThenGate)["app.yaml"], "APP", w.app)})
	w.repo.Git("fetch", "-q", "origin", branch)
	// As after git commit --amend, the commit's parent is main, and its message is the proposal's message.
	tree := w.repo.Git("rev-parse", "FETCH_HEAD^{tree}")
	amended := w.repo.Git("commit-tree", tree, "-p", w.repo.Ref("main"), "-m", w.repo.Message(branch+"^"))
	w.repo.Git("push", "-q", "--force", "origin", amended+":refs/heads/"+branch)
	for range 10 {
		p.passWell(1)
	}
	if now := w.repo.Show(branch, app); strings.Contains(now, "mallory") {
		t.Errorf("the proposal has a stranger's change, %s after %s:\n%s", w.repo.Ref(branch), proposed, now)
	}
	w.wantText(w.log.String(), "a proposal is replaced", amended)
}

// TestRevertProposal checks the proposal to revert a rejected release that changed files of its app and of a base shared with another app.
func TestRevertProposal(t *testing.T) {
	base := func(tag string) map[string]string {
		return map[string]string{"base/kustomization.yaml": "configMapGenerator:\n- {name: base, literals: [v=" + tag + "]}\n"}
	}
	kustomization := "resources: [app.yaml, service.yaml, rollout.yaml, ../../base]\n"
	files := func(tag string) map[string]string {
		return with(version(tag, halfThenGate), map[string]string{"kustomization.yaml": kustomization})
	}
	w := newLoopWorld(t, nil)
	w.repo.Write(base("1")).Write(map[string]string{
		"other/kustomization.yaml": "resources: [../base]\nnamePrefix: other-\n", "elsewhere/note": "one\n",
		configFile: w.config("- path: apps/*", "- path: other"),
	})
	first := w.push("v1", files("v1"))
	p := w.startHealthy()
	w.repo.Write(base("2")).Write(map[string]string{"elsewhere/note": "two\n"})
	second := w.push("v2", with(files("v2"), map[string]string{
		"extra.yaml": "x: y\n", "kustomization.yaml": "commonAnnotations: {x: why}\n" + kustomization,
	}))
	s := p.awaitPaused(second)
	w.decide(s.Release.Hash, "abort", "too many errors")
	p.awaitPhase(rollout.Degraded)
	branch, app := w.revert(), "apps/"+w.app
	id := w.repo.Ref(branch)
	if id == "" {
		t.Fatal("no revert is proposed")
	}
	changed := strings.Split(w.repo.InBare("diff", "--name-only", branch+"~1", branch), "\n")
	want := []string{app + "/app.yaml", app + "/kustomization.yaml", app + "/service.yaml", "base/kustomization.yaml"}
	compare.CheckNamed(t, "changed files", want, changed)
	if diff := w.repo.InBare(append([]string{"diff", "--name-only", first, branch, "--"}, want...)...); diff != "" {
		t.Errorf("these are not as they were: %s", diff)
	}
	w.wantText(w.repo.Message(branch), w.app, string(s.Release.Hash), second[:7], "too many errors", "files of: other",
		"gitrollout retry "+w.app)
	// A user deletes the proposal. Later changes of the degraded app must not create the proposal again.
	w.repo.InBare("update-ref", "-d", "refs/heads/"+branch)
	file := rollout.PromotionPath("test", w.app)
	w.repo.CommitFiles("break", map[string]string{file: "nonsense"})
	p.await("held", isHeld)
	w.repo.CommitFiles("mend", map[string]string{"README": "hello", file: w.repo.Show("main~1", file)})
	p.await("no longer held", notHeld)
	w.wantBranch(branch, "")
	w.repo.InBare("update-ref", "refs/heads/"+branch, id)
	w.repo.Merge(branch)
	if back := p.awaitPhase(rollout.Healthy); back.Stable.Commit != first {
		t.Errorf("stable is of %s, want %s", back.Stable.Commit, first)
	}
	w.wantBranch(branch, "")
}

// TestFastForwardedProposal merges a proposal by fast-forward. The record must not name the commit's author, gitrollout, as promoter.
func TestFastForwardedProposal(t *testing.T) {
	w, p, _ := newPausedWorld(t)
	w.repo.InBare("update-ref", "refs/heads/main", "refs/heads/"+w.promotion())
	p.awaitPhase(rollout.Healthy)
	w.wantText(strings.Join(w.history(), "\n"), "a merged proposal")
}
