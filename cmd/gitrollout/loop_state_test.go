package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/rollout"
)

// settings returns the files of an app that has only one generated ConfigMap.
func settings(value string) map[string]string {
	return map[string]string{"kustomization.yaml": "configMapGenerator:\n" +
		"- {name: APP, literals: [v=" + value + "], options: {disableNameSuffixHash: true}}\n"}
}

// TestStateIsBroken makes an app's record unreadable, for the running process and a new process. Until the record is repaired, the app must
// not change. Another app is not affected.
func TestStateIsBroken(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"not YAML":        "phase: [",
		"unknown field":   "apiVersion: gitrollout.dev/v1alpha1\nkind: RolloutState\napp: x\nphase: Healthy\nspeed: 9\n",
		"another version": "apiVersion: gitrollout.dev/v9\nkind: RolloutState\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			other := w.app + "-other"
			w.pushAs(other, "another app", settings("1"))
			p := w.startHealthy()
			file := rollout.StatePath(w.app)
			good := w.repo.Show(stateBranch, file)
			w.edit(stateBranch, map[string]string{file: content})
			broken := w.repo.Ref(stateBranch)
			writes := w.api.count()
			w.pushVersion("v2")
			for _, restart := range []bool{false, true} {
				if restart {
					p = p.restart()
				}
				begun := len(w.log.String())
				_ = p.passes(5)
				log := w.log.String()[begun:]
				if n := strings.Count(log, "cannot be read"); n != 1 {
					t.Errorf("restart %t: told %d times", restart, n)
				}
				w.wantText(log, file)
			}
			w.wantError(p.Unreadable(), file)
			w.wantNoWritesSince(writes)
			w.wantRecorded(broken)
			p.awaitSource(other, w.pushAs(other, "another value", settings("2"))) // the other app is not affected
			w.edit(stateBranch, map[string]string{file: good})
			p.awaitPhase(rollout.Paused)
		})
	}
}

// TestStateOfAnotherCluster checks that a process refuses the state branch of another cluster, at its start and later, and writes nothing.
func TestStateOfAnotherCluster(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	good := w.repo.Show(stateBranch, rollout.ClusterPath)
	for field, content := range map[string]string{
		"uid":     strings.Replace(good, "uid: ", "uid: not-", 1),
		"cluster": strings.Replace(good, "cluster: test", "cluster: other", 1),
	} {
		w.edit(stateBranch, map[string]string{rollout.ClusterPath: content})
		second := w.push("v2 "+field, version("v2"+field, halfThenGate))
		writes, refused := w.api.count(), w.repo.Ref(stateBranch)
		for _, q := range []*loopProcess{p, w.start()} {
			w.wantError(q.passes(3), "the state branch is for cluster")
			if n := q.Stats().Decided; q != p && n > 0 {
				t.Errorf("%s: a new process decided %d times without a record", field, n)
			}
		}
		w.wantNoWritesSince(writes)
		w.wantRecorded(refused)
		w.edit(stateBranch, map[string]string{rollout.ClusterPath: good})
		w.skew += time.Minute
		p.awaitPaused(second)
		w.decide(w.state().Release.Hash, "promote", "")
		p.awaitHealthy(second)
	}
}

// TestPauseWritesNothing checks that a step writes the Deployment once, and that the pause after the step writes nothing. If the state
// branch loses the record of the pause, a new process records the pause again. The app is not held, because the Deployment's label names
// the step's record.
func TestPauseWritesNothing(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	writes := w.api.count()
	s := p.awaitPaused(w.pushVersion("v2"))
	p.passWell(3)
	made := deployments(w.api.since(writes))
	if len(made) != 1 || s.Written == 0 || s.Written >= s.Serial {
		t.Errorf("written are %q, with serial %d and mark %d", made, s.Serial, s.Written)
	}
	w.repo.InBare("update-ref", "refs/heads/"+stateBranch, stateBranch+"~1")
	if again := w.start().awaitPaused(w.repo.Head()); again.Mark() != s.Mark() || again.Held != nil {
		t.Errorf("after the step's record the mark is %d, held %+v; want %d", again.Mark(), again.Held, s.Mark())
	}
}

// TestStateIsGone deletes the state branch, and later an app's record, between releases. The deployed version is adopted; no pod restarts.
func TestStateIsGone(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"same process": false, "new process": true} {
		t.Run(name, func(t *testing.T) {
			w, p := newHealthyWorld(t, version("v1", halfThenGate))
			w.decide("h1-0000000000", "promote", "a commit that changes nothing of the app")
			pods := w.pods()
			for _, remove := range []func(){
				func() { w.repo.InBare("update-ref", "-d", "refs/heads/"+stateBranch) },
				func() { w.edit(stateBranch, map[string]string{rollout.StatePath(w.app): ""}) },
			} {
				remove()
				if restart {
					p = p.restart()
				}
				p.awaitPhase(rollout.Healthy)
				p.passWell(5)
				w.wantText("\n"+strings.Join(w.history(), "\n"), "\nAPP adopted at")
				if !slices.Contains(w.repo.Files(stateBranch), rollout.ClusterPath) {
					t.Error("the new branch does not say which cluster it is for")
				}
			}
			w.wantPods(pods)
		})
	}
}

// TestStateIsGoneInFlight deletes the state branch while a release is paused. The stable version is then unknown, so
// the app is held and no pod changes until a user promotes.
func TestStateIsGoneInFlight(t *testing.T) {
	w, p, two := newPausedWorld(t)
	pods := w.pods()
	w.repo.InBare("update-ref", "-d", "refs/heads/"+stateBranch)
	for range 2 {
		p.wantHeld("", "in the middle of a release")
		p.passWell(5)
		w.wantPods(pods)
		p = p.restart()
	}
	w.decide(two.Release.Hash, "promote", "")
	p.awaitPhase(rollout.Healthy)
	if got := w.pods(); len(got["v2"]) != 2 || len(got["v1"]) > 0 {
		t.Errorf("pods %v", got)
	}
}

// TestManyAppsOneCommit releases 50 apps by one commit. A pass makes at most one commit and one push. No commit repeats a trailer.
func TestManyAppsOneCommit(t *testing.T) {
	tier.All(t)
	const n, halfThenSecond = 50, "    canary:\n      steps:\n      - setWeight: 50\n      - pause: {duration: 1}\n"
	w := newLoopWorld(t, nil)
	write := func(tag string) {
		for i := range n {
			app := fmt.Sprintf("%s-%d", w.app, i)
			for name, content := range version(tag, halfThenSecond) {
				content = strings.ReplaceAll(content, "replicas: 2", "replicas: 1")
				w.repo.Write(map[string]string{"apps/" + app + "/" + name: strings.ReplaceAll(content, "APP", app)})
			}
		}
	}
	p := w.start()
	pushes := func() (n int64) { return p.Repository.(*adapters.Repository).Stats().Pushes }
	for _, tag := range []string{"v1", "v2"} {
		write(tag)
		commit := w.repo.Commit(tag)
		commits, before := p.Stats().Commits, pushes()
		passes := 0
		for healthy := 0; healthy < n; passes++ {
			if passes > 500 {
				t.Fatalf("%s: %d apps healthy after 500 passes", tag, healthy)
			}
			must(t, p.passes(1))
			healthy = 0
			for _, s := range statesOf(t, w.repo) {
				if s.Phase == rollout.Healthy && s.Stable.Commit == commit {
					healthy++
				}
			}
		}
		made := p.Stats().Commits - commits
		if int64(made) != pushes()-before || made > passes {
			t.Errorf("%s: %d commits and %d pushes in %d passes", tag, made, pushes()-before, passes)
		}
		transitions := strings.Count(w.repo.InBare("log", "--format=%B", stateBranch), "Gitrollout-App:")
		t.Logf("%s: %d transitions of %d apps in %d commits and %d passes", tag, transitions, n, made, passes)
	}
	for _, line := range strings.Split(w.repo.InBare("log", "--format=%B%x00", stateBranch), "\x00") {
		for _, trailer := range strings.Split(line, "\n") {
			if strings.HasPrefix(trailer, "Gitrollout-App:") && strings.Count(line, trailer+"\n") > 1 {
				t.Errorf("twice in one commit: %s", trailer)
			}
		}
	}
	w.repo.Fsck()
}

// inOrder reverses lines, so that the oldest is first. It replaces hashes and commit IDs by numbers, in order of their appearance.
func inOrder(lines []string) []string {
	ids, known := regexp.MustCompile(`\bh1-[0-9a-f]{10}\b|\b[0-9a-f]{7}\b`), map[string]string{}
	var all []string
	for _, line := range slices.Backward(lines) {
		all = append(all, ids.ReplaceAllStringFunc(line, func(id string) string {
			if known[id] == "" {
				known[id] = fmt.Sprint("#", len(known))
			}
			return known[id]
		}))
	}
	return all
}

// TestFreshProcessAtEachPhase restarts the process after each pass of several releases. Records and pods must not depend on the restarts.
func TestFreshProcessAtEachPhase(t *testing.T) {
	t.Parallel()
	strategy := canaryOf("setWeight: 50", "pause: {}", "setWeight: 100", "pause: {duration: 5}")
	story := func(t *testing.T, fresh bool) (history []string, pods map[string]int) {
		w := newLoopWorld(t, version("v1", strategy))
		p := w.start()
		seen := map[string]string{} // the image tag of each pod, by the name of the pod
		until := func(what string, ok func(rollout.State) bool) (s rollout.State) {
			t.Helper()
			await(t, what, func() bool {
				p.passWell(1)
				for tag, names := range w.pods() {
					for _, name := range names {
						seen[name] = tag
					}
				}
				if s = w.state(); ok(s) {
					return true
				}
				if fresh {
					p = p.restart()
				}
				return false
			})
			return s
		}
		healthy := func(tag string) {
			t.Helper()
			until(tag+" healthy", func(s rollout.State) bool {
				return s.Phase == rollout.Healthy && w.image() == tag && s.Release == nil
			})
		}
		gate := pausedAt(1)
		healthy("v1")
		w.push("v2", version("v2", strategy))
		until("v2 at its gate", gate)
		w.repo.Merge(w.promotion())
		healthy("v2")
		third := w.pushImage("v3")
		until("v3 at its gate", gate)
		w.repo.Revert(third)
		healthy("v2")
		fourth := w.pushImage("v4")
		s := until("v4 at its gate", gate)
		w.decide(s.Release.Hash, "abort", "")
		until("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
		if !strings.Contains(s.Release.Commit, fourth) || w.repo.Ref(w.revert()) == "" {
			t.Error("no revert is proposed")
		}
		pods = map[string]int{}
		for _, tag := range seen {
			pods[tag]++
		}
		return w.history(), pods
	}
	var histories [2][]string
	var pods [2]map[string]int
	t.Run("one process", func(t *testing.T) { histories[0], pods[0] = story(t, false) })
	t.Run("a process for each pass", func(t *testing.T) { histories[1], pods[1] = story(t, true) })
	t.Cleanup(func() {
		compare.CheckNamed(t, "records of one process and of a process for each pass", inOrder(histories[0]), inOrder(histories[1]))
		compare.CheckNamed(t, "pods of one process and of a process for each pass", pods[0], pods[1])
	})
}

// TestRecordReplacesRetreat rolls back in a process that cannot push. When another process has recorded the rollback, the first process
// must not record it again.
func TestRecordReplacesRetreat(t *testing.T) {
	w, p, two := newPausedWorld(t)
	w.server.Fault(gittest.Faults{RejectPushes: never})
	w.repo.Revert(two.Release.Commit)
	_ = p.passes(3)
	w.server.Fault(gittest.Faults{})
	other := w.start()
	other.awaitPhase(rollout.Healthy)
	w.skew += time.Minute
	p.wantUnmoved(stateBranch, 5)
}
