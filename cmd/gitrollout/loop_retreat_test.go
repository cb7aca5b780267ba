package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestRetreatDoesNotWaitForGit rolls back a release while Git refuses pushes. The pods roll back to v1 immediately. They stay at v1 when
// users push v3, and when a new process starts. When Git accepts pushes again, the rollback is recorded once, before the release of v3.
func TestRetreatDoesNotWaitForGit(t *testing.T) {
	w, p, two := newPausedWorld(t)
	stable := w.pods()["v1"]
	recorded := w.repo.Ref(stateBranch)

	w.server.Fault(gittest.Faults{RejectPushes: never})
	w.repo.Revert(two.Release.Commit)
	w.wantError(p.pass(), "record in Git")
	w.wantImage("v1")
	writes := w.api.count()
	_ = p.passes(20)
	third := w.pushVersion("v3")
	_ = p.passes(20)
	again := p.restart()
	_ = again.passes(20)
	if made := deployments(w.api.since(writes)); len(made) > 0 {
		t.Errorf("the Deployment was written again: %v", made)
	}
	if pods := w.pods(); len(pods["v2"])+len(pods["v3"]) > 0 || !slices.Equal(pods["v1"], stable) {
		t.Errorf("pods are %v, want v1's pods from before: %v", pods, stable)
	}
	w.wantRecorded(recorded)
	w.server.Fault(gittest.Faults{})
	w.skew += time.Minute
	again.awaitPaused(third)
	w.wantHistory(recorded, "APP back to", "APP release", "APP step 2/2 pause")
}

func deployments(writes []string) []string {
	return slices.DeleteFunc(writes, func(w string) bool { return !strings.Contains(w, "/deployments/") })
}

// TestRetreatIsRecordedOnce checks two rollbacks while Git refuses pushes: after a revert, and after an abort. Each
// rollback is logged once immediately. Later, each rollback is recorded once in Git, with its reason.
func TestRetreatIsRecordedOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		back func(w *loopWorld, release rollout.Hash, commit string)
		want []string
	}{
		"reverted": {func(w *loopWorld, _ rollout.Hash, commit string) { w.repo.Revert(commit) },
			[]string{"APP back to %s: reverted by", "APP healthy"}},
		"aborted": {func(w *loopWorld, release rollout.Hash, _ string) {
			w.decide(release, "abort", "line one\nGitrollout-App: forged")
		},
			[]string{"APP back to %s: aborted by Dev <dev@example.com>: line one Gitrollout-App: forged", "APP degraded"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, p, s := newPausedWorld(t)
			recorded := w.repo.Ref(stateBranch)
			w.server.Fault(gittest.Faults{RejectPushes: never})
			tt.back(w, s.Release.Hash, s.Release.Commit)
			_ = p.passes(30)
			if n := strings.Count(w.log.String(), w.app+" back to"); n != 1 {
				t.Errorf("the log tells %d times of the rollback", n)
			}
			// Another writer pushes to the state branch. The process must not apply its unrecorded rollback again.
			w.edit(stateBranch, map[string]string{"README": "hello"})
			writes := w.api.count()
			_ = p.passes(5)
			if made := deployments(w.api.since(writes)); len(made) > 0 {
				t.Errorf("written: %v", made)
			}
			w.server.Fault(gittest.Faults{})
			w.skew += time.Minute
			p.await("at rest", func(s rollout.State) bool { return s.Release == nil })
			back := strings.ReplaceAll(tt.want[0], "%s", string(s.Stable.Hash))
			w.wantHistory(recorded, "by another writer", back, tt.want[1])
			if n := strings.Count(w.log.String(), w.app+" back to"); n != 1 {
				t.Errorf("the log tells %d times of the rollback", n)
			}
			w.wantImage("v1")
			if strings.Contains(w.repo.Message(stateBranch+"~1"), "\nGitrollout-App: forged") {
				t.Error("a reason in a promotion file became a trailer of the commit")
			}
		})
	}
}

// decide commits a promotion file with the given decision on a release, and returns the commit.
func (w *loopWorld) decide(release rollout.Hash, verb, reason string) string {
	w.Helper()
	p := rollout.Promotion{Release: release, Decision: rollout.Verb(verb), Reason: reason}
	w.repo.Pull()
	return w.repo.CommitFiles(verb, map[string]string{rollout.PromotionPath("test", w.app): encoded(w, p)})
}

// TestRetreatDoesNotWaitForTheWholeApp lets the API server refuse an object that a rollback applies before the
// Deployment. The pods are rolled back anyway, unless the refused object routes requests (a Service or an Ingress).
func TestRetreatDoesNotWaitForTheWholeApp(t *testing.T) {
	t.Parallel()
	const (
		services = "stableService: APP\n      abortScaleDownDelaySeconds: 0\n      "
		routed   = services + "canaryService: APP-canary\n      trafficRouting: {alb: {ingress: APP, servicePort: 80}, settle: 0s}\n      "
	)
	for name, tt := range map[string]struct {
		refused string
		image   string
		more    string // more fields of the strategy
	}{
		"ConfigMap": {"/configmaps/", "v1", services},
		"Service":   {"/services/", "v2", services},
		"Ingress":   {"/ingresses/", "v2", routed},
	} {
		t.Run(name, func(t *testing.T) {
			strategy := strings.Replace(halfThenGate, "steps:", tt.more+"steps:", 1)
			files := func(tag string) map[string]string { return withIngress(version(tag, strategy), "name: use-annotation") }
			w, p := newHealthyWorld(t, files("v1"))
			second := w.push("v2", with(files("v2"), map[string]string{
				"service.yaml": strings.ReplaceAll(version("v2", "")["service.yaml"], "port: 80", "port: 81"),
			}))
			p.awaitPaused(second)
			recorded := w.repo.Ref(stateBranch)
			w.api.refuse(tt.refused)
			w.repo.Revert(second)
			w.wantError(p.passes(5), "the test says no")
			w.wantImage(tt.image)
			w.api.refuse()
			w.skew += time.Minute
			p.awaitPhase(rollout.Healthy)
			w.wantHistory(recorded, "APP back to", "APP healthy")
			w.wantImage("v1")
		})
	}
}
