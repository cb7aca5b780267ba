package cluster_test

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
)

// account creates a ServiceAccount in the test's namespace. It has no rights.
func (w *world) account(name string) rbacv1.Subject {
	w.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := w.cluster.Kube.CoreV1().ServiceAccounts(w.ns).Create(w.t.Context(), account, metav1.CreateOptions{})
	must(w.t, err)
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: name}
}

// login returns a configuration with a new token of the account.
func (w *world) login(account rbacv1.Subject) *rest.Config {
	w.t.Helper()
	accounts := w.cluster.Kube.CoreV1().ServiceAccounts(account.Namespace)
	token, err := accounts.CreateToken(w.t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(w.t, err)
	config := rest.AnonymousClientConfig(w.cluster.Config)
	config.BearerToken = token.Status.Token
	return config
}

// rule returns a rule that permits verbs on resources of API groups. Spaces separate the entries of each list. The core group is "".
func rule(verbs, groups, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: strings.Split(groups, " "), Resources: strings.Fields(resources),
		ResourceNames: names}
}

// permit gives a subject rights in one namespace.
func (w *world) permit(subject rbacv1.Subject, namespace string, rules ...rbacv1.PolicyRule) {
	w.t.Helper()
	meta, rbac := metav1.ObjectMeta{Name: subject.Name}, w.cluster.Kube.RbacV1()
	_, err := rbac.Roles(namespace).Create(w.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	must(w.t, err)
	_, err = rbac.RoleBindings(namespace).Create(w.t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}, metav1.CreateOptions{})
	must(w.t, err)
}

// permitEverywhere gives a subject rights in the whole cluster until the test ends.
func (w *world) permitEverywhere(subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	w.t.Helper()
	meta, rbac := metav1.ObjectMeta{Name: subject.Name + "-" + w.ns}, w.cluster.Kube.RbacV1()
	_, err := rbac.ClusterRoles().Create(w.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	must(w.t, err)
	_, err = rbac.ClusterRoleBindings().Create(w.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
		Subjects: []rbacv1.Subject{subject},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}}, metav1.CreateOptions{})
	must(w.t, err)
	w.t.Cleanup(func() {
		_ = rbac.ClusterRoleBindings().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
		_ = rbac.ClusterRoles().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
	})
}

// TestMissingRightToWatchIsNamed checks that the error of Start names the missing right. One account has no rights, and
// another lacks a single right.
func TestMissingRightToWatchIsNamed(t *testing.T) {
	w := newWorld(t)
	poor := w.account("poor")
	config := w.login(poor)
	start := func() error {
		client, err := cluster.New(config, cluster.Options{})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer client.Wait()
		defer cancel()
		return client.Start(ctx)
	}
	compare.CheckError(t, "no rights", start(), `resource "deployments" in API group "apps"`) // it says "cannot list" or "cannot watch"
	w.permitEverywhere(poor, rule("get list watch", "", "namespaces pods"), rule("get list watch", "apps", "replicasets"),
		rule("get list", "apps", "deployments"))
	w.until("an error that names the right", func() (bool, string) {
		err := start()
		if err == nil {
			return false, "it starts"
		}
		return strings.Contains(err.Error(), `cannot watch resource "deployments" in API group "apps"`), err.Error()
	})
}
