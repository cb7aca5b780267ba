package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// remove runs `gitrollout remove`, and answers the command's prompt. It returns the output and the error output.
func (w *loopWorld) remove(want exitCode, answer string, args ...string) (out, errs string) {
	w.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"remove", w.app, "--repo", w.server.URL, "--cluster", "test", "--kubeconfig", w.api.kubeconfig,
		"--author", "Ann Lee <ann@example.com>"}, args...)
	if got := run(w.Context(), args, strings.NewReader(answer), &stdout, &stderr); exitCode(got) != want {
		w.Errorf("gitrollout %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, want, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

// TestRemove removes an app that Git no longer has. The command deletes the objects in the app's record, except
// volume claims. It keeps an object that has the app's label but belongs to another cluster's gitrollout.
func TestRemove(t *testing.T) {
	files := version("v1", halfThenGate)
	files["kustomization.yaml"] = "resources: [app.yaml, service.yaml, rollout.yaml, more.yaml]\n"
	files["more.yaml"] = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: APP}
spec: {defaultBackend: {service: {name: APP, port: {number: 80}}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: APP}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: APP}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: APP}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	w, p := newHealthyWorld(t, files)
	ctx := context.Background()
	others := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "others", Labels: map[string]string{rollout.LabelApp: w.app},
		Annotations: map[string]string{rollout.AnnotationCluster: "elsewhere"},
	}}
	must(t, errorOf(w.kube.Kube.CoreV1().ConfigMaps(w.ns).Create(ctx, others, metav1.CreateOptions{})))

	_, said := w.remove(exitFailed, "y\n")
	w.wantText(said, "is still an app in Git (apps/"+w.app+")", configFile)

	w.configure("apps: [")                // a mistake
	_, said = w.remove(exitConfig, "y\n") // the apps in Git are unknown
	w.wantText(said, configFile, "is not valid YAML")
	w.configure(w.config("- path: other/*"))
	p.await("held", isHeld)
	record := w.repo.Ref(stateBranch)
	out, _ := w.remove(exitOK, "", "--dry-run", "-o", "json")
	var r removal
	must(t, json.Unmarshal([]byte(out), &r))
	if len(r.Removed) < 5 || len(r.Kept) != 1 || !strings.Contains(r.Kept[0], "PersistentVolumeClaim") || r.Commit != "" {
		t.Errorf("%+v", r)
	}
	out, _ = w.remove(exitOK, "", "--dry-run")
	w.wantText(out, "networking.k8s.io/Ingress/"+w.ns, "policy/PodDisruptionBudget/"+w.ns, "keep    PersistentVolumeClaim")
	for _, answer := range []string{"", "n\n", "\n"} {
		_, said = w.remove(exitFailed, answer)
		w.wantText(said, "Delete them for good? [y/N]", "nothing was removed")
	}
	w.wantImage("v1") // if the user does not type yes, nothing is removed
	w.wantRecorded(record)

	// During the removal, the loop runs and must not recreate an object.
	end := repeatedly(t.Context(), 20*time.Millisecond, func(context.Context) { _ = p.pass() })
	w.remove(exitOK, "y\n")
	time.Sleep(time.Second)
	end()
	if known := p.client.Stats().Known; known > 0 {
		t.Errorf("%d objects of an app that is no more are remembered", known)
	}
	gone := func(_ any, err error) {
		t.Helper()
		if !apierrors.IsNotFound(err) {
			t.Errorf("it is there: %v", err)
		}
	}
	gone(w.kube.Kube.AppsV1().Deployments(w.ns).Get(ctx, w.app, metav1.GetOptions{}))
	gone(w.kube.Kube.NetworkingV1().Ingresses(w.ns).Get(ctx, w.app, metav1.GetOptions{}))
	gone(w.kube.Kube.PolicyV1().PodDisruptionBudgets(w.ns).Get(ctx, w.app, metav1.GetOptions{}))
	gone(w.kube.Kube.CoreV1().Services(w.ns).Get(ctx, w.app, metav1.GetOptions{}))
	must(t, errorOf(w.kube.Kube.CoreV1().ConfigMaps(w.ns).Get(ctx, "others", metav1.GetOptions{})))
	must(t, errorOf(w.kube.Kube.CoreV1().PersistentVolumeClaims(w.ns).Get(ctx, w.app, metav1.GetOptions{})))
	if s := w.state(); s.Phase != "" {
		t.Errorf("it is still on record: %+v", s)
	}
	w.wantText(w.history()[0], "removed by Ann Lee")
	for range 2 {
		p.wantUnmoved(stateBranch, 5)
		p = p.restart()
	}
	gone(w.kube.Kube.AppsV1().Deployments(w.ns).Get(ctx, w.app, metav1.GetOptions{})) // also after further passes of the loop
	_, said = w.remove(exitFailed, "y\n")
	w.wantText(said, "has no app")
}
