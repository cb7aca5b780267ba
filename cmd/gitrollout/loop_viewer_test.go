package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"gitrollout.dev/gitrollout/rollout"
)

// viewer returns a kubeconfig of a ServiceAccount with the ClusterRole view in the test's namespace alone.
func (w *loopWorld) viewer() string {
	w.Helper()
	core, meta := w.kube.Kube.CoreV1(), metav1.ObjectMeta{Name: "viewer"}
	if _, err := core.ServiceAccounts(w.ns).Create(w.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: meta.Name, Namespace: w.ns}}}
	if _, err := w.kube.Kube.RbacV1().RoleBindings(w.ns).Create(w.Context(), binding, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	token, err := core.ServiceAccounts(w.ns).CreateToken(w.Context(), meta.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(w.kube.Kubeconfig)
	if err != nil {
		w.Fatal(err)
	}
	for _, who := range config.AuthInfos {
		who.ClientCertificateData, who.ClientKeyData, who.ClientCertificate, who.ClientKey = nil, nil, "", ""
		who.Token = token.Status.Token
	}
	for _, in := range config.Contexts {
		in.Namespace = w.ns
	}
	file := filepath.Join(w.TempDir(), "viewer")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		w.Fatal(err)
	}
	return file
}

// TestAViewerOfOneNamespace shows a user with the ClusterRole view in one namespace the pods there, and says that the
// cluster is not verified. The state branch comes from a reconciler of the whole cluster.
func TestAViewerOfOneNamespace(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	s := p.awaitPaused(w.push("v2", version("v2", halfThenGate)))
	kubeconfig := w.viewer()
	of := func(uid string, namespaces ...string) { // sets the state branch's cluster and apps
		t.Helper()
		state := rollout.Cluster{Cluster: "test", UID: uid, Source: rollout.Source{Repo: w.server.URL, Branch: "main"}}
		data, err := state.Encode()
		if err != nil {
			t.Fatal(err)
		}
		w.repo.Git("fetch", "-q", "origin", rollout.StateBranch("test"))
		w.repo.Git("checkout", "-q", "--detach", "FETCH_HEAD")
		w.repo.Write(map[string]string{rollout.ClusterPath: string(data)}).Git("commit", "-q", "-a", "-m", "another cluster")
		w.repo.Git("push", "-q", "origin", "HEAD:refs/heads/"+rollout.StateBranch("test"))
		w.repo.Git("checkout", "-q", "main")
	}
	p.end()
	of("uid-of-kube-system")
	look := func(want exitCode, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		args = append(args, "--kubeconfig", kubeconfig, "--cluster", "test")
		if got := run(t.Context(), args, strings.NewReader(""), &out, &out); exitCode(got) != want {
			t.Errorf("%v: exit code %d, want %d\n%s", args, got, want, &out)
		}
		return strings.Join(strings.Fields(out.String()), " ") // notes are wrapped
	}
	const unverified = "cluster not verified"
	pods := string(s.Release.Hash)
	w.wantText(look(exitOK, "get", w.app, "--repo", w.server.URL), unverified, w.ns, pods, "3/3 ready", "ready pods")
	w.wantText(look(exitOK, "get", w.app, "--repo", w.server.URL, "--namespaces", w.ns), unverified, "3/3 ready")
	w.wantText(look(exitOK, "list", "--repo", w.server.URL), unverified, "3/3")
	w.wantText(look(exitOK, "get", w.app, "--cluster-only"), unverified, pods, "3/3 ready")
	w.wantText(look(exitOK, "list", "--cluster-only"), unverified, "3/3")
	w.wantText(look(exitFailed, "diff", w.app, "--repo", w.server.URL), unverified, "cannot patch resource")
	// Objects in another namespace are not reported as missing.
	w.repo.CommitFiles("another namespace", map[string]string{configFile: strings.Replace(w.config("- path: apps/*"), "namespace: ", "namespaces: ["+w.ns+"]\n  namespace: other-", 1)})
	text := look(exitOK, "list", "--repo", w.server.URL)
	w.wantText(text, unverified, w.app)
	if strings.Contains(text, "to exist") {
		t.Errorf("objects that were not read are missed:\n%s", text)
	}
}
