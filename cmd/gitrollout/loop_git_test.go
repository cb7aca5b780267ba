package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// never is a number of refused pushes that no test reaches.
const never = 1 << 30

// wholeRelease has the subjects of the state commits for a first deployment, and for a release that is promoted by a merge of its proposal.
var wholeRelease = []string{
	"APP first deployment", "APP healthy", "APP release", "APP step 2/2 pause", "APP through its steps", "APP healthy",
}

// TestAdvanceIsInGitFirst lets Git refuse the pushes before each advance of a release. Nothing may be applied until Git has the record of
// the advance. When Git accepts pushes again, the advance is recorded once.
func TestAdvanceIsInGitFirst(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	blocked := func(what string, images map[string]int) {
		w.Helper()
		recorded, writes := w.repo.Ref(stateBranch), w.api.count()
		w.server.Fault(gittest.Faults{RejectPushes: never})
		w.wantError(p.passes(20), "record in Git")
		w.wantNoWritesSince(writes) // nothing is applied before Git has the record
		for tag, n := range images {
			if got := len(w.pods()[tag]); got != n {
				w.Errorf("%s: %d pods of %s, want %d", what, got, tag, n)
			}
		}
		w.server.Fault(gittest.Faults{})
		w.wantRecorded(recorded)
		w.skew += time.Minute // the back-off ends
	}
	blocked("first deployment", map[string]int{"v1": 0})
	p.awaitHealthy(w.repo.Head())
	second := w.pushVersion("v2")
	blocked("release", map[string]int{"v1": 2, "v2": 0})
	p.awaitPaused(second)
	w.repo.Merge(w.promotion())
	blocked("promotion", map[string]int{"v1": 2, "v2": 1})
	p.awaitHealthy(second)
	w.wantHistory("", wholeRelease...)
}

// TestLostAnswer breaks the connection after a successful push, before the process gets the response. The process
// then reads the refs, either immediately or after the server was unreachable. Each transition must be one commit.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"look at the refs": false, "server gone": true} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			p := w.start()
			fault := gittest.Faults{DropAfter: 1}
			if gone {
				fault.BeforePush = func(int) { w.server.Fault(gittest.Faults{Status: 503}) }
			}
			dropTwo := func() {
				t.Helper()
				for range 2 {
					before := w.repo.Ref(stateBranch)
					await(t, "a transition", func() bool {
						w.server.Fault(fault)
						if err := p.passes(1); err != nil && !gone {
							t.Error(err)
						}
						return w.repo.Ref(stateBranch) != before
					})
					if gone && p.passes(1) == nil {
						t.Error("a pass without a server had no error")
					}
					w.server.Fault(gittest.Faults{})
					w.skew += time.Minute
				}
			}
			dropTwo()
			second := w.pushVersion("v2")
			dropTwo()
			w.repo.Merge(w.promotion())
			dropTwo()
			p.awaitHealthy(second)
			w.wantHistory("", wholeRelease...)
			w.repo.Fsck()
		})
	}
}

// TestLostRace lets another writer push to a branch between the decision on a release and the push of its record. That pass must still
// record the release once.
func TestLostRace(t *testing.T) {
	t.Parallel()
	other := 0
	for name, race := range map[string]struct {
		move func(w *loopWorld)
		lost int
	}{
		"state branch": {func(w *loopWorld) { other++; w.edit(stateBranch, map[string]string{"README": fmt.Sprint(other)}) }, 1},
		"another app's state": {func(w *loopWorld) {
			s := rollout.State{App: "elsewhere", Path: "gone", Phase: rollout.Healthy}
			w.edit(stateBranch, map[string]string{rollout.StatePath("elsewhere"): encoded(w, s)})
		}, 1},
		"main": {func(w *loopWorld) { w.edit("main", map[string]string{"README": "hello"}) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newHealthyWorld(t, version("v1", halfThenGate))
			start := w.repo.Ref(stateBranch)
			second := w.pushVersion("v2")
			w.server.Fault(gittest.Faults{BeforePush: func(int) {
				w.server.Fault(gittest.Faults{})
				race.move(w)
			}})
			must(t, p.pass())
			if s := w.state(); s.Release == nil || s.Release.Commit != second {
				t.Errorf("after the pass the state is %s, want the release recorded", s.Phase)
			}
			if got := p.Stats().Lost; got != race.lost {
				t.Errorf("%d lost pushes, want %d", got, race.lost)
			}
			p.awaitPaused(second)
			lines := strings.Split(w.repo.InBare("log", "--format=%B", start+".."+stateBranch), "\n")
			isOther := func(line string) bool { return !strings.Contains(line, w.app+" release h1-") }
			if n := len(slices.DeleteFunc(lines, isOther)); n != 1 {
				t.Errorf("the release was recorded %d times", n)
			}
		})
	}
}

// TestRaceIsBounded moves the state branch before every push of a pass. This pass fails and applies nothing. Later passes release v2.
func TestRaceIsBounded(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	second := w.pushVersion("v2")
	writes, pushes := w.api.count(), 0
	w.server.Fault(gittest.Faults{BeforePush: func(n int) {
		pushes++
		w.edit(stateBranch, map[string]string{"README": fmt.Sprint(n)})
	}})
	w.wantError(p.pass(), "record in Git")
	if pushes < 2 || pushes > 6 || p.Stats().Lost != pushes {
		t.Errorf("%d pushes, %d counted as lost", pushes, p.Stats().Lost)
	}
	w.wantNoWritesSince(writes)
	w.server.Fault(gittest.Faults{})
	p.awaitPaused(second)
}

// TestTwoInLockStep runs a whole pass of a second process after each decision of the first process, before the push. If both clocks are
// equal, both processes make the same commit. Otherwise, the first process loses the race. Each transition is recorded once.
func TestTwoInLockStep(t *testing.T) {
	t.Parallel()
	for name, apart := range map[string]time.Duration{"one clock": 0, "clocks apart": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			first, second := w.start(), w.start()
			inside := false
			w.server.Fault(gittest.Faults{BeforePush: func(int) {
				if inside {
					return
				}
				inside = true
				late := func() time.Time { return w.now().Add(apart) }
				if err := second.RunOnce(second.ctx, late, true); err != nil {
					t.Errorf("second: %v", err)
				}
				inside = false
			}})
			first.awaitHealthy(w.repo.Head())
			commit := w.pushVersion("v2")
			first.awaitPaused(commit)
			w.repo.Merge(w.promotion())
			first.awaitHealthy(commit)
			w.wantHistory("", wholeRelease...)
			if lost := first.Stats().Lost; apart > 0 && lost < 2 {
				t.Errorf("the first lost %d races, want one for each transition that it began", lost)
			}
			if got := len(w.pods()["v2"]); got != 2 {
				t.Errorf("%d pods of v2, want 2", got)
			}
		})
	}
}

// TestGitIsBack checks that the loop pushes immediately when Git is reachable again, although the back-off has grown.
func TestGitIsBack(t *testing.T) {
	w, p, s := newPausedWorld(t)
	w.decide(s.Release.Hash, "abort", "")
	for _, away := range []gittest.Faults{{RejectPushes: never}, {Status: 503}} { // the first breaks pushes, the second polls
		w.server.Fault(away)
		if err := p.passes(10); err == nil {
			t.Error("a pass without Git had no error")
		}
	}
	w.server.Fault(gittest.Faults{})
	must(t, p.pass())
	if s := w.state(); s.Phase == rollout.Paused {
		t.Errorf("Git is back, and the record still says %s", s.Phase)
	}
}

// TestHistoryIsRewritten replaces the users' branch by one commit with the same files during a release. The server deletes the old commits.
// Neither the running process, which has cached the old commits, nor a new process may change a pod.
func TestHistoryIsRewritten(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"same process": false, "new process": true} {
		t.Run(name, func(t *testing.T) {
			w, p, _ := newPausedWorld(t)
			pods := w.pods()
			if restart {
				p.end()
			}
			w.repo.Pull()
			squashed := w.repo.Git("commit-tree", "-m", "all of it", "HEAD^{tree}")
			w.repo.Git("reset", "-q", "--hard", squashed)
			w.repo.ForcePush(squashed)
			for _, branch := range []string{w.promotion(), w.revert()} {
				if w.repo.Ref(branch) != "" {
					w.repo.InBare("update-ref", "-d", "refs/heads/"+branch)
				}
			}
			w.repo.InBare("reflog", "expire", "--expire=now", "--all")
			w.repo.InBare("gc", "-q", "--prune=now")
			if restart {
				p = w.start()
			}
			_ = p.passes(5)
			w.wantPods(pods)
			if restart {
				// The stable commit is gone. After the push of v3, the rollback of v2 fails with "history rewritten" until the head has the
				// files of v1.
				w.pushVersion("v3")
				p.awaitPhase(rollout.Aborting)
				w.wantText(fmt.Sprint(p.passes(3))+w.log.String(), "history rewritten")
				if now := w.pods(); len(now["v1"]) != len(pods["v1"]) {
					t.Errorf("pods %v, want as many of v1 as in %v", now, pods)
				}
				w.push("v1 again", version("v1", halfThenGate))
				p.awaitPhase(rollout.Healthy)
			}
			p.release("v4")
		})
	}
}

// TestClockJumps sets the clock back and forward by a day during a pause with a duration. If the clock is set back, the pause may get
// longer, but never shorter. If the clock is set forward, this pause ends, but the next pause, which has no duration, continues.
func TestClockJumps(t *testing.T) {
	strategy := canaryOf("setWeight: 50", "pause: {duration: 60}", "pause: {}")
	w, p := newHealthyWorld(t, version("v1", strategy))
	p.awaitPaused(w.push("v2", version("v2", strategy)))
	recorded := w.repo.Ref(stateBranch)
	for _, jump := range []time.Duration{-24 * time.Hour, -time.Minute, 24 * time.Hour} { // the 60 seconds are not over yet
		w.skew += jump
		p.passWell(3)
		if now := w.repo.Ref(stateBranch); now != recorded {
			t.Fatalf("after %s the pause is over: %v", jump, w.history())
		}
	}
	w.skew += 24 * time.Hour
	p.await("at the gate", pausedAt(2))
	if err := p.passes(5); err != nil || w.state().Progress[0].Step != 2 {
		t.Errorf("a clock that is ahead opens a gate: %v, %v", err, w.history())
	}
}

// TestAuthorOfWhatIsRecorded checks that commits of records and proposals have the configured author, because some
// servers accept only known users. The default author's mail address is not deliverable.
func TestAuthorOfWhatIsRecorded(t *testing.T) {
	t.Parallel()
	for author, want := range map[string]string{
		"":                               "gitrollout <gitrollout@noreply.invalid>",
		"Release Bot <bot@corp.example>": "Release Bot <bot@corp.example>",
	} {
		t.Run(author, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			w.author = author
			p := w.startHealthy()
			p.awaitPaused(w.pushVersion("v2"))
			for _, branch := range []string{stateBranch, w.promotion()} {
				by := strings.TrimSpace(w.repo.InBare("log", "-1", "--format=%an <%ae>, %cn <%ce>", branch))
				if by != want+", "+want {
					t.Errorf("%s is by %s, want %s", branch, by, want)
				}
			}
		})
	}
}
