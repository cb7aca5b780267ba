package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/attacks"
	"gitrollout.dev/gitrollout/rollout"
)

// TestTenantAttacks runs all attacks of a user with push access to one app's folder, each as a separate app. It has a
// real API server with the installed rights. First the configuration refuses the attacks, then the configuration allows
// everything and the policy refuses. Each app is held with the rule's message after dry runs only, and another app is
// released meanwhile.
func TestTenantAttacks(t *testing.T) {
	t.Parallel()
	for name, opened := range map[string]bool{"configuration": false, "policy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := shop{version: "v1", replicas: "replicas: 2", strategy: canary("", "setWeight: 50", "pause: {}")}.files()
			files["kustomization.yaml"] += "- config.yaml\n"
			files["config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {of: shop}\n"
			w := newWorld(t, files)
			w.installRights()
			a := audit(t, w, "gitrollout", w.ns)
			tried := map[string]attacks.Attack{}
			entry := "- {path: 'apps/evil-*', namespace: evil, namespaces: [NS, 'evil-*']}\n"
			if opened {
				entry = "- {path: 'apps/evil-*', namespace: evil, namespaces: ['*', kube-system], clusterResources: ['*']}\n"
			}
			commit := map[string]string{".gitrollout/test/config.yaml": strings.ReplaceAll("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\n"+
				"apps:\n"+
				"- {path: apps/NS, namespace: NS}\n"+entry, "NS", w.ns)}
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
			policy := filepath.Join(t.TempDir(), "policy.yaml")
			rules := "apiVersion: gitrollout.dev/v1alpha1\nkind: Policy\nprojects:\n- {name: shop, apps: [NS], namespaces: [NS]}\n"
			if opened {
				rules += "- {name: evil, apps: ['evil-*'], " + strings.Replace(attacks.Policy, "namespaces: [", "namespaces: [NS, ", 1) + "}\n"
			} else {
				rules = strings.Replace(rules, "projects:", "unmatched: allow\nprojects:", 1)
			}
			must(t, os.WriteFile(policy, []byte(strings.ReplaceAll(rules, "NS", w.ns)), 0o600))
			admin := w.cluster
			own := *w.cluster
			own.Kubeconfig = a.kubeconfig
			w.cluster = &own
			w.start("--policy", policy)
			w.cluster = admin
			w.awaitHealthy(w.repo.Head())
			before := w.kubectl("get", "configmap", "shop", "-o", "jsonpath={.metadata.resourceVersion}")
			w.repo.Pull()
			w.repo.CommitFiles("attacks", commit)
			deadline := time.Now().Add(timeout) // for all of them
			for app, attack := range tried {
				s := w.stateOf(app)
				for s.Held == nil && time.Now().Before(deadline) {
					time.Sleep(glance)
					s = w.stateOf(app)
				}
				if s.Held == nil || !strings.Contains(s.Held.Message, attack.Config) || opened && attack.Policy != "" &&
					s.Held.Reason != rollout.HeldPolicy {
					t.Errorf("%v: held %+v, want %s", attack.Files, s.Held, attack.Config)
				}
			}
			w.push("v2", map[string]string{"shop.yaml": shop{version: "v2", replicas: "replicas: 2"}.files()["shop.yaml"]})
			w.awaitStep(1, rollout.Paused)
			if after := w.kubectl("get", "configmap", "shop", "-o", "jsonpath={.metadata.resourceVersion}"); after != before {
				t.Errorf("the other app's ConfigMap was written: %s, then %s", before, after)
			}
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

// stateOf returns the app's record in Git.
func (w *world) stateOf(app string) rollout.State {
	w.t.Helper()
	file := rollout.StatePath(app)
	if w.repo.Ref(w.stateBranch()) == "" || !slices.Contains(w.repo.Files(w.stateBranch()), file) {
		return rollout.State{}
	}
	s, err := rollout.ParseState(file, []byte(w.repo.Show(w.stateBranch(), file)))
	must(w.t, err)
	return *s
}
