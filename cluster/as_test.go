package cluster_test

import (
	"errors"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
)

// deployer creates a service account that may write only ConfigMaps in the test's namespace.
func (w *world) deployer() (account string) {
	w.t.Helper()
	ctx, kube := w.t.Context(), w.cluster.Kube
	named := metav1.ObjectMeta{Name: "deployer"}
	role := &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch", "delete"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: named,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "deployer"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "deployer", Namespace: w.ns}}}
	_, err := kube.CoreV1().ServiceAccounts(w.ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: named}, metav1.CreateOptions{})
	_, other := kube.RbacV1().Roles(w.ns).Create(ctx, role, metav1.CreateOptions{})
	_, third := kube.RbacV1().RoleBindings(w.ns).Create(ctx, binding, metav1.CreateOptions{})
	must(w.t, errors.Join(err, other, third))
	return w.ns + "/deployer"
}

// loop returns a configuration for a user with the rights to list, watch, and impersonate the account deployer.
func (w *world) loop() *rest.Config {
	w.t.Helper()
	ctx, kube := w.t.Context(), w.cluster.Kube
	named := metav1.ObjectMeta{Name: "loop-" + w.ns}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: named.Name, Namespace: w.ns}}
	_, first := kube.CoreV1().ServiceAccounts(w.ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: named}, metav1.CreateOptions{})
	_, second := kube.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	_, third := kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: named, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name}}, metav1.CreateOptions{})
	_, fourth := kube.RbacV1().Roles(w.ns).Create(ctx, &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"deployer"}, Verbs: []string{"impersonate"}},
	}}, metav1.CreateOptions{})
	_, fifth := kube.RbacV1().RoleBindings(w.ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: named, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name}}, metav1.CreateOptions{})
	token, sixth := kube.CoreV1().ServiceAccounts(w.ns).CreateToken(ctx, named.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(w.t, errors.Join(first, second, third, fourth, fifth, sixth))
	config := rest.AnonymousClientConfig(w.cluster.Config)
	config.BearerToken = token.Status.Token
	return config
}

// TestAsAnAccount checks that an app is written with its account's rights. A forbidden write is refused in the API
// server's words, in a dry run too. Watches use the client's own rights.
func TestAsAnAccount(t *testing.T) {
	w := newWorld(t)
	ctx := cluster.As(t.Context(), w.deployer())
	other := w.cluster.Namespace(t)
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop, namespace: NS}\ndata: {a: A}\n"
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: shop, namespace: NS}\n"
	w.apply("shop", secret)
	w.connect(w.loop())
	w.until("its rights are known", func() (bool, string) {
		_, err := w.Apply(ctx, "shop", w.objects(config))
		return err == nil, "its own namespace"
	})
	live, err := w.cluster.Kube.CoreV1().ConfigMaps(w.ns).Get(ctx, "shop", metav1.GetOptions{})
	if err != nil || live.Data["a"] != "A" {
		t.Fatalf("%v, %v", live, err)
	}
	for name, manifest := range map[string]string{
		"another kind":      strings.ReplaceAll(secret, "shop", "till"),
		"another namespace": strings.ReplaceAll(config, "NS", other),
		"no namespace":      "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-more}\n",
	} {
		_, applied := w.Apply(ctx, "shop", w.objects(manifest))
		for what, err := range map[string]error{"apply": applied, "check": w.Check(ctx, "shop", w.objects(manifest))} {
			var refused *cluster.Error
			if !errors.As(err, &refused) || refused.Reason != cluster.Forbidden ||
				!strings.Contains(err.Error(), "system:serviceaccount:"+w.ns+":deployer") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	if _, err := w.SecretData(ctx, w.ns, "nobody", ""); err == nil || !strings.Contains(err.Error(), "deployer") {
		t.Errorf("a Secret: %v", err)
	}
	if _, err := w.Apply(t.Context(), "shop", w.objects(config+"immutable: true\n")); err == nil {
		t.Error("the client itself may write")
	}
	ref := w.ref("", "Secret", "shop")
	if _, _, err := w.Prune(ctx, "shop", []rollout.Ref{ref}); err == nil || !strings.Contains(err.Error(), "deployer") {
		t.Errorf("prune: %v", err)
	}
	if _, _, err := w.Prune(ctx, "shop", []rollout.Ref{w.ref("", "ConfigMap", "shop")}); err != nil {
		t.Errorf("prune an object that it may delete: %v", err)
	}
}
