package main

import (
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"gitrollout.dev/gitrollout/rollout"
)

// viewer returns a kubeconfig of a ServiceAccount with the ClusterRole view in the test's namespace only.
func (w *loopWorld) viewer() string {
	w.Helper()
	return w.reader("viewer", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"})
}

// limited returns a kubeconfig of a ServiceAccount that may read only workloads, pods and namespaces, and only in the test's namespace.
func (w *loopWorld) limited() string {
	w.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"", "apps"}, Verbs: []string{"get", "list", "watch"}, Resources: []string{
			"pods", "deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions", "namespaces"}}}}
	must(w, errorOf(w.kube.Kube.RbacV1().Roles(w.ns).Create(w.Context(), role, metav1.CreateOptions{})))
	return w.reader("limited", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "pods"})
}

// reader returns a kubeconfig of a new ServiceAccount with the given role in the test's namespace only.
func (w *loopWorld) reader(name string, role rbacv1.RoleRef) string {
	w.Helper()
	accounts := w.kube.Kube.CoreV1().ServiceAccounts(w.ns)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(w, errorOf(accounts.Create(w.Context(), account, metav1.CreateOptions{})))
	w.bind(name, role)
	token, err := accounts.CreateToken(w.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(w, err)
	config, err := clientcmd.LoadFromFile(w.kube.Kubeconfig)
	must(w, err)
	for _, who := range config.AuthInfos {
		who.ClientCertificateData, who.ClientKeyData, who.ClientCertificate, who.ClientKey = nil, nil, "", ""
		who.Token = token.Status.Token
	}
	for _, in := range config.Contexts {
		in.Namespace = w.ns
	}
	file := filepath.Join(w.TempDir(), name)
	must(w, clientcmd.WriteToFile(*config, file))
	return file
}

// TestAViewerOfOneNamespace checks that a user with the ClusterRole view in one namespace sees the pods and changed objects there. A note
// says that the cluster is not verified, because the user cannot read the UID of kube-system.
func TestAViewerOfOneNamespace(t *testing.T) {
	w, p, s := newPausedWorld(t)
	kubeconfig := w.viewer()
	p.end()
	elsewhere := rollout.Cluster{
		Cluster: "test", UID: "uid-of-kube-system", Source: rollout.Source{Repo: w.server.URL, Branch: "main"},
	}
	w.edit(stateBranch, map[string]string{rollout.ClusterPath: encoded(t, elsewhere)})
	look := func(want exitCode, args ...string) string {
		t.Helper()
		out := wantExit(t, want, append(args, "--kubeconfig", kubeconfig, "--cluster", "test")...)
		return strings.Join(strings.Fields(out), " ") // notes are wrapped
	}
	const unverified = "cluster not verified"
	pods := string(s.Release.Hash)
	w.wantText(look(exitOK, "get", w.app, "--repo", w.server.URL), unverified, w.ns, pods, "3/3 ready", "ready pods")
	w.wantText(look(exitOK, "get", w.app, "--repo", w.server.URL, "--namespaces", w.ns), unverified, "3/3 ready")
	w.wantText(look(exitOK, "list", "--repo", w.server.URL), unverified, "3/3")
	w.wantText(look(exitOK, "get", w.app, "--cluster-only"), unverified, pods, "3/3 ready")
	w.wantText(look(exitOK, "list", "--cluster-only"), unverified, "3/3")
	const withoutDryRun = "is compared without a dry run"
	w.wantText(look(exitOK, "diff", w.app, "--repo", w.server.URL), unverified, withoutDryRun, "cannot patch resource")
	services, merge := w.kube.Kube.CoreV1().Services(w.ns), types.MergePatchType
	must(t, errorOf(services.Patch(t.Context(), w.app, merge, []byte(`{"spec": {"ports": [{"port": 81}]}}`), metav1.PatchOptions{})))
	w.wantText(look(exitFailed, "diff", w.app, "--repo", w.server.URL), withoutDryRun, "- - port: 81", "+ - port: 80")

	// An object that the user cannot read is reported as not observed, and the other objects are compared.
	text := wantExit(t, exitCluster, "diff", w.app, "--repo", w.server.URL, "--kubeconfig", w.limited(), "--cluster", "test")
	w.wantText(text, "core/Service/"+w.ns+"/"+w.app+" is not observed", "apps/Deployment/"+w.ns+"/"+w.app+" "+withoutDryRun)

	// Objects in a namespace that is not read must not be reported as missing.
	w.configure(strings.Replace(w.config("- path: apps/*"), "namespace: ", "namespaces: ["+w.ns+"]\n  namespace: other-", 1))
	text = look(exitOK, "list", "--repo", w.server.URL) + look(exitOK, "get", w.app, "--repo", w.server.URL)
	w.wantText(text, unverified, w.app, "3/3 ready")
	if strings.Contains(text, "to exist") {
		t.Errorf("objects that were not read are missed:\n%s", text)
	}
}
