package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// TestKindsWithoutNamespace checks that the cluster decides whether a kind has a namespace, whatever the object says.
// Existing objects are not forbidden.
func TestKindsWithoutNamespace(t *testing.T) {
	w := newWorld(t)
	w.kinds = "example.com/Widget"
	const class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NS, namespace: NS}\nvalue: 1\n"
	err := w.Check(t.Context(), "shop", w.objects(class))
	if rollout.ReasonOf(err) != rollout.HeldPolicy || !strings.HasSuffix(err.Error(), "may have no scheduling.k8s.io/PriorityClass") {
		t.Errorf("the error is %v", err)
	}
	w.kinds = "scheduling.k8s.io/PriorityClass"
	if err := w.Check(t.Context(), "shop", w.objects(class)); err != nil {
		t.Errorf("it may have it: %v", err)
	}
	w.apply("shop", class)
	w.kinds = "example.com/Widget"
	if err := w.Check(t.Context(), "shop", w.objects(class)); err != nil {
		t.Errorf("it has it: %v", err)
	}
}

// account returns a configuration for a ServiceAccount with all rights in some namespaces, by Roles, and no other
// rights.
func account(t *testing.T, tc *testcluster.Cluster, namespaces ...string) *rest.Config {
	t.Helper()
	core, rbac, ns := tc.Kube.CoreV1(), tc.Kube.RbacV1(), namespaces[0]
	meta := metav1.ObjectMeta{Name: "robot"}
	_, err := core.ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	for _, in := range namespaces {
		role := &rbacv1.Role{ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}}
		_, made := rbac.Roles(in).Create(t.Context(), role, metav1.CreateOptions{})
		_, bound := rbac.RoleBindings(in).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: meta.Name}}}, metav1.CreateOptions{})
		err = errors.Join(err, made, bound)
	}
	token, failed := core.ServiceAccounts(ns).CreateToken(t.Context(), meta.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(tc.Config)
	config.BearerToken = token.Status.Token
	return config
}

// TestNamespaces checks that a client of two namespaces needs only a Role in each. It reads and writes no other
// namespace.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	tc := testcluster.Shared(t)
	w := &world{t: t, cluster: tc, ns: tc.Namespace(t), namespaces: []string{"", tc.Namespace(t)}}
	w.namespaces[0] = w.ns
	other, beyond := w.namespaces[1], tc.Namespace(t)
	config := account(t, tc, w.namespaces...)
	w.connect(config)
	if uid, err := w.UID(t.Context()); err != nil || !strings.HasPrefix(uid, w.ns+"/") {
		t.Errorf("the uid is %q, %v", uid, err)
	}
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: NS}\ndata: {a: b}\n"
	in := func(namespace, manifest string) string { return strings.ReplaceAll(manifest, "NS", namespace) }
	all := shop + "\n---\n" + in(other, settings)
	w.apply("shop", all)
	w.complete("shop", "shop")
	must(t, tc.Kube.CoreV1().ConfigMaps(other).Delete(t.Context(), "settings", metav1.DeleteOptions{}))
	if again := w.healed("shop", all); len(again.Written) != 1 {
		t.Errorf("after a deletion in the second namespace: %+v", again)
	}

	for manifest, want := range map[string]string{
		in(beyond, settings): `is in namespace "` + beyond + `", which --namespaces leaves out`,
		"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NS}\nvalue: 1\n": "belongs to no namespace, " +
			"and gitrollout runs with --namespaces",
	} {
		_, err := w.Apply(t.Context(), "shop", w.objects(manifest))
		_, _, pruned := w.Prune(t.Context(), "shop", []rollout.Ref{w.objects(manifest)[0].Ref()})
		_, foreign := w.OtherOwners(t.Context(), "shop", w.objects(manifest), time.Now())
		for _, err := range []error{err, pruned, foreign, w.Check(t.Context(), "shop", w.objects(manifest))} {
			var refused *cluster.Error
			if !errors.As(err, &refused) || refused.Reason != cluster.Forbidden || refused.Msg != want {
				t.Errorf("the error is %v, want %s", err, want)
			}
		}
	}

	if c, err := cluster.New(config, cluster.Options{Cluster: "test"}); err != nil || c.Start(t.Context()) == nil {
		t.Errorf("without namespaces it has started all the same: %v", err)
	}
}
