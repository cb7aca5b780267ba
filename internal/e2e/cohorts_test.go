package e2e

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// fleetSize is the number of apps that share one file, base/kustomization.yaml, which sets their image.
const fleetSize = 30

func fleetApp(i int) string { return fmt.Sprintf("app%02d", i) }

// sharing returns a world with fleetSize apps that share the image tag v1. A shared change soaks for one second.
func sharing(t *testing.T) *world {
	w := newWorld(t, newShop(1, "", "setWeight: 100").files())
	files := map[string]string{
		configFile: "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\nsharedChanges: {soak: 1s}\napps:\n- path: apps/app*\n  namespace: " +
			w.ns + "\n",
	}
	for i := range fleetSize {
		name := fleetApp(i)
		files["apps/"+name+"/kustomization.yaml"] = "resources: [app.yaml]\ncomponents: [../../base]\n"
		files["apps/"+name+"/app.yaml"] = fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: shop, image: shop}]}
---
apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: %[1]s}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: %[1]s}
  progressDeadlineSeconds: 10
  progressDeadlineAbort: true
  strategy: {canary: {steps: [{setWeight: 100}]}}
`, name)
	}
	w.repo.Write(files)
	w.base("v1")
	w.app = fleetApp(0)
	return w.start()
}

// base pushes another image tag for all apps.
func (w *world) base(tag string) (commit string) {
	w.t.Helper()
	w.repo.Pull()
	return w.repo.CommitFiles("base "+tag, map[string]string{"base/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\n" +
		"kind: Component\nimages: [{name: shop, newTag: " + tag + "}]\n"})
}

// awaitFleet waits until each app is healthy without a release, and all pods have the tag and are ready.
func (w *world) awaitFleet(tag string) {
	w.t.Helper()
	var missing []string
	eventually(w.t, "all apps are healthy with "+tag, func() bool {
		missing = nil
		for i := range fleetSize {
			s := stateOf(w.t, w.repo, w.stateBranch(), fleetApp(i))
			if s.Phase != rollout.Healthy || s.Release != nil || s.Held != nil {
				missing = append(missing, fleetApp(i)+": "+shown(s))
			}
		}
		last := w.pods.last()
		return len(missing) == 0 && last.ready[tag] == fleetSize && len(last.pods) == fleetSize
	}, func() any { return fmt.Sprintf("%s; pods %v", strings.Join(missing, "\n"), w.pods.last().all) })
}

// TestABadBaseReachesOneApp pushes an image that never becomes ready to the base of 30 apps. Only one app gets pods with this image, and
// rejects the image. After a revert, all apps are healthy. A good image then reaches all apps.
func TestABadBaseReachesOneApp(t *testing.T) {
	t.Parallel()
	w := sharing(t)
	w.awaitFleet("v1")
	bad := w.base("v2-neverready")
	var rejected, waiting int
	count := func() bool {
		rejected, waiting = 0, 0
		for i := range fleetSize {
			s := stateOf(t, w.repo, w.stateBranch(), fleetApp(i))
			switch {
			case s.Phase == rollout.Degraded && len(s.Rejected) == 1:
				rejected++
			case s.Held.Is(rollout.HeldCohort, rollout.HeldShared):
				waiting++
			}
		}
		return rejected == 1 && waiting == fleetSize-1
	}
	eventually(t, "one app has rejected the base, and all others wait", count, func() any { return fmt.Sprint(rejected, " and ", waiting) })
	if out := w.ran("list"); !strings.Contains(out, "rejected the same change (base/kustomization.yaml)") {
		t.Errorf("list does not say why apps wait:\n%s", out)
	}
	w.repo.Revert(bad)
	w.awaitFleet("v1")
	ran := map[string]bool{}
	for _, s := range w.pods.since(0) {
		for pod, tag := range s.pods {
			if tag == "v2-neverready" {
				ran[pod[:len("app00")]] = true
			}
		}
	}
	if len(ran) != 1 {
		t.Errorf("the apps %v had pods of the bad base, want one app", ran)
	}
	w.base("v3")
	w.awaitFleet("v3")
}
