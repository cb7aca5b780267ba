package e2e

import (
	"context"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// audited is a proxy that sends all requests to the API server as one service account, and records the requests.
type audited struct {
	kubeconfig string
	address    string // host:port of the proxy, with TLS
	authority  []byte // PEM of the proxy's certificate
	token      string // the account's token
	mu         sync.Mutex
	used       map[string]bool // "verb resource.group"
	refused    map[string]bool
	writes     []string // method and path of writes
	changes    map[change]bool
}

// change is a write request, or a dry run of a write.
type change struct{ method, resource, user string } // user: the impersonated account; "" for the account itself

// audit starts a proxy that gives its clients only the rights of the given service account.
func audit(t *testing.T, w *world, account, namespace string) *audited {
	t.Helper()
	w.namespaces = nil // an installation uses the whole cluster
	own := rest.AnonymousClientConfig(w.cluster.Config)
	own.BearerToken = tokenOf(t, w.cluster, namespace, account)
	transport, err := rest.TransportFor(own)
	must(t, err)
	target, err := url.Parse(w.cluster.Config.Host)
	must(t, err)
	a := &audited{token: own.BearerToken, used: map[string]bool{}, refused: map[string]bool{}, changes: map[change]bool{}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ModifyResponse = func(r *http.Response) error { a.note(r); return nil }
	server := httptest.NewTLSServer(proxy)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	a.address = server.Listener.Addr().String()
	a.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	a.kubeconfig = writeKubeconfig(t, clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: a.authority}, "")
	return a
}

var apiPath = regexp.MustCompile(`^/(?:api/v1|apis/([^/]+)/[^/]+)(?:/namespaces/[^/]+)?/([a-z]+)(/[^/]+)?$`)

// note records the verb and the resource of a request as RBAC names them.
func (a *audited) note(r *http.Response) {
	path := r.Request.URL.Path
	if r.Request.Method != http.MethodGet && r.Request.URL.Query().Get("dryRun") == "" {
		a.mu.Lock()
		a.writes = append(a.writes, r.Request.Method+" "+path)
		a.mu.Unlock()
	}
	m := apiPath.FindStringSubmatch(path)
	if regexp.MustCompile(`^/api/v1/namespaces/[^/]+$`).MatchString(path) {
		m = []string{"", "", "namespaces", "/name"}
	}
	if m == nil {
		return // discovery
	}
	verb := map[string]string{"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[r.Request.Method]
	if verb == "get" && m[3] == "" {
		if verb = "list"; r.Request.URL.Query().Get("watch") != "" {
			verb = "watch"
		}
	}
	what := verb + " " + m[2] + "." + m[1]
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Request.Method != http.MethodGet {
		how := r.Request.Method
		if r.Request.URL.Query().Get("dryRun") != "" {
			how += " dry run"
		}
		a.changes[change{how, m[2], r.Request.Header.Get("Impersonate-User")}] = true
	}
	if a.used[what] = true; r.StatusCode == http.StatusForbidden {
		a.refused[what] = true
	}
	// With API servers before 1.34, the client lists objects instead of watching with initial events. So the roles must also allow list.
	if verb == "watch" && r.Request.URL.Query().Get("sendInitialEvents") != "" {
		a.used["list "+m[2]+"."+m[1]] = true
	}
	if verb == "patch" && r.StatusCode == http.StatusCreated { // applying a missing object needs the rights patch and create
		a.used["create "+m[2]+"."+m[1]] = true
	}
}

// manifest parses the first YAML document of a file in deploy/kubernetes.
func manifest(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(deployDir, "kubernetes", name))
	if first, _, several := strings.Cut(string(data), "\n---\n"); several {
		data = []byte(first)
	}
	if err == nil {
		err = yaml.UnmarshalStrict(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// routed returns the test app with a canary strategy that routes requests through a second Ingress.
func routed(version string) shop {
	fields := "stableService: shop\ncanaryService: shop-preview\ntrafficRouting: {nginx: {stableIngress: shop}}"
	return shop{version: version, replicas: "replicas: 2", strategy: canary(fields, "setWeight: 50", "pause: {}")}
}

// everyKind returns the files of an app with at least one object of each kind that the role for apps lists.
func everyKind() map[string]string {
	files := routed("v1").files()
	files["ingress.yaml"] = shopIngress["ingress.yaml"]
	files["more.yaml"] = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: hunter2}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: more}
spec: {selector: {app: shop}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  replicas: 1
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec: {containers: [{name: worker, image: "worker:v1"}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: worker}
spec: {minReplicas: 1, maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: worker}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: shop}
spec: {podSelector: {}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: shop}}}
`
	files["kustomization.yaml"] = "resources: [shop.yaml, rollout.yaml, services.yaml, ingress.yaml, more.yaml]\n"
	return files
}

// TestRightsAreEnoughAndNotMore runs gitrollout as the manifests' service account. gitrollout adopts objects, releases
// and promotes a version, and prunes objects. The roles must allow exactly the requests that gitrollout sends.
func TestRightsAreEnoughAndNotMore(t *testing.T) {
	t.Parallel()
	files := everyKind()
	w := newWorld(t, files)
	w.installRights()
	a := audit(t, w, "gitrollout", w.ns)

	w.apply(files["more.yaml"]) // gitrollout adopts these objects, and creates the others
	first, second := freeAddress(t), freeAddress(t)
	w.startAs(a.kubeconfig, first)
	w.twin().startAs(a.kubeconfig, second)
	w.awaitHealthy(w.repo.Head())
	w.useEveryRight("HorizontalPodAutoscaler", "Secret")

	// Both replicas are ready, and only one leads.
	leading := 0
	for _, address := range []string{first, second} {
		if code, body := getPage(t, "http://"+address+"/readyz"); code != 200 {
			t.Errorf("a replica is not ready: %d %s", code, body)
		}
		_, body := getPage(t, "http://"+address+"/metrics")
		leading += strings.Count(body, "\ngitrollout_leading 1\n")
	}
	compare.CheckNamed(t, "leading replicas", 1, leading)

	roles := map[string][]rbacv1.PolicyRule{}
	for _, file := range []string{"loop-role.yaml", "apps-role.yaml", secretsRole, leaseRole} {
		var role rbacv1.ClusterRole // or a Role, which has the same rules
		manifest(t, file, &role)
		roles[file] = role.Rules
	}
	a.compare(t, roles)
}

// useEveryRight releases and promotes a new version of an everyKind app. Then it removes the objects of more.yaml from Git, waits until the
// given kinds are pruned, and restores the objects.
func (w *world) useEveryRight(kinds ...string) {
	w.t.Helper()
	kinds = append(kinds, "NetworkPolicy") // unlike an autoscaler, a NetworkPolicy is pruned only after the release
	has := func(s rollout.State) bool {
		return slices.ContainsFunc(s.Inventory, func(r rollout.Ref) bool { return slices.Contains(kinds, r.Kind) })
	}
	w.release("v2", map[string]string{"shop.yaml": routed("v2").files()["shop.yaml"]})
	w.push("without the rest", map[string]string{"kustomization.yaml": "resources: [shop.yaml, rollout.yaml, services.yaml, ingress.yaml]\n"})
	w.await("pruned", func(s rollout.State) bool { return !has(s) })
	w.push("back", map[string]string{"kustomization.yaml": "resources: [shop.yaml, rollout.yaml, services.yaml, ingress.yaml, more.yaml]\n"})
	w.await("applied again", has)
}

// compare checks that the roles allow exactly the recorded requests.
func (a *audited) compare(t *testing.T, roles map[string][]rbacv1.PolicyRule) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for what := range a.refused {
		t.Errorf("the roles do not allow: %s", what)
	}
	for name, rules := range roles {
		ofApps := strings.Contains(name, "apps") || name == secretsRole // get is used only in races with other writers
		for _, right := range rightsOf(rules) {
			if !a.used[right] && !(ofApps && strings.HasPrefix(right, "get ")) {
				t.Errorf("%s allows an unneeded right: %s", name, right)
			}
		}
	}
}

// rightsOf returns the rights of rules in the form of audited.used.
func rightsOf(rules []rbacv1.PolicyRule) (rights []string) {
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				rights = append(rights, verb+" "+resource+"."+rule.APIGroups[0])
			}
		}
	}
	return rights
}

// installRights creates the roles of the manifests, and binds them to a service account gitrollout in the test's namespace.
func (w *world) installRights() {
	w.t.Helper()
	for _, file := range []string{"loop-role.yaml", "apps-role.yaml", secretsRole} {
		name := w.createClusterRole(file).Name
		w.kubectl("create", "clusterrolebinding", name, "--clusterrole="+name, "--serviceaccount="+w.ns+":gitrollout")
	}
	var role rbacv1.Role
	manifest(w.t, leaseRole, &role)
	role.Namespace = w.ns
	_, err := w.cluster.Kube.RbacV1().Roles(w.ns).Create(context.Background(), &role, metav1.CreateOptions{})
	must(w.t, err)
	w.kubectl("create", "rolebinding", role.Name, "--role="+role.Name, "--serviceaccount="+w.ns+":gitrollout")
	w.kubectl("create", "serviceaccount", "gitrollout")
}

// createClusterRole creates the ClusterRole of a manifest, with the test's namespace in its name.
func (w *world) createClusterRole(file string) (role rbacv1.ClusterRole) {
	w.t.Helper()
	manifest(w.t, file, &role)
	role.Name += "-" + w.ns
	_, err := w.cluster.Kube.RbacV1().ClusterRoles().Create(context.Background(), &role, metav1.CreateOptions{})
	must(w.t, err)
	return role
}

// useAccount configures a service account for the app, binds a ClusterRole to the app's account, and lets gitrollout's account impersonate
// the app's account.
func (w *world) useAccount(account, role string) {
	w.t.Helper()
	w.configure("  serviceAccount: " + account + "\n")
	w.kubectl("create", "serviceaccount", account)
	w.kubectl("create", "rolebinding", account, "--clusterrole="+role, "--serviceaccount="+w.ns+":"+account)
	w.kubectl("create", "role", "as", "--verb=impersonate", "--resource=serviceaccounts", "--resource-name="+account)
	w.kubectl("create", "rolebinding", "as", "--role=as", "--serviceaccount="+w.ns+":gitrollout")
}

// startWithoutEvictions runs gitrollout with the rights for a kind of workload, but without the right to delete pods.
func (w *world) startWithoutEvictions(kind string) *world {
	w.t.Helper()
	w.installRights()
	w.kubectl("create", "role", "sets", "--verb=get,list,watch,create,patch,delete", "--resource="+kind)
	w.kubectl("create", "rolebinding", "sets", "--role=sets", "--serviceaccount="+w.ns+":gitrollout")
	return w.start("--kubeconfig", audit(w.t, w, "gitrollout", w.ns).kubeconfig)
}

// These files have the additional rights for leader election, and for apps with Secrets.
const (
	leaseRole   = "replicas/lease-role.yaml"
	secretsRole = "secrets/role.yaml"
)

// startAs starts a replica with leader election, with the given kubeconfig and metrics address.
func (w *world) startAs(kubeconfig, address string) {
	w.start("--kubeconfig", kubeconfig, "--metrics-address", address, "--leader-elect", "--leader-elect-namespace", w.ns)
}

// TestManifests dry-runs the installation on the API server, with and without components, and passes the Deployment's arguments to
// gitrollout run.
func TestManifests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop{version: "v1", strategy: canary("", "setWeight: 50")}.files())
	for name, components := range map[string]string{"plain": "", "replicas": "components: [base/replicas]\n",
		"admission": "components: [base/admission]\n", "secrets": "components: [base/secrets]\n",
	} {
		// A dry run needs an existing namespace, so the test sets its own namespace.
		rendered := kustomized(t, components+"namespace: "+w.ns+"\n")
		out := w.kubectl("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", tempFile(t, "all.yaml", rendered))
		compare.Contains(t, out, "deployment.apps/gitrollout", "service/gitrollout", "clusterrole.rbac.authorization.k8s.io/gitrollout-apps",
			"networkpolicy.networking.k8s.io/gitrollout", "poddisruptionbudget.policy/gitrollout")
		if elects := strings.Contains(rendered, "--leader-elect") &&
			strings.Contains(out, "role.rbac.authorization.k8s.io/gitrollout-lease"); elects != (name == "replicas") {
			t.Errorf("%s: an election and its rights: %v\n%s", name, elects, rendered)
		}
		checkArgs(t, rendered)
	}
	compare.Contains(t, w.kubectl("kustomize", filepath.Join(deployDir, "kubernetes", "podmonitor")), "port: metrics")
}

// kustomized builds a kustomization with the given lines and the resource base, which is a copy of deploy/kubernetes.
func kustomized(t *testing.T, lines string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "base"), os.DirFS(filepath.Join(deployDir, "kubernetes"))))
	must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [base]\n"+lines), 0o600))
	return output(t, exec.Command(kubectl, "kustomize", dir))
}

// checkArgs passes the rendered Deployment's arguments to gitrollout, which validates them.
func checkArgs(t *testing.T, rendered string) {
	t.Helper()
	var args []string
	for _, m := range regexp.MustCompile(`(?m)^ +- (run|--[a-z-]+(?:=\S+)?)$`).FindAllStringSubmatch(rendered, -1) {
		args = append(args, m[1])
	}
	if len(args) < 3 || args[0] != "run" {
		t.Fatalf("the Deployment's arguments are %q: are they read right?", args)
	}
	path, err := binary()
	must(t, err)
	output(t, exec.Command(path, append(args, "--help")...))
}

// TestManifestsAreHardened checks that, in a namespace with the manifests' labels, the API server admits gitrollout's pod and refuses a pod
// with hostNetwork. The pod's environment has no credentials, and the NetworkPolicy and the PodDisruptionBudget select this pod.
func TestManifestsAreHardened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop{version: "v1", strategy: canary("", "setWeight: 50")}.files())
	var namespace corev1.Namespace
	var deployment appsv1.Deployment
	var network networkingv1.NetworkPolicy
	var budget policyv1.PodDisruptionBudget
	manifest(t, "namespace.yaml", &namespace)
	manifest(t, "deployment.yaml", &deployment)
	manifest(t, "networkpolicy.yaml", &network)
	manifest(t, "disruption.yaml", &budget)
	for label, value := range namespace.Labels {
		w.kubectl("label", "namespace", w.ns, label+"="+value)
	}
	w.kubectl("create", "serviceaccount", "gitrollout")
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "gitrollout-"}, Spec: deployment.Spec.Template.Spec}
	admits := func(p corev1.Pod) error {
		_, err := w.cluster.Kube.CoreV1().Pods(w.ns).Create(t.Context(), &p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := admits(pod); err != nil {
		t.Errorf("gitrollout's own pod: %v", err)
	}
	other := *pod.DeepCopy()
	other.Spec.HostNetwork = true
	if err := admits(other); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a pod in the node's network: %v", err)
	}
	c := pod.Spec.Containers[0]
	for _, v := range c.Env {
		if v.ValueFrom != nil && v.Name != "GITROLLOUT_REPO" && v.Name != "GITROLLOUT_CLUSTER" {
			t.Errorf("%s is in the environment", v.Name)
		}
		if v.Name == "GITROLLOUT_GIT_TOKEN_FILE" && (len(c.VolumeMounts) != 1 || !strings.HasPrefix(v.Value, c.VolumeMounts[0].MountPath+"/")) {
			t.Errorf("%s is not below the mount: %+v", v.Value, c.VolumeMounts)
		}
	}
	if c.Resources.Limits.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("its limits are %v", c.Resources.Limits)
	}
	labels := deployment.Spec.Template.Labels
	if !maps.Equal(network.Spec.PodSelector.MatchLabels, labels) || !maps.Equal(budget.Spec.Selector.MatchLabels, labels) {
		t.Errorf("the policies are about %v and %v, the pod is %v", network.Spec.PodSelector, budget.Spec.Selector, labels)
	}
	if in := network.Spec.Ingress; len(in) != 1 || len(in[0].Ports) != 1 || in[0].Ports[0].Port.String() != c.Ports[0].Name ||
		len(network.Spec.PolicyTypes) != 2 {
		t.Errorf("the policy lets in %+v, the pod has %+v", in, c.Ports)
	}
}
