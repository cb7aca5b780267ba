package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/attacks"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestTenantAttacks tries the attacks of a user who may push only to one app's folder. Each attack is a separate app. The API server
// enforces the installed rights. The configuration refuses the attacks. If the configuration allows everything, the policy file (--policy)
// refuses the attacks. Each attacking app is held (State.Held) with the refusal's message, and causes only dry runs. Meanwhile, another app
// is released.
func TestTenantAttacks(t *testing.T) {
	t.Parallel()
	for name, opened := range map[string]bool{"configuration": false, "policy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := newShop(2, "", "setWeight: 50", "pause: {}")
			app.more = map[string]string{"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {of: shop}\n"}
			w := newWorld(t, app.files())
			w.installRights()
			a := audit(t, w, "gitrollout", w.ns)
			tried := map[string]attacks.Attack{}
			entry := "- {path: 'apps/evil-*', namespace: evil, namespaces: [NS, 'evil-*']}\n"
			if opened {
				entry = "- {path: 'apps/evil-*', namespace: evil, namespaces: ['*', kube-system], clusterResources: ['*']}\n"
			}
			commit := map[string]string{configFile: configOf(w.app, w.ns, strings.ReplaceAll(entry, "NS", w.ns))}
			victim := attacks.Victim{App: w.app, Objects: "shop", Namespace: w.ns}
			for i, name := range slices.Sorted(maps.Keys(attacks.Of("", victim))) {
				app := fmt.Sprintf("evil-%02d", i)
				attack := attacks.Of(app, victim)[name]
				if opened && attack.Policy != "" {
					attack.Config = "project evil, rule " + attack.Policy + ": "
				}
				if attack.Config == "" {
					continue
				}
				attack.Config, _, _ = strings.Cut(attack.Config, " and in app") // several attacks have this message
				tried[app] = attack
				if attack.Files["kustomization.yaml"] == "" {
					commit["apps/"+app+"/kustomization.yaml"] = "resources: [app.yaml]\n"
				}
				for file, content := range attack.Files {
					if root, is := strings.CutPrefix(file, "/"); is {
						commit[root] = content
					} else {
						commit["apps/"+app+"/"+file] = content
					}
				}
			}
			if len(tried) < 50 {
				t.Fatalf("%d attacks", len(tried))
			}
			rules := "apiVersion: gitrollout.dev/v1alpha1\nkind: Policy\nprojects:\n- {name: shop, apps: [NS], namespaces: [NS]}\n"
			if opened {
				rules += "- {name: evil, apps: ['evil-*'], " + strings.Replace(attacks.Policy, "namespaces: [", "namespaces: [NS, ", 1) + "}\n"
			} else {
				rules = strings.Replace(rules, "projects:", "unmatched: allow\nprojects:", 1)
			}
			w.start("--kubeconfig", a.kubeconfig, "--policy", tempFile(t, "policy.yaml", strings.ReplaceAll(rules, "NS", w.ns)))
			w.awaitHealthy(w.repo.Head())
			before := w.kubectl("get", "configmap", "shop", "-o", "jsonpath={.metadata.resourceVersion}")
			w.repo.Pull()
			w.repo.CommitFiles("attacks", commit)
			deadline := time.Now().Add(timeout) // one deadline for all attacks together
			for app, attack := range tried {
				s := stateOf(t, w.repo, w.stateBranch(), app)
				for s.Held == nil && time.Now().Before(deadline) {
					time.Sleep(glance)
					s = stateOf(t, w.repo, w.stateBranch(), app)
				}
				if s.Held == nil || !strings.Contains(s.Held.Message, attack.Config) || opened && attack.Policy != "" &&
					s.Held.Reason != rollout.HeldPolicy {
					t.Errorf("%v: held %+v, want %s", attack.Files, s.Held, attack.Config)
				}
			}
			w.stage("v2", map[string]string{"shop.yaml": app.at("v2").files()["shop.yaml"]})
			after := w.kubectl("get", "configmap", "shop", "-o", "jsonpath={.metadata.resourceVersion}")
			compare.CheckNamed(t, "the revision of the other app's ConfigMap", before, after)
			a.mu.Lock()
			defer a.mu.Unlock()
			for _, write := range a.writes {
				if !strings.Contains(write, "/namespaces/"+w.ns+"/") && !strings.Contains(write, "/events") {
					t.Errorf("an attack was sent: %s", write)
				}
			}
			if len(a.writes) == 0 {
				t.Error("no write was seen: is the other app's noted?")
			}
		})
	}
}
