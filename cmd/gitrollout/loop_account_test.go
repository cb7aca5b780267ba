package main

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// TestAnAppIsWrittenAsItsAccount uses an account without rights: the app is held with the API server's message, and
// nothing is written. With the rights for its objects, the app is released. The entry or the command line names the
// account.
func TestAnAppIsWrittenAsItsAccount(t *testing.T) {
	for name, entry := range map[string]string{"by its entry": "- path: apps/*\n  serviceAccount: deployer", "by default": "- path: apps/*"} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			w.repo.CommitFiles("an account", map[string]string{configFile: w.config(entry)})
			if name == "by default" {
				w.keys.account = "deployer"
			}
			p := w.start()
			s := p.await("held", func(s rollout.State) bool { return s.Held != nil })
			if s.Held.Reason != rollout.HeldForbidden || !strings.Contains(s.Held.Message, `User "system:serviceaccount:`+w.ns+`:deployer" cannot patch resource`) || w.hasDeployment() {
				t.Fatalf("held %+v, written: %t", s.Held, w.hasDeployment())
			}
			w.grantDeployer()
			p.await("released", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Held == nil })
			if !w.hasDeployment() {
				t.Error("nothing is written")
			}
		})
	}
}

// grantDeployer allows the account deployer to write the app's objects.
func (w *loopWorld) grantDeployer() {
	w.Helper()
	verbs := []string{"get", "create", "patch", "delete"}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "deployer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: verbs}, {APIGroups: []string{""}, Resources: []string{"services", "configmaps"}, Verbs: verbs},
	}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "deployer"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "deployer"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "deployer", Namespace: w.ns}}}
	if _, err := w.kube.Kube.RbacV1().Roles(w.ns).Create(w.Context(), role, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.kube.Kube.RbacV1().RoleBindings(w.ns).Create(w.Context(), binding, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}
