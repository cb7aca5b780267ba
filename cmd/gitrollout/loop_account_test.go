package main

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// TestAnAppIsWrittenAsItsAccount checks that an app is held if its ServiceAccount has no rights. The app shows the API server's message,
// and nothing is written. With rights for its objects, the app is released. The app's entry or the command line names the ServiceAccount.
func TestAnAppIsWrittenAsItsAccount(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]string{
		"by its entry": "- path: apps/*\n  serviceAccount: deployer", "by default": "- path: apps/*",
	} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			w.configure(w.config(entry))
			if name == "by default" {
				w.keys.account = "deployer"
			}
			p := w.start()
			p.wantHeld(rollout.HeldForbidden, `User "system:serviceaccount:`+w.ns+`:deployer" cannot patch resource`)
			w.wantNoDeployment()
			w.grantDeployer()
			p.await("released", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Held == nil })
			if !w.hasDeployment() {
				t.Error("nothing is written")
			}
		})
	}
}

// grantDeployer gives the ServiceAccount deployer the rights to write the app's objects.
func (w *loopWorld) grantDeployer() {
	w.Helper()
	verbs := []string{"get", "create", "patch", "delete"}
	w.grant("deployer", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: verbs},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services", "configmaps"}, Verbs: verbs})
}

// grant creates a Role with the given rules, and binds the ServiceAccount deployer to that Role.
func (w *loopWorld) grant(name string, rules ...rbacv1.PolicyRule) {
	w.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	must(w, errorOf(w.kube.Kube.RbacV1().Roles(w.ns).Create(w.Context(), role, metav1.CreateOptions{})))
	w.bind("deployer", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name})
}

// bind binds a ServiceAccount of the test's namespace to a role, for that namespace only.
func (w *loopWorld) bind(account string, role rbacv1.RoleRef) {
	w.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: role,
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: w.ns}}}
	must(w, errorOf(w.kube.Kube.RbacV1().RoleBindings(w.ns).Create(w.Context(), binding, metav1.CreateOptions{})))
}
