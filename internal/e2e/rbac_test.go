package e2e

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestLeastRights runs gitrollout with exactly the rights that doctor --rbac prints for the repository. gitrollout must use each right.
// Most `get` rights are exempt, because only races with other writers need them. Without the `patch` rights, the app is held (State.Held).
func TestLeastRights(t *testing.T) {
	t.Parallel()
	files := everyKind()
	w := newWorld(t, files)
	w.kubectl("create", "serviceaccount", "robot")
	a := audit(t, w, "robot", w.ns)
	printed := w.ran("doctor", "--rbac", "--as", "system:serviceaccount:"+w.ns+":robot")
	grant := func(text string) {
		t.Helper()
		w.apply(strings.ReplaceAll(text, "name: gitrollout", "name: gitrollout-"+w.ns)) // other tests create a ClusterRole, too
	}
	grant(printed)
	w.apply(files["more.yaml"]) // half of the objects exist before gitrollout starts
	w.start("--kubeconfig", a.kubeconfig).awaitHealthy(w.repo.Head())
	w.release("v2", map[string]string{"shop.yaml": routed("v2").files()["shop.yaml"]})
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
		var role rbacv1.Role // a ClusterRole has the same rules; a binding has no rules
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		for _, right := range rightsOf(role.Rules) {
			rights++
			isOfRaces := strings.HasPrefix(right, "get ") && right != "get namespaces."
			if !a.used[right] && !isOfRaces && right != "delete deployments.apps" { // no test deletes the Deployment shop
				t.Errorf("the printed rules allow an unneeded right: %s", right)
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
	compare.Check(t, rollout.HeldForbidden, s.Held.Reason)
	compare.Contains(t, s.Held.Message, "cannot patch resource")
}
