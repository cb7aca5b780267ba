package e2e

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestEveryWriteIsTheAccounts checks that gitrollout impersonates an app's configured service account for all writes:
// dry runs, applies, prunes, measurement Jobs, rollbacks, and corrections of manual changes. Only Events, Leases and
// access reviews use gitrollout's own account.
func TestEveryWriteIsTheAccounts(t *testing.T) {
	t.Parallel()
	app := newShop(2, "", "setWeight: 50", "analysis: {templates: [{templateName: check}]}", "pause: {}")
	app.more = map[string]string{
		"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n",
		"check.yaml": `apiVersion: gitrollout.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: check}
spec: {metrics: [{name: check, provider: {job: {spec: {template: {spec: {restartPolicy: Never,
  containers: [{name: check, image: "check:v1-run200ms"}]}}}}}}]}
`,
	}
	w := newWorld(t, app.files())
	w.installRights()
	w.useAccount("deployer", "admin")
	a := audit(t, w, "gitrollout", w.ns)
	w.start("--kubeconfig", a.kubeconfig).awaitHealthy(w.repo.Head())
	version := func(v string) map[string]string {
		return map[string]string{"shop.yaml": app.at(v).files()["shop.yaml"]}
	}
	second := w.push("v2", version("v2"))
	w.awaitPause(2)
	w.promote().awaitHealthy(second)
	delete(app.more, "config.yaml")
	w.push("one object less", map[string]string{"kustomization.yaml": app.files()["kustomization.yaml"]})
	w.await("it is pruned", func(s rollout.State) bool {
		return !slices.ContainsFunc(s.Inventory, func(ref rollout.Ref) bool { return ref.Kind == "ConfigMap" })
	})
	third := w.push("v3", version("v3"))
	w.awaitPause(2)
	w.revert(third)

	// gitrollout also impersonates the account when it corrects manual changes: after a rejected release, and during
	// a release while the branch's head cannot be rendered.
	deployer := "system:serviceaccount:" + w.ns + ":deployer"
	putBack := func(what, patch string) {
		t.Helper()
		before := w.deployment().Spec
		a.mu.Lock()
		delete(a.changes, change{"PATCH", "deployments", deployer})
		a.mu.Unlock()
		w.kubectl("patch", "deployment/shop", "--type=merge", "-p", patch)
		now := w.deployment().Spec
		eventually(t, what+": put back as the account", func() bool {
			now = w.deployment().Spec
			a.mu.Lock()
			defer a.mu.Unlock()
			// The proxy records a write after the API server has stored the object. So the test also waits for the record.
			return *now.Replicas == *before.Replicas && reflect.DeepEqual(now.Strategy, before.Strategy) &&
				a.changes[change{"PATCH", "deployments", deployer}]
		}, func() any { return fmt.Sprintf("%d replicas, %+v", *now.Replicas, now.Strategy.RollingUpdate) })
	}
	w.push("v4", version("v4"))
	w.awaitPause(2)
	w.abort("--reason", "a bad one")
	putBack("rejected", `{"spec":{"replicas":5}}`)
	w.push("v5", version("v5"))
	w.awaitPause(2)
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
