package main

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// TestEditedState edits an app's record by hand. Neither the running process nor a new process may then change this
// app. Other apps are not affected.
func TestEditedState(t *testing.T) {
	t.Parallel()
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
			p := w.startHealthy()
			release := p.awaitPaused(w.pushVersion("v2")).Release.Hash
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
				p.passWell(5)
				w.wantError(p.Unreadable(), "edited by hand", "gitrollout state repair "+w.app)
				p = p.restart()
			}
			w.wantNoWritesSince(writes)
			w.wantPods(pods)
			p.awaitSource(other, w.pushAs(other, "another value", settings("2"))) // the other app is not affected
			w.edit(stateBranch, map[string]string{file: good})
			p.await("the promotion that was waiting", func(s rollout.State) bool {
				return s.Phase == rollout.Healthy && s.Stable.Hash == release
			})
		})
	}
}

// TestStateIsRolledBack resets the state branch to an older commit after a release. A label on the Deployment shows that a newer record
// existed. So the app is held, and no pod may change until the branch is restored.
func TestStateIsRolledBack(t *testing.T) {
	t.Parallel()
	for back, restart := range map[string]bool{"1": false, "2": true, "3": false} {
		t.Run(back, func(t *testing.T) {
			w, p := newHealthyWorld(t, version("v1", halfThenGate))
			second := p.release("v2")
			newest := w.repo.Ref(stateBranch)
			if restart {
				p.end()
			}
			w.repo.InBare("update-ref", "refs/heads/"+stateBranch, newest+"~"+back)
			if restart {
				p = w.start()
			}
			pods, generation := w.pods(), w.deployment().Generation
			p.wantHeld("StateRolledBack", "gitrollout state repair "+w.app)
			p.wantUnmoved(stateBranch, 5)
			if now := w.deployment().Generation; now != generation {
				t.Errorf("generation %d of %d", now, generation)
			}
			w.wantPods(pods)
			w.repo.InBare("update-ref", "refs/heads/"+stateBranch, newest)
			p.awaitHealthy(second)
			p.passWell(5)
			w.wantRecorded(newest)
		})
	}
}

// TestStaleProcess checks that a process without access to Git does not reapply a release that another process has rolled back.
func TestStaleProcess(t *testing.T) {
	w, old, s := newPausedWorld(t)
	w.decide(s.Release.Hash, "abort", "")
	fresh := w.start()
	fresh.awaitPhase(rollout.Degraded)
	w.server.Fault(gittest.Faults{Status: 503})
	writes := w.api.count()
	for range 10 {
		old.Touch(w.app)
		w.skew += time.Second
		_ = old.RunOnce(old.ctx, w.now, false)
		time.Sleep(20 * time.Millisecond)
	}
	w.wantNoWritesSince(writes)
	w.wantImage("v1")
	w.server.Fault(gittest.Faults{})
	w.skew += time.Minute
	old.wantUnmoved(stateBranch, 5)
}

// TestDeploymentChangesHands moves a Deployment to another app, whose record has a lower serial. The new app must not
// be held, because serials of different apps' records cannot be compared.
func TestDeploymentChangesHands(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	heir := w.app + "-heir"
	w.pushAs(heir, "a young app", settings("1"))
	p := w.startHealthy()
	p.release("v2")
	pods := w.pods()
	w.repo.Pull()
	for name := range version("v2", halfThenGate) {
		if name != "kustomization.yaml" {
			w.repo.Git("mv", "apps/"+w.app+"/"+name, "apps/"+heir+"/"+name)
		}
	}
	w.repo.Write(map[string]string{ // this commit has a mistake, so the new app is held
		"apps/" + w.app + "/kustomization.yaml": strings.ReplaceAll(settings("1")["kustomization.yaml"], "APP", w.app+"-rest"),
		"apps/" + heir + "/kustomization.yaml":  "resources: [app.yaml, service.yaml, rollout.yaml, nothing.yaml]\n",
	})
	p.awaitSource(w.app, w.repo.Commit("move it"))
	p.awaitOf(heir, "the heir is held", isHeld)
	p.passWell(5)
	w.wantPods(pods) // the old app no longer has the Deployment, and the new app cannot be rendered
	mended := map[string]string{"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml]\n"}
	p.awaitSource(heir, w.pushAs(heir, "mend it", mended))
	p.passWell(5)
	if s := w.stateOf(heir); s.Held != nil || s.Serial >= w.stateOf(w.app).Serial {
		t.Errorf("the heir's serial is %d, held %+v; the other's is %d", s.Serial, s.Held, w.stateOf(w.app).Serial)
	}
	w.wantPods(pods)
}
