package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// TestLeastRights runs with exactly the rights that doctor --rbac prints for the repository: the program adopts,
// releases, promotes and prunes. Each right is used, except get, which is for races with other writers; with one verb
// less the app is held.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	files := everyKind()
	w := newWorld(t, files)
	w.kubectl("create", "serviceaccount", "robot")
	a := audit(t, w, "robot", w.ns)
	printed, err := w.cli("doctor", "--rbac", "--as", "system:serviceaccount:"+w.ns+":robot")
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	file := filepath.Join(t.TempDir(), "rights.yaml")
	grant := func(text string) {
		t.Helper()
		text = strings.ReplaceAll(text, "name: gitrollout", "name: gitrollout-"+w.ns) // other tests have a ClusterRole, too
		must(t, os.WriteFile(file, []byte(text), 0o600))
		w.kubectl("apply", "-f", file)
	}
	grant(printed)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "more.yaml"), []byte(files["more.yaml"]), 0o600))
	w.kubectl("apply", "-f", filepath.Join(dir, "more.yaml")) // half of the objects exist before
	admin := w.cluster
	own := *w.cluster
	own.Kubeconfig = a.kubeconfig
	w.cluster = &own
	w.start()
	w.cluster = admin
	w.awaitHealthy(w.repo.Head())
	commit := w.push("v2", map[string]string{"shop.yaml": routed("v2").files()["shop.yaml"]})
	w.awaitStep(1, rollout.Paused)
	w.promote()
	w.awaitHealthy(commit)
	w.push("without the rest", map[string]string{"kustomization.yaml": "resources: [shop.yaml]\n"})
	w.await("pruned", func(s rollout.State) bool { return len(s.Inventory) == 1 && s.Phase == rollout.Healthy })
	w.push("back", map[string]string{"kustomization.yaml": files["kustomization.yaml"]})
	w.await("applied again", func(s rollout.State) bool { return len(s.Inventory) > 9 && s.Phase == rollout.Healthy })

	a.mu.Lock()
	for what := range a.refused {
		t.Errorf("the printed rules do not allow: %s", what)
	}
	rights := 0
	for _, document := range strings.Split(printed, "---\n") {
		var role rbacv1.Role // or a ClusterRole, or a binding, which has no rules
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					what := verb + " " + resource + "." + rule.APIGroups[0]
					rights++
					// shop is not deleted.
					if !a.used[what] && (verb != "get" || resource == "namespaces") && what != "delete deployments.apps" {
						t.Errorf("the printed rules allow an unneeded right: %s", what)
					}
				}
			}
		}
	}
	a.mu.Unlock()
	if rights < 40 {
		t.Errorf("%d rights are printed:\n%s", rights, printed)
	}

	i := strings.Index(printed, "kind: Role\n")
	less := printed[:i] + strings.Replace(printed[i:], "patch]", "list]", -1)
	if !slices.Contains(strings.Fields(printed[i:]), "patch]") || less == printed {
		t.Fatalf("no Role may patch:\n%s", printed)
	}
	grant(less)
	w.push("v3", map[string]string{"shop.yaml": routed("v3").files()["shop.yaml"]})
	s := w.await("held", func(s rollout.State) bool { return s.Held != nil })
	if s.Held.Reason != rollout.HeldForbidden || !strings.Contains(s.Held.Message, "cannot patch resource") {
		t.Errorf("with one verb less: held %+v", s.Held)
	}
}
