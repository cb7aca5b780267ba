package e2e

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// TestEveryWriteIsTheAccounts checks an app with a service account. All its writes use that account: dry runs, applies,
// pod deletions, measuring Jobs, prunes, rollbacks, and corrections of manual changes. Only Events and the Lease are
// written as gitrollout.
func TestEveryWriteIsTheAccounts(t *testing.T) {
	t.Parallel()
	app := shop{version: "v1", replicas: "replicas: 2",
		strategy: canary("", "setWeight: 50", "analysis: {templates: [{templateName: check}]}", "pause: {}")}
	files := app.files()
	files["kustomization.yaml"] += "- config.yaml\n- check.yaml\n"
	files["config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"
	files["check.yaml"] = `apiVersion: gitrollout.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: check}
spec: {metrics: [{name: check, provider: {job: {spec: {template: {spec: {restartPolicy: Never,
  containers: [{name: check, image: "check:v1-run200ms"}]}}}}}}]}
`
	w := newWorld(t, files)
	w.installRights()
	w.repo.CommitFiles("an account", map[string]string{".gitrollout/test/config.yaml": strings.ReplaceAll(
		"apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- {path: apps/NS, namespace: NS, serviceAccount: deployer}\n", "NS", w.ns)})
	w.kubectl("create", "serviceaccount", "deployer")
	w.kubectl("create", "rolebinding", "deployer", "--clusterrole=admin", "--serviceaccount="+w.ns+":deployer")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "as-deployer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"deployer"}, Verbs: []string{"impersonate"}}}}
	if _, err := w.cluster.Kube.RbacV1().Roles(w.ns).Create(context.Background(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.kubectl("create", "rolebinding", "as-deployer", "--role=as-deployer", "--serviceaccount="+w.ns+":gitrollout")
	a := audit(t, w, "gitrollout", w.ns)
	w.start("--kubeconfig", a.kubeconfig)
	w.awaitHealthy(w.repo.Head())
	version := func(v string) map[string]string {
		return map[string]string{"shop.yaml": app.at(v).files()["shop.yaml"]}
	}
	second := w.push("v2", version("v2"))
	w.awaitStep(2, rollout.Paused)
	w.promote()
	w.awaitHealthy(second)
	w.push("one object less", map[string]string{"kustomization.yaml": app.files()["kustomization.yaml"] + "- check.yaml\n"})
	w.await("it is pruned", func(s rollout.State) bool {
		for _, ref := range s.Inventory {
			if ref.Kind == "ConfigMap" {
				return false
			}
		}
		return true
	})
	third := w.push("v3", version("v3"))
	w.awaitStep(2, rollout.Paused)
	w.repo.Revert(third)
	w.await("back at v2", func(s rollout.State) bool { return s.Phase == rollout.Healthy })

	// Manual changes are reverted as the account too: of an app whose release is rejected, and of one in flight whose head
	// cannot be read.
	deployer := "system:serviceaccount:" + w.ns + ":deployer"
	putBack := func(what, patch string) {
		t.Helper()
		before := w.deployment().Spec
		a.mu.Lock()
		delete(a.changes, change{"PATCH", "deployments", deployer})
		a.mu.Unlock()
		w.kubectl("patch", "deployment/shop", "--type=merge", "-p", patch)
		now := w.deployment().Spec
		// The audit records a write when its answer passes, possibly after the object was read again.
		isNoted := func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.changes[change{"PATCH", "deployments", deployer}]
		}
		for deadline := time.Now().Add(timeout); *now.Replicas != *before.Replicas || !reflect.DeepEqual(now.Strategy, before.Strategy) ||
			!isNoted(); time.Sleep(glance) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not put back as the account within %s: %d replicas, %+v", what, timeout, *now.Replicas, now.Strategy.RollingUpdate)
			}
			now = w.deployment().Spec
		}
	}
	w.push("v4", version("v4"))
	w.awaitStep(2, rollout.Paused)
	w.ran("abort", w.app, "--reason", "a bad one")
	w.await("it is rejected", func(s rollout.State) bool { return s.Phase == rollout.Degraded && s.Release == nil })
	putBack("rejected", `{"spec":{"replicas":5}}`)
	w.push("v5", version("v5"))
	w.awaitStep(2, rollout.Paused)
	w.push("it cannot be built", map[string]string{"kustomization.yaml": "resources: [gone.yaml]\n"})
	w.await("it is held", func(s rollout.State) bool { return s.Held != nil && s.Release != nil })
	putBack("held, by its replicas", `{"spec":{"replicas":5}}`)
	putBack("held, by its strategy", `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"70%","maxUnavailable":"25%"}}}}`)

	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.changes {
		isOwn := c.resource == "events" || c.resource == "leases" || strings.HasSuffix(c.resource, "reviews")
		if !isOwn && c.user != deployer {
			t.Errorf("%s of %s was made as %q", c.method, c.resource, c.user)
		}
	}
	for _, want := range []change{
		{"PATCH dry run", "deployments", deployer}, {"PATCH", "deployments", deployer}, {"PATCH", "configmaps", deployer},
		{"DELETE", "configmaps", deployer}, {"POST", "jobs", deployer}, {"DELETE", "jobs", deployer},
	} {
		if !a.changes[want] {
			t.Errorf("%s of %s as the account was not seen, among %v", want.method, want.resource, a.changes)
		}
	}
}
