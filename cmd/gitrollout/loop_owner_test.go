package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// TestUnlistedAppIsLeftAlone deletes the Deployment of an app that the configuration no longer lists. Neither the running process nor a new
// one may create the Deployment again.
func TestUnlistedAppIsLeftAlone(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	w.configure(w.config("- path: app/*")) // a mistake
	p.await("held", isHeld)
	w.deleteDeployment()
	for range 2 {
		p.passWell(5)
		w.wantNoDeployment()
		p = p.restart()
	}
}

func (w *loopWorld) deleteDeployment() {
	w.Helper()
	must(w, w.kube.Kube.AppsV1().Deployments(w.ns).Delete(w.Context(), w.app, metav1.DeleteOptions{}))
}

func (w *loopWorld) hasDeployment() bool {
	w.Helper()
	_, err := w.kube.Kube.AppsV1().Deployments(w.ns).Get(w.Context(), w.app, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

func (w *loopWorld) wantNoDeployment() {
	w.Helper()
	if w.hasDeployment() {
		w.Fatal("there is a Deployment")
	}
}

// TestUnlistedAppIsPruned checks an app whose entry has `prune: true`, such as a preview. If the app's folder is removed, the app's objects
// are pruned, except the volume claim. If a mistake in the configuration removes the app, nothing is pruned.
func TestUnlistedAppIsPruned(t *testing.T) {
	w := newLoopWorld(t, withClaim(version("v1", halfThenGate)))
	prunes := w.config("- path: apps/*\n  prune: true")
	p := w.start()
	p.awaitHealthy(w.configure(prunes))
	w.configure(strings.Replace(prunes, "apps/*", "app/*", 1)) // a mistake
	p.await("held", isHeld)
	p.passWell(5)
	if !w.hasDeployment() {
		t.Error("after a slip the Deployment is gone")
	}
	w.configure(prunes)
	p.await("no longer held", notHeld)
	w.repo.Remove("apps/" + w.app).Commit("no longer needed")
	p.await("nothing of it is on record", func(s rollout.State) bool { return s.Phase == "" })
	w.wantNoDeployment()
	w.wantText(w.history()[0], "APP has left Git and the cluster")
	must(t, errorOf(w.kube.Kube.CoreV1().PersistentVolumeClaims(w.ns).Get(w.Context(), w.app, metav1.GetOptions{})))
	p.wantUnmoved(stateBranch, 5)
	p = p.restart()
	p.awaitHealthy(w.push("it is back, as a new app", withClaim(version("v2", halfThenGate))))
	if n := len(w.pods()["v2"]); n != 2 {
		t.Errorf("%d pods of it", n)
	}
}

// TestPreviewThatNeverRan removes an app with `prune: true` that was held since its first commit. The app's record must be deleted.
func TestPreviewThatNeverRan(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.awaitHealthy(w.configure(w.config("- path: apps/*\n  prune: true")))
	other := w.app + "-broken"
	w.pushAs(other, "a preview", map[string]string{"kustomization.yaml": "resources: [none.yaml]\n"})
	p.awaitOf(other, "held", isHeld)
	w.repo.Remove("apps/" + other).Commit("no longer needed")
	p.awaitOf(other, "nothing of it is on record", func(s rollout.State) bool { return s.Phase == "" })
	if s := w.state(); s.Phase != rollout.Healthy {
		t.Errorf("the other one is %s", s.Phase)
	}
}

// withClaim adds a PersistentVolumeClaim, which gitrollout never deletes.
func withClaim(files map[string]string) map[string]string {
	return with(files, map[string]string{
		"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml, claim.yaml]\n",
		"claim.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: APP}\n" +
			"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
	})
}

// TestRenamedAppIsNotPutBack checks that a renamed app keeps its objects after a restart, although the old name's record still lists them.
func TestRenamedAppIsNotPutBack(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	heir := w.app + "-heir"
	w.repo.Pull()
	w.repo.Git("mv", "apps/"+w.app, "apps/"+heir)
	w.repo.Commit("rename it")
	p.awaitOf(heir, "the new name follows", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Held == nil })
	one := strings.Replace(version("v1", halfThenGate)["app.yaml"], "replicas: 2", "replicas: 1", 1)
	p.awaitSource(heir, w.pushAs(heir, "scale", map[string]string{"app.yaml": strings.ReplaceAll(one, "APP", w.app)}))
	p.awaitOf(heir, "one pod is gone", func(rollout.State) bool { return len(w.pods()["v1"]) == 1 })
	pods := w.pods()
	p = p.restart()
	p.passWell(5)
	if d := w.deployment(); d.Labels[rollout.LabelApp] != heir || *d.Spec.Replicas != 1 {
		t.Errorf("the Deployment is app %s's, of %d replicas", d.Labels[rollout.LabelApp], *d.Spec.Replicas)
	}
	if s := w.stateOf(heir); s.Held != nil {
		t.Errorf("the new name is held: %+v", s.Held)
	}
	w.wantPods(pods)
}

// TestAnAppTakesNothingFromAnother pushes a new app whose files contain another app's Deployment. The new app is held. Neither the running
// process nor a new process changes the Deployment.
func TestAnAppTakesNothingFromAnother(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	pods, other := w.pods(), w.app+"-other"
	files := version("v9", halfThenGate)
	for name, content := range files {
		files[name] = strings.ReplaceAll(content, "APP", w.app)
	}
	w.pushAs(other, "the same Deployment", files)
	for range 2 {
		p.wantHeldOf(other, "", "is in app "+other+" and in app "+w.app)
		p.passWell(5)
		if s := w.state(); s.Phase != rollout.Healthy || s.Held != nil {
			t.Errorf("the first one is %s, held %+v", s.Phase, s.Held)
		}
		w.wantPods(pods)
		p = p.restart()
	}
	p.end()
	w.deleteDeployment()
	p = w.start()
	p.await("the first one has it again", func(rollout.State) bool { return len(w.pods()["v1"]) == len(pods["v1"]) })
	p.passWell(5)
	if d := w.deployment(); d.Labels[rollout.LabelApp] != w.app || len(w.pods()["v9"]) > 0 {
		t.Errorf("deleted, it is app %s's, and %d pods of v9 run", d.Labels[rollout.LabelApp], len(w.pods()["v9"]))
	}
	if s := w.stateOf(other); s.Held == nil || s.Held.Reason != rollout.HeldContested {
		t.Errorf("the second one: held %+v", s.Held)
	}
}

// TestForeignController checks that gitrollout does not adopt a Deployment that Kruise Rollouts manages. `promote
// --adopt-anyway` adopts the Deployment, and the record names this adoption.
func TestForeignController(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	must(t, errorOf(w.kube.Kube.AppsV1().Deployments(w.ns).Create(w.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: w.app, Labels: map[string]string{"rollouts.kruise.io/workload-type": "deployment"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.app}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": w.app}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: w.app + ":v1"}}},
			},
		},
	}, metav1.CreateOptions{})))
	p := w.start()
	s := p.await("held", func(s rollout.State) bool { return s.Held.Is(rollout.HeldForeign) })
	w.wantText(s.Held.Message, "Kruise Rollouts", "kubectl -n "+w.ns+" label deployment/"+w.app,
		"gitrollout promote "+w.app+" --adopt-anyway")
	pods, writes := w.pods(), w.api.count()
	p.passWell(5)
	w.wantNoWritesSince(writes)
	w.command(exitOK, "promote", w.app, "--adopt-anyway")
	s = p.awaitPhase(rollout.Healthy)
	if s.Adopts == "" {
		t.Error("the record does not say that it was adopted")
	}
	w.wantPods(pods)
}

// TestPortOfAnotherManagerLeaves adopts a Service that another program created, and then changes the port in Git.
// gitrollout must remove the old port, log the manager of the removed field, and create one Event.
func TestPortOfAnotherManagerLeaves(t *testing.T) {
	files := version("v1", halfThenGate)
	files["service.yaml"] = strings.Replace(files["service.yaml"], "{port: 80}", "{name: http, port: 80}", 1)
	w := newLoopWorld(t, files)
	services := w.kube.Kube.CoreV1().Services(w.ns)
	must(t, errorOf(services.Create(w.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: w.app},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": w.app}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}, metav1.CreateOptions{FieldManager: "provisioner"})))
	p := w.startHealthy()
	files["service.yaml"] = strings.Replace(files["service.yaml"], "port: 80}", "port: 8081}", 1)
	moved := w.push("port 8081", files)
	p.await("the commit is followed", func(s rollout.State) bool { return s.Source == moved && s.Held == nil })
	p.passWell(2)
	s, err := services.Get(w.Context(), w.app, metav1.GetOptions{})
	if err != nil || len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Port != 8081 {
		t.Errorf("ports %+v, %v", s.Spec.Ports, err)
	}
	log := w.log.String()
	if strings.Count(log, "fields that left Git are taken over from another manager") != 1 || !strings.Contains(log, "of provisioner") {
		t.Error("the log does not say once which field of which manager was removed")
	}
	events, err := w.kube.Kube.CoreV1().Events(w.ns).List(w.Context(), metav1.ListOptions{FieldSelector: "reason=FieldsTakenOver"})
	if err != nil || len(events.Items) != 1 || events.Items[0].InvolvedObject.Kind != "Service" {
		t.Errorf("Events %+v, %v", events.Items, err)
	}
}
