package reconciler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// images returns the concatenated names of the versions that have pods, such as "v1v2".
func (w *world) images() (all string) {
	for _, image := range []string{"v1", "v2", "v9"} {
		if w.pods(image) > 0 {
			all += image
		}
	}
	return all
}

// TestOneObjectOneApp checks that, of two apps with the same object, only the second app is held. The apps' names, a restart, and the
// object's deletion in the cluster change nothing. When the first app drops the object in Git, the second app is no longer held.
func TestOneObjectOneApp(t *testing.T) {
	for _, evil := range []string{"a-evil", "z-evil"} {
		t.Run(evil, func(t *testing.T) {
			w := newWorld(t, nil)
			w.commit("the same Deployment", map[string]string{
				"apps/" + evil + "/kustomization.yaml": "resources: [app.yaml]\n", "apps/" + evil + "/app.yaml": version("v9"),
			})
			for _, what := range []string{"in this process", "after a restart", "when it was deleted"} {
				switch what {
				case "after a restart":
					w.r = reconciler.New(w.r.Options)
				case "when it was deleted":
					clear(w.cluster.Deployments)
					w.r = reconciler.New(w.r.Options)
				}
				for range 10 {
					w.r.Touch(evil)
					if err := w.once(); err != nil && !strings.Contains(err.Error(), "is in app") {
						t.Fatal(err)
					}
				}
				const shared = "Deployment default/shop is in app %s and in app shop, which owns the object"
				held := fmt.Sprintf("%s: %+v", what, w.stateOf(evil).Held)
				compare.Contains(t, held, "Reason:"+string(rollout.HeldContested), fmt.Sprintf(shared, evil))
				first := fmt.Sprintf("%s, held %v, with %s", w.state().Phase, w.state().Held, w.images())
				compare.CheckNamed(t, what+", the first one", "Healthy, held <nil>, with v1", first)
			}
			w.commit("the first one lets go", map[string]string{"apps/shop/kustomization.yaml": "resources: [config.yaml]\n"})
			for range 10 {
				w.r.Touch(evil)
				_ = w.once()
			}
			compare.CheckNamed(t, "held for a removed object", false, w.stateOf(evil).Held.Is(rollout.HeldContested))
		})
	}
}

// TestASharedNamespace checks that two apps may have the same Namespace object. If one app drops the Namespace in Git, the other app keeps
// it.
func TestASharedNamespace(t *testing.T) {
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: team}\n"
	w := newWorld(t, nil)
	w.commit("a team", map[string]string{
		configFile: "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n" +
			"- {path: apps/*, namespaces: [team], clusterResources: [Namespace]}\n",
		"apps/shop/kustomization.yaml": "resources: [app.yaml, team.yaml]\n", "apps/shop/team.yaml": namespace,
		"apps/web/kustomization.yaml": "resources: [config.yaml, team.yaml]\n", "apps/web/team.yaml": namespace,
		"apps/web/config.yaml": config,
	})
	healthy := func(when string) {
		t.Helper()
		w.settle()
		for _, app := range []string{"shop", "web"} {
			s := w.stateOf(app)
			compare.CheckNamed(t, when+": "+app, "Healthy, held <nil>", fmt.Sprintf("%s, held %v", s.Phase, s.Held))
		}
	}
	healthy("both have it")
	for _, app := range []string{"shop", "web"} {
		kept := map[string]string{"shop": "app.yaml", "web": "config.yaml"}[app]
		w.commit(app+" drops it", map[string]string{
			"apps/" + app + "/team.yaml": "", "apps/" + app + "/kustomization.yaml": "resources: [" + kept + "]\n",
		})
		healthy(app + " has dropped it")
		if h := w.stateOf("web").Inventory; app == "shop" && !slices.Contains(h, rollout.Ref{Kind: "Namespace", Name: "team"}) {
			t.Errorf("shop has dropped the Namespace, and web has it no more: %v", h)
		}
	}
}
