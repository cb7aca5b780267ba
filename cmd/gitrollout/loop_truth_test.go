package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// TestEditedState edits a state file by hand: this stops gitrollout for that app alone, in the running process and in a
// new one.
func TestEditedState(t *testing.T) {
	for name, edit := range map[string][2]string{
		"a step further":  {"step: 1\n", "step: 2\n"},
		"another phase":   {"phase: Paused", "phase: Promoting"},
		"another weight":  {"weight: 50", "weight: 90"},
		"another serial":  {"serial: ", "serial: 1"},
		"a hash verified": {"verified:\n", "verified:\n- h1-0000000000\n"},
	} {
		t.Run(name, func(t *testing.T) {
			tier.Rows(t, "another_phase")
			w := newLoopWorld(t, version("v1", halfThenGate))
			other := w.app + "-other"
			w.pushAs(other, "another app", settings("1"))
			p := w.start()
			p.awaitHealthy(w.repo.Head())
			release := p.awaitPaused(w.push("v2", version("v2", halfThenGate))).Release.Hash
			file := rollout.StatePath(w.app)
			good := w.repo.Show(stateBranch, file)
			edited := strings.Replace(good, edit[0], edit[1], 1)
			if edited == good {
				t.Fatalf("nothing is edited in\n%s", good)
			}
			w.edit(stateBranch, map[string]string{file: edited})
			writes, pods := w.api.count(), w.pods()
			w.decide(release, "promote", "")
			for range 2 {
				if err := p.passes(5); err != nil {
					t.Error(err)
				}
				if err := p.Unreadable(); err == nil || !strings.Contains(err.Error(), "edited by hand") || !strings.Contains(err.Error(), "gitrollout state repair "+w.app) {
					t.Errorf("the reason is %v", err)
				}
				p.end()
				p = w.start()
			}
			if made := w.api.since(writes); len(made) > 0 || !maps.EqualFunc(pods, w.pods(), slices.Equal) {
				t.Errorf("writes %v, pods %v", made, w.pods())
			}
			w.pushAs(other, "another value", settings("2"))
			p.awaitOf(other, "the other app goes on", func(s rollout.State) bool { return s.Source == w.repo.Head() })
			w.edit(stateBranch, map[string]string{file: good})
			p.await("the promotion that was waiting", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Stable.Hash == release })
		})
	}
}

// TestStateIsRolledBack resets the state branch to each of its older commits while a release is at its gate.
// Annotations in the cluster show that a newer record existed, so nothing moves until a user decides.
func TestStateIsRolledBack(t *testing.T) {
	for back, restart := range map[string]bool{"1": false, "2": true, "3": false} {
		t.Run(back, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			p := w.start()
			p.awaitHealthy(w.repo.Head())
			second := w.push("v2", version("v2", halfThenGate))
			p.awaitPaused(second)
			w.decide(w.state().Release.Hash, "promote", "")
			p.awaitHealthy(second)
			newest := w.repo.Ref(stateBranch)
			if restart {
				p.end()
			}
			w.repo.InBare("update-ref", "refs/heads/"+stateBranch, newest+"~"+back)
			if restart {
				p = w.start()
			}
			pods, generation := w.pods(), w.deployment().Generation
			s := p.await("held", func(s rollout.State) bool { return s.Held != nil })
			if s.Held.Reason != "StateRolledBack" || !strings.Contains(s.Held.Message, "gitrollout state repair "+w.app) {
				t.Errorf("held %+v", s.Held)
			}
			held := w.repo.Ref(stateBranch)
			if err := p.passes(5); err != nil {
				t.Error(err)
			}
			if now := w.repo.Ref(stateBranch); now != held {
				t.Errorf("it goes on recording: %v", w.history())
			}
			if d := w.deployment(); d.Generation != generation || !maps.EqualFunc(pods, w.pods(), slices.Equal) {
				t.Errorf("generation %d of %d, pods %v of %v", d.Generation, generation, w.pods(), pods)
			}
			w.repo.InBare("update-ref", "refs/heads/"+stateBranch, newest)
			p.awaitHealthy(second)
			if err := p.passes(5); err != nil || w.repo.Ref(stateBranch) != newest {
				t.Errorf("with the newest record again: %v, recorded %v", err, w.history())
			}
		})
	}
}

// TestStaleProcess checks that a process without Git does not redo a release that another process has rolled back
// meanwhile.
func TestStaleProcess(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	old := w.start()
	first := w.repo.Head()
	old.awaitHealthy(first)
	s := old.awaitPaused(w.push("v2", version("v2", halfThenGate)))
	w.decide(s.Release.Hash, "abort", "")
	fresh := w.start()
	fresh.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	w.server.Fault(gittest.Faults{Status: 503})
	writes := w.api.count()
	for range 10 {
		old.Touch(w.app)
		w.skew += time.Second
		_ = old.RunOnce(old.ctx, w.now, false)
		time.Sleep(20 * time.Millisecond)
	}
	if made := w.api.since(writes); len(made) > 0 || w.image() != "v1" {
		t.Errorf("the old process wrote %v, the image is %s", made, w.image())
	}
	w.server.Fault(gittest.Faults{})
	w.skew += time.Minute
	recorded := w.repo.Ref(stateBranch)
	if err := old.passes(5); err != nil || w.repo.Ref(stateBranch) != recorded {
		t.Errorf("with Git again: %v, recorded %v", err, w.history())
	}
}

// TestDeploymentChangesHands moves a Deployment, in one commit, to an app whose record has a lower serial: serials of
// different apps are not compared.
func TestDeploymentChangesHands(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	heir := w.app + "-heir"
	w.pushAs(heir, "a young app", settings("1"))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	second := w.push("v2", version("v2", halfThenGate))
	p.awaitPaused(second)
	w.decide(w.state().Release.Hash, "promote", "")
	p.awaitHealthy(second)
	pods := w.pods()
	w.repo.Pull()
	for name := range version("v2", halfThenGate) {
		if name != "kustomization.yaml" {
			w.repo.Git("mv", "apps/"+w.app+"/"+name, "apps/"+heir+"/"+name)
		}
	}
	w.repo.Write(map[string]string{ // at first with a mistake, which holds the second app
		"apps/" + w.app + "/kustomization.yaml": strings.ReplaceAll(settings("1")["kustomization.yaml"], "APP", w.app+"-rest"),
		"apps/" + heir + "/kustomization.yaml":  "resources: [app.yaml, service.yaml, rollout.yaml, nothing.yaml]\n",
	})
	broken := w.repo.Commit("move it")
	p.await("the app follows", func(s rollout.State) bool { return s.Source == broken })
	p.awaitOf(heir, "the heir is held", func(s rollout.State) bool { return s.Held != nil })
	if err := p.passes(5); err != nil {
		t.Error(err)
	}
	if now := w.pods(); !maps.EqualFunc(pods, now, slices.Equal) {
		t.Errorf("the Deployment has no owner, and its pods are %v, want %v", now, pods)
	}
	moved := w.pushAs(heir, "mend it", map[string]string{"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml]\n"})
	p.awaitOf(heir, "the heir follows", func(s rollout.State) bool { return s.Source == moved && s.Held == nil })
	if err := p.passes(5); err != nil {
		t.Error(err)
	}
	if s := w.stateOf(heir); s.Held != nil || s.Serial >= w.stateOf(w.app).Serial {
		t.Errorf("the heir's serial is %d, held %+v; the other's is %d", s.Serial, s.Held, w.stateOf(w.app).Serial)
	}
	if now := w.pods(); !maps.EqualFunc(pods, now, slices.Equal) {
		t.Errorf("pods %v, want %v", now, pods)
	}
}
