package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// TestNobodyElseSaysHowManyPodsMayBeMissing changes spec.strategy with kubectl between releases. Git does not set this field, so gitrollout
// restores the default, and then writes nothing. A revert, which has no steps, keeps as many pods ready as the default requires.
func TestNobodyElseSaysHowManyPodsMayBeMissing(t *testing.T) {
	t.Parallel()
	app := newShop(8, "", "setWeight: 25")
	w := running(t, app.files())
	second := w.push("v2", app.at("v2").files())
	w.awaitHealthy(second)
	for _, patch := range []string{`{"rollingUpdate":{"maxUnavailable":"100%"}}`, `{"type":"Recreate","rollingUpdate":null}`} {
		before := w.deployment().Generation
		w.kubectl("patch", "deployment", "shop", "-p", `{"spec":{"strategy":`+patch+`}}`)
		w.await("the defaults", func(rollout.State) bool {
			d := w.deployment()
			rolling := d.Spec.Strategy.RollingUpdate
			return d.Generation >= before+2 && rolling != nil && rolling.MaxUnavailable.String() == "25%" && rolling.MaxSurge.String() == "25%"
		})
	}
	w.await("a second without a write", func(rollout.State) bool { // the controller may be late with its status
		is := w.deployment().ResourceVersion
		time.Sleep(time.Second)
		return w.deployment().ResourceVersion == is
	})
	mark := w.pods.mark()
	w.repo.Revert(second)
	w.awaitHealthy(w.repo.Head())
	w.pods.awaitReady(t, map[string]int{"v1": 8})
	w.pods.wantReady(t, mark, 6)
}

// TestHandsOnTheCluster changes the Deployment and its pods with kubectl while a release pauses at a step. At least 5 of 8 pods stay ready.
// gitrollout restores the step's share after each change.
func TestHandsOnTheCluster(t *testing.T) {
	t.Parallel()
	for _, scaling := range []string{"surge", "inPlace"} {
		for name, meddle := range map[string]func(w *world){
			"rollout undo":    func(w *world) { w.kubectl("rollout", "undo", "deployment/shop") },
			"rollout restart": func(w *world) { w.kubectl("rollout", "restart", "deployment/shop") },
			"rollout pause":   func(w *world) { w.kubectl("rollout", "pause", "deployment/shop") },
			"set image":       func(w *world) { w.kubectl("set", "image", "deployment/shop", "shop=shop:byhand") },
			"thaw by hand": func(w *world) {
				w.kubectl("patch", "deployment/shop", "--type=merge", "-p",
					`{"spec":{"minReadySeconds":0,"progressDeadlineSeconds":600,"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}}}}`)
			},
			"fences by hand": func(w *world) {
				w.kubectl("patch", "deployment/shop", "--type=merge", "-p",
					`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":1}}}}`)
			},
			"delete a stable pod": func(w *world) { w.kubectl("delete", "pod", "--wait=false", w.podOf("v1")) },
			"delete a canary pod": func(w *world) { w.kubectl("delete", "pod", "--wait=false", w.podOf("v2")) },
			"delete the deployment's annotations": func(w *world) {
				w.kubectl("annotate", "deployment/shop", rollout.AnnotationHash+"-", rollout.AnnotationCommit+"-")
			},
		} {
			t.Run(scaling+"/"+name, func(t *testing.T) {
				t.Parallel()
				tier.Rows(t, "inPlace/set_image", "surge/rollout_undo", "surge/delete_a_canary_pod")
				app := newShop(8, "scaling: "+scaling, "setWeight: 25", "pause: {}")
				w := running(t, app.files())
				commit := w.stage("v2", app.at("v2").files())
				rest := map[string]int{"v1": 8, "v2": 2}
				if scaling == "inPlace" {
					rest["v1"] = 6
				}
				w.pods.awaitReady(t, rest)
				mark := w.pods.mark()
				meddle(w)
				time.Sleep(time.Second)
				w.awaitPause(1)
				w.awaitSettled(8, 2)
				w.awaitHealed()
				// 25 % of 8 pods may be unavailable, and one more pod in the cases that delete a pod.
				w.pods.wantReady(t, mark, 6-1)
				w.promote().awaitHealthy(commit)
				w.pods.awaitReady(t, map[string]int{"v2": 8})
			})
		}
	}
}

// awaitHealed waits until gitrollout has restored the Deployment to the release's step.
func (w *world) awaitHealed() {
	w.t.Helper()
	awaitEqual(w.t, "differences between the Deployment and the release", "", w.unhealed)
}

// unhealed returns the first difference between the Deployment and the release, or "".
func (w *world) unhealed() string {
	w.t.Helper()
	d := w.deployment()
	s := w.state()
	switch surge := d.Spec.Strategy.RollingUpdate.MaxSurge; {
	case d.Spec.Paused:
		return "the Deployment is still paused"
	case d.Spec.Template.Spec.Containers[0].Image != "shop:v2":
		return "the image is still " + d.Spec.Template.Spec.Containers[0].Image
	case d.Spec.MinReadySeconds != 2147483646:
		return fmt.Sprintf("minReadySeconds is %d: the hold is gone", d.Spec.MinReadySeconds)
	case surge.StrVal == "":
		return fmt.Sprintf("maxSurge is %v, no percentage", surge)
	case d.Annotations[rollout.AnnotationHash] != string(s.Release.Hash) || d.Annotations[rollout.AnnotationCommit] != s.Release.Commit:
		return fmt.Sprintf("annotations do not name the release: %v", d.Annotations)
	}
	return ""
}

// awaitSettled waits until at least n pods are ready, among them the given number of v2, and no pod has changed for 400 ms.
func (w *world) awaitSettled(n, canary int) {
	w.t.Helper()
	eventually(w.t, "the pods are at rest", func() bool {
		mark := w.pods.mark()
		time.Sleep(400 * time.Millisecond)
		now := w.pods.last().ready
		return len(w.pods.since(mark)) == 0 && total(now) >= n && now["v2"] >= canary && now["byhand"] == 0
	}, func() any { return w.pods.last() })
}

func (w *world) podOf(version string) string {
	w.t.Helper()
	w.pods.mu.Lock()
	defer w.pods.mu.Unlock()
	for name, pod := range w.pods.live {
		if versionOf(pod) == version && pod.DeletionTimestamp == nil {
			return name
		}
	}
	w.t.Fatalf("no pod of %s", version)
	return ""
}

// TestBadReleases pushes broken versions. The stable version keeps its pods, and the state records the rejection. A good version is
// released afterwards.
func TestBadReleases(t *testing.T) {
	t.Parallel()
	for name, tag := range map[string]string{"never ready": "v2-neverready", "crash loop": "v2-crash", "no image": "v2-badimage"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tier.Rows(t, "never_ready", "crash_loop")
			app := newShop(5, "scaling: surge", "setWeight: 40", "pause: {}")
			broken := app.at(tag) // only the broken version has a short deadline: on a slow machine, a good version could exceed it
			broken.rollout = "  progressDeadlineSeconds: 3\n  progressDeadlineAbort: true\n"
			w := newWorld(t, app.files()).start()
			first := w.awaitHealthy(w.repo.Head())
			mark := w.pods.mark()
			w.push("broken", broken.files())
			s := w.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
			w.pods.awaitReady(t, map[string]int{"v1": 5})
			w.wantStable(first, s, 1)
			w.pods.wantReady(t, mark, 5)
			w.pods.wantStarted(t, map[string]int{"v1": 5})  // a rollback with surge starts no pod
			w.repo.Merge("gitrollout/revert/test/" + w.app) // the proposed revert: main has the stable version again
			w.await("healthy: Git agrees", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
			w.release("repaired", app.at("v3").files())
			w.pods.awaitReady(t, map[string]int{"v3": 5})
		})
	}
}

// TestSupersede pushes a third version while the release of the second version is at a step. Three versions never
// serve at the same time, and the third version's release starts at its first step.
func TestSupersede(t *testing.T) {
	t.Parallel()
	for _, scaling := range []string{"surge", "inPlace"} {
		t.Run(scaling, func(t *testing.T) {
			t.Parallel()
			app := newShop(6, "scaling: "+scaling, "setWeight: 50", "pause: {}")
			w := running(t, app.files())
			w.stage("v2", app.at("v2").files())
			mark := w.pods.mark()
			third := w.supersede("v3", app.at("v3").files())
			w.promote().awaitHealthy(third)
			w.pods.awaitReady(t, map[string]int{"v3": 6})
			for _, s := range w.pods.since(mark) {
				if len(s.ready) > 2 {
					t.Fatalf("three versions were ready at once: %v", s.ready)
				}
			}
			w.pods.wantReady(t, mark, 5) // 25 % of 6 pods may be unavailable
		})
	}
}

// TestVerbs makes each decision about a release (promote, abort, retry, hold) with the command line.
func TestVerbs(t *testing.T) {
	t.Parallel()
	app := newShop(4, "scaling: surge", "setWeight: 25", "pause: {}", "setWeight: 50", "pause: {}")
	w := running(t, app.files())
	w.stage("v2", app.at("v2").files())
	w.ran("promote", w.app)
	w.awaitPause(3)
	w.abort()
	w.pods.awaitReady(t, map[string]int{"v1": 4})
	w.ran("retry", w.app)
	w.awaitPause(1)
	w.ran("hold", w.app)
	w.await("held by a person", func(s rollout.State) bool { return s.Phase == rollout.Paused && s.Release != nil })
	w.ran("promote", "--full", w.app)
	w.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	w.pods.awaitReady(t, map[string]int{"v2": 4})
	w.pods.wantStarted(t, map[string]int{"v1": 4})
}

// TestBackLater reverts a promoted version. The release of the old version has no steps, because the old version has served before.
func TestBackLater(t *testing.T) {
	t.Parallel()
	app := newShop(4, "", "setWeight: 25", "pause: {duration: 1}")
	w := newWorld(t, app.files()).start()
	first := w.awaitHealthy(w.repo.Head())
	commit := w.push("v2", app.at("v2").files())
	w.awaitHealthy(commit)
	before := len(w.log0())
	reverted := w.repo.Revert(commit)
	s := w.awaitHealthy(reverted)
	compare.CheckNamed(t, "the stable version", first.Stable.Hash, s.Stable.Hash)
	w.pods.awaitReady(t, map[string]int{"v1": 4})
	all := w.log0()
	since := strings.Join(all[:len(all)-before], "\n")
	compare.Contains(t, strings.Join(all, "\n"), "step 2/2 pause 1s")
	if since == "" || strings.Contains(since, "step 2/2") {
		t.Errorf("the rollback took steps: %v", since)
	}
}

// TestAdoption checks that a Deployment created by kubectl is adopted without restarting its pods.
func TestAdoption(t *testing.T) {
	t.Parallel()
	app := newShop(3, "", "setWeight: 34", "pause: {}")
	w := newWorld(t, app.files())
	w.apply(app.files()["shop.yaml"])
	w.pods.awaitReady(t, map[string]int{"v1": 3})
	mark := w.pods.mark()
	w.start().awaitHealthy(w.repo.Head())
	w.pods.stays(t, 500*time.Millisecond)
	w.pods.wantReady(t, mark, 3) // adoption touches no pod
	w.pods.wantStarted(t, map[string]int{"v1": 3})
	commit := w.stage("v2", app.at("v2").files())
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 1})
	w.promote().awaitHealthy(commit)
}

// TestManyReconcilers runs two and eight reconcilers on one cluster and branch: each transition is recorded once, and
// no pod is created twice.
func TestManyReconcilers(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			tier.Rows(t, "2")
			reconcilers(t, n)
		})
	}
}

func reconcilers(t *testing.T, n int) {
	t.Helper()
	app := newShop(4, "", "setWeight: 25", "pause: {duration: 1}", "setWeight: 50", "pause: {}")
	w := newWorld(t, app.files())
	w.server = w.repo.HTTP(gittest.HTTPOptions{Direct: true}) // git serves each poll, without a cache
	w.start()
	for range n - 1 {
		w.twin().start()
	}
	w.awaitHealthy(w.repo.Head())
	commit := w.push("v2", app.at("v2").files())
	w.awaitPause(3)
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 2})
	w.promote().awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"v2": 4})
	w.pods.wantStarted(t, map[string]int{"v2": 4})
	seen := map[string]bool{}
	for _, line := range w.log0() {
		if seen[line] {
			t.Errorf("recorded twice: %s", line)
		}
		seen[line] = true
	}
	w.repo.Fsck()
}

// twin returns a world for another process with the same repository, cluster and app.
func (w *world) twin() *world {
	return &world{t: w.t, repo: w.repo, server: w.server, cluster: w.cluster, ns: w.ns, app: w.app, namespaces: w.namespaces, pods: w.pods,
		env: w.env, log: &lockedBuffer{}}
}

// TestReplicas starts three replicas of gitrollout with leader election. The leader is killed during a release, and
// another replica continues the release when the Lease has expired.
func TestReplicas(t *testing.T) {
	t.Parallel()
	app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {}")
	w := newWorld(t, app.files())
	flags := []string{"--leader-elect", "--leader-elect-namespace", w.ns}
	replicas := []*world{w.start(flags...), w.twin().start(flags...), w.twin().start(flags...)}
	w.awaitHealthy(w.repo.Head())
	commit := w.stage("v2", app.at("v2").files())
	leads := func(r *world) bool { return strings.Contains(r.log.String(), "msg=leading") }
	leader := slices.IndexFunc(replicas, leads)
	for i, r := range replicas {
		if i != leader && (leads(r) || strings.Contains(r.log.String(), "msg=transition")) {
			t.Errorf("two replicas work at once:\n%s", r.log.String())
		}
	}
	replicas[leader].kill()
	w.promote().awaitHealthy(commit)
	if n := len(slices.DeleteFunc(slices.Clone(replicas), func(r *world) bool { return !leads(r) })); n != 2 {
		t.Errorf("%d replicas have led, want the one that was killed and another one", n)
	}
	w.pods.awaitReady(t, map[string]int{"v2": 2})
	w.pods.wantStarted(t, map[string]int{"v2": 2})
}

// TestRetreatWithoutGit checks that a failing release is rolled back immediately, even while Git is unreachable. The
// rollback is recorded when Git is reachable again.
func TestRetreatWithoutGit(t *testing.T) {
	t.Parallel()
	app := newShop(4, "scaling: surge", "setWeight: 50", "pause: {}")
	app.rollout = "  progressDeadlineSeconds: 15\n  progressDeadlineAbort: true\n"
	w := running(t, app.files())
	w.push("broken", app.at("v2-neverready").files())
	w.await("in flight", func(s rollout.State) bool {
		return s.Phase == rollout.Progressing && s.Release != nil && s.Stable != nil
	})
	w.server.Fault(gittest.Faults{Status: 503})
	w.until("the recorded state is applied", func() bool { return w.pods.count("v2-neverready") >= 2 })
	w.pods.awaitReady(t, map[string]int{"v1": 4})
	if s := w.state(); s.Phase != rollout.Progressing {
		t.Fatalf("Git recorded %s although it was away", s.Phase)
	}
	w.pods.stays(t, 2*time.Second)
	w.server.Fault(gittest.Faults{})
	s := w.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	if len(s.Rejected) != 1 {
		t.Errorf("rejected %v, want the broken hash", s.Rejected)
	}
	w.pods.awaitReady(t, map[string]int{"v1": 4})
	w.pods.wantStarted(t, map[string]int{"v1": 4})
}
