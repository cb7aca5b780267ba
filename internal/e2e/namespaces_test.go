package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// TestNamespaces runs gitrollout with only the Roles that doctor --rbac --namespaces prints. According to the API server's audit log,
// gitrollout's account accesses objects only in the test's namespace.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "audit.log")
	cluster, stop, err := testcluster.Launch("--nodes", "2", "--audit-log", log)
	must(t, err)
	t.Cleanup(stop)
	app := newShop(2, "", "setWeight: 50", "pause: {}")
	w := newWorldOn(t, cluster, app.files())
	other := cluster.Namespace(t)
	w.repo.CommitFiles("an app elsewhere", map[string]string{
		configFile:                          configOf(w.app, w.ns, "- path: apps/elsewhere\n  namespace: "+other+"\n"),
		"apps/elsewhere/kustomization.yaml": "resources: [c.yaml]\n",
		"apps/elsewhere/c.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n",
	})
	w.kubectl("create", "serviceaccount", "robot")
	robot := "system:serviceaccount:" + w.ns + ":robot"
	printed := w.ran("doctor", "--rbac", "--as", robot, "--namespaces", w.ns)
	if strings.Contains(printed, "kind: ClusterRole") {
		t.Fatal(printed)
	}
	w.apply(printed)
	own := rest.AnonymousClientConfig(cluster.Config)
	w.start("--kubeconfig", writeKubeconfig(t, clientcmdapi.Cluster{Server: own.Host, CertificateAuthorityData: own.CAData,
		CertificateAuthority: own.CAFile}, tokenOf(t, cluster, w.ns, "robot")))
	w.awaitHealthy(w.repo.Head())
	w.release("v2", app.at("v2").files())
	compare.Contains(t, oneLine(w.ran("get", "elsewhere", "--no-color")), "apps/elsewhere/c.yaml: metadata.namespace: ", other, "--namespaces")

	class := "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " + w.ns + "}\nvalue: 1\n"
	w.push("a cluster-scoped object", map[string]string{"class.yaml": class,
		"kustomization.yaml": app.at("v2").files()["kustomization.yaml"] + "- class.yaml\n"})
	s := w.await("held", func(s rollout.State) bool { return s.Held != nil })
	compare.Check(t, rollout.HeldForbidden, s.Held.Reason)
	compare.Contains(t, s.Held.Message, "is cluster-scoped", "--namespaces")
	w.stop()
	requests := 0
	for _, e := range auditEvents(t, log) {
		if e.User.Username != robot {
			continue
		}
		requests++
		about := e.ObjectRef
		switch {
		case about.Resource == "" || about.Namespace == w.ns: // requests for discovery, or for the test's namespace
		case about.APIGroup == "authorization.k8s.io" || about.APIGroup == "authentication.k8s.io": // reviews of the account's own rights
		default:
			t.Errorf("%s %s", e.Verb, e.RequestURI)
		}
	}
	if requests < 30 {
		t.Errorf("the audit log has %d requests of %s", requests, robot)
	}
}

// auditEvent has the fields of one request in the audit log.
type auditEvent struct {
	Verb, RequestURI string
	User             struct{ Username string }
	ObjectRef        struct{ Resource, Namespace, Name, APIGroup string }
}

func auditEvents(t *testing.T, log string) (events []auditEvent) {
	t.Helper()
	file, err := os.Open(log)
	must(t, err)
	defer func() { _ = file.Close() }()
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return events // the last line may be incomplete
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
}

// tokenOf returns a token of a ServiceAccount.
func tokenOf(t *testing.T, cluster *testcluster.Cluster, namespace, account string) string {
	t.Helper()
	token, err := cluster.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(context.Background(), account,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	return token.Status.Token
}

// writeKubeconfig writes a kubeconfig for a cluster. If token is "", the kubeconfig has no token.
func writeKubeconfig(t *testing.T, cluster clientcmdapi.Cluster, token string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.AuthInfos["u"] = &cluster, &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, path))
	return path
}
