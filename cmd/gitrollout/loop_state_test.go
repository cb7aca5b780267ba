package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/rollout"
)

// settings returns an app of one generated ConfigMap.
func settings(value string) map[string]string {
	return map[string]string{"kustomization.yaml": "configMapGenerator:\n- {name: APP, literals: [v=" + value + "], options: {disableNameSuffixHash: true}}\n"}
}

// TestStateIsBroken makes a record unreadable, in a running process and before the start of one. The app is left alone
// until the file is repaired, and another one continues.
func TestStateIsBroken(t *testing.T) {
	for name, content := range map[string]string{
		"not YAML":        "phase: [",
		"unknown field":   "apiVersion: gitrollout.dev/v1alpha1\nkind: RolloutState\napp: x\nphase: Healthy\nspeed: 9\n",
		"another version": "apiVersion: gitrollout.dev/v9\nkind: RolloutState\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			other := w.app + "-other"
			w.pushAs(other, "another app", settings("1"))
			p := w.start()
			p.awaitHealthy(w.repo.Head())
			file := rollout.StatePath(w.app)
			good := w.repo.Show(stateBranch, file)
			w.edit(stateBranch, map[string]string{file: content})
			broken := w.repo.Ref(stateBranch)
			writes := w.api.count()
			w.push("v2", version("v2", halfThenGate))
			for _, restart := range []bool{false, true} {
				if restart {
					p.end()
					p = w.start()
				}
				begun := len(w.log.String())
				_ = p.passes(5)
				if n := strings.Count(w.log.String()[begun:], "cannot be read"); n != 1 {
					t.Errorf("restart %t: told %d times", restart, n)
				}
				if log := w.log.String()[begun:]; !strings.Contains(log, file) {
					t.Errorf("the log does not name the file:\n%s", log)
				}
			}
			if err := p.Unreadable(); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("once would say %v", err)
			}
			if made := w.api.since(writes); len(made) > 0 || w.repo.Ref(stateBranch) != broken {
				t.Errorf("writes %v, recorded %s", made, w.history()[0])
			}
			w.pushAs(other, "another value", settings("2"))
			p.awaitOf(other, "the other app goes on", func(s rollout.State) bool { return s.Source == w.repo.Head() })
			w.edit(stateBranch, map[string]string{file: good})
			p.await("v2 at its gate", func(s rollout.State) bool { return s.Phase == rollout.Paused })
		})
	}
}

// TestStateOfAnotherCluster refuses the branch with the reason, at the start and later, and writes nothing.
func TestStateOfAnotherCluster(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	good := w.repo.Show(stateBranch, rollout.ClusterPath)
	for field, content := range map[string]string{
		"uid":     strings.Replace(good, "uid: ", "uid: not-", 1),
		"cluster": strings.Replace(good, "cluster: test", "cluster: other", 1),
	} {
		w.edit(stateBranch, map[string]string{rollout.ClusterPath: content})
		second := w.push("v2 "+field, version("v2"+field, halfThenGate))
		writes, refused := w.api.count(), w.repo.Ref(stateBranch)
		for _, q := range []*loopProcess{p, w.start()} {
			if err := q.passes(3); err == nil || !strings.Contains(err.Error(), "the state branch is for cluster") {
				t.Errorf("%s: the error is %v", field, err)
			}
			if n := q.Stats().Decided; q != p && n > 0 {
				t.Errorf("%s: a new process decided %d times without a record", field, n)
			}
		}
		if made := w.api.since(writes); len(made) > 0 || w.repo.Ref(stateBranch) != refused {
			t.Errorf("%s: writes %v, recorded %s", field, made, w.history()[0])
		}
		w.edit(stateBranch, map[string]string{rollout.ClusterPath: good})
		w.skew += time.Minute
		p.awaitPaused(second)
		w.decide(w.state().Release.Hash, "promote", "")
		p.awaitHealthy(second)
	}
}

// TestPauseWritesNothing releases a version: the Deployment gets one write for its step, and none for the pause after
// it. The pause is decided again from the record of the step, which is not older than the cluster.
func TestPauseWritesNothing(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	writes := w.api.count()
	s := p.awaitPaused(w.push("v2", version("v2", halfThenGate)))
	if err := p.passes(3); err != nil {
		t.Error(err)
	}
	made := slices.DeleteFunc(w.api.since(writes), func(line string) bool { return !strings.Contains(line, "/deployments/") })
	if len(made) != 1 || s.Written == 0 || s.Written >= s.Serial {
		t.Errorf("written are %q, with serial %d and mark %d", made, s.Serial, s.Written)
	}
	w.repo.InBare("update-ref", "refs/heads/"+stateBranch, stateBranch+"~1")
	if again := w.start().awaitPaused(w.repo.Head()); again.Mark() != s.Mark() || again.Held != nil {
		t.Errorf("after the step's record the mark is %d, held %+v; want %d", again.Mark(), again.Held, s.Mark())
	}
}

// TestStateIsGone deletes the state branch, or one app's file, at rest: the running version is adopted again, and no
// pod restarts.
func TestStateIsGone(t *testing.T) {
	for name, restart := range map[string]bool{"same process": false, "new process": true} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			p := w.start()
			first := w.repo.Head()
			p.awaitHealthy(first)
			w.decide("h1-0000000000", "promote", "a commit that changes nothing of the app")
			pods := w.pods()
			for _, remove := range []func(){
				func() { w.repo.InBare("update-ref", "-d", "refs/heads/"+stateBranch) },
				func() { w.edit(stateBranch, map[string]string{rollout.StatePath(w.app): ""}) },
			} {
				remove()
				if restart {
					p.end()
					p = w.start()
				}
				p.await("adopted again", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
				if err := p.passes(5); err != nil || !slices.ContainsFunc(w.history(), func(s string) bool { return strings.HasPrefix(s, "APP adopted at") }) {
					t.Errorf("error %v, recorded %v", err, w.history())
				}
				if !slices.Contains(w.repo.Files(stateBranch), rollout.ClusterPath) {
					t.Error("the new branch does not say which cluster it is for")
				}
			}
			if now := w.pods(); !maps.EqualFunc(pods, now, slices.Equal) {
				t.Errorf("pods %v, want %v", now, pods)
			}
		})
	}
}

// TestStateIsGoneInFlight deletes the state branch while a release is at its gate. The stable version is unknown, so no
// pod moves until a user decides.
func TestStateIsGoneInFlight(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	second := w.push("v2", version("v2", halfThenGate))
	release := p.awaitPaused(second).Release.Hash
	pods := w.pods()
	w.repo.InBare("update-ref", "-d", "refs/heads/"+stateBranch)
	for range 2 {
		s := p.await("held", func(s rollout.State) bool { return s.Held != nil })
		if err := p.passes(5); err != nil || !strings.Contains(s.Held.Message, "in the middle of a release") {
			t.Errorf("error %v, held %+v", err, s.Held)
		}
		if now := w.pods(); !maps.EqualFunc(pods, now, slices.Equal) {
			t.Errorf("pods %v, want %v", now, pods)
		}
		p.end()
		p = w.start()
	}
	w.decide(release, "promote", "")
	p.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	if got := w.pods(); len(got["v2"]) != 2 || len(got["v1"]) > 0 {
		t.Errorf("pods %v", got)
	}
}

// TestManyAppsOneCommit releases 50 apps by one commit: one push per pass with transitions, and one trailer per app.
func TestManyAppsOneCommit(t *testing.T) {
	tier.All(t)
	const n = 50
	w := newLoopWorld(t, nil)
	write := func(tag string) {
		for i := range n {
			app := fmt.Sprintf("%s-%d", w.app, i)
			for name, content := range version(tag, "    canary:\n      steps:\n      - setWeight: 50\n      - pause: {duration: 1}\n") {
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
			if err := p.passes(1); err != nil {
				t.Fatal(err)
			}
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
		t.Logf("%s: %d transitions of %d apps in %d commits and %d passes", tag, strings.Count(w.repo.InBare("log", "--format=%B", stateBranch), "Gitrollout-App:"), n, made, passes)
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

// inOrder replaces hashes and commits in lines (newest first) by numbers in order of appearance.
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

// TestFreshProcessAtEachPhase restarts the process after every pass of a release: its records and pods are the same as
// without restarts.
func TestFreshProcessAtEachPhase(t *testing.T) {
	story := func(t *testing.T, fresh bool) (history []string, pods map[string]int) {
		w := newLoopWorld(t, version("v1", "    canary:\n      scaling: surge\n      steps:\n      - setWeight: 50\n      - pause: {}\n      - setWeight: 100\n      - pause: {duration: 5}\n"))
		p := w.start()
		seen := map[string]map[string]bool{}
		until := func(what string, ok func(rollout.State) bool) rollout.State {
			t.Helper()
			for deadline := time.Now().Add(5 * time.Minute); ; {
				if err := p.passes(1); err != nil {
					t.Error(err)
				}
				for tag, names := range w.pods() {
					for _, name := range names {
						if seen[tag] == nil {
							seen[tag] = map[string]bool{}
						}
						seen[tag][name] = true
					}
				}
				s := w.state()
				if ok(s) {
					return s
				}
				if time.Now().After(deadline) {
					t.Fatalf("not %s: %s %s", what, s.Phase, s.Reason)
				}
				if fresh {
					p.end()
					p = w.start()
				}
			}
		}
		healthy := func(tag string) {
			t.Helper()
			until(tag+" healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && w.image() == tag && s.Release == nil })
		}
		gate := func(s rollout.State) bool { return s.Phase == rollout.Paused && s.Progress[0].Step == 1 }
		healthy("v1")
		w.push("v2", version("v2", "    canary:\n      scaling: surge\n      steps:\n      - setWeight: 50\n      - pause: {}\n      - setWeight: 100\n      - pause: {duration: 5}\n"))
		until("v2 at its gate", gate)
		w.repo.Merge("gitrollout/promote/test/" + w.app)
		healthy("v2")
		third := w.push("v3", map[string]string{"app.yaml": version("v3", "")["app.yaml"]})
		until("v3 at its gate", gate)
		w.repo.Revert(third)
		healthy("v2")
		fourth := w.push("v4", map[string]string{"app.yaml": version("v4", "")["app.yaml"]})
		s := until("v4 at its gate", gate)
		w.decide(s.Release.Hash, "abort", "")
		until("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
		if !strings.Contains(s.Release.Commit, fourth) || w.repo.Ref("gitrollout/revert/test/"+w.app) == "" {
			t.Error("no revert is proposed")
		}
		pods = map[string]int{}
		for tag, names := range seen {
			pods[tag] = len(names)
		}
		return w.history(), pods
	}
	var histories [2][]string
	var pods [2]map[string]int
	t.Run("one process", func(t *testing.T) { histories[0], pods[0] = story(t, false) })
	t.Run("a process for each pass", func(t *testing.T) { histories[1], pods[1] = story(t, true) })
	t.Cleanup(func() {
		if !slices.Equal(inOrder(histories[0]), inOrder(histories[1])) || !maps.Equal(pods[0], pods[1]) {
			t.Errorf("one process: %v\n%s\na process for each pass: %v\n%s", pods[0], strings.Join(histories[0], "\n"), pods[1], strings.Join(histories[1], "\n"))
		}
	})
}

// TestRecordReplacesRetreat replaces a rollback that Git never accepted by another process's record.
func TestRecordReplacesRetreat(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	second := w.push("v2", version("v2", halfThenGate))
	p.awaitPaused(second)
	w.server.Fault(gittest.Faults{RejectPushes: never})
	w.repo.Revert(second)
	_ = p.passes(3)
	w.server.Fault(gittest.Faults{})
	other := w.start()
	other.await("healthy by another process", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	recorded := w.repo.Ref(stateBranch)
	w.skew += time.Minute
	if err := p.passes(5); err != nil || w.repo.Ref(stateBranch) != recorded {
		t.Errorf("error %v, recorded %s", err, w.history()[0])
	}
}
