package e2e

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/testbin"
	"gitrollout.dev/gitrollout/rollout"
)

// chartDir is the chart's source. Each release of gitrollout sets the chart's version and image.
const chartDir = "../../deploy/chart"

// helmProgram returns the path of the helm program, and builds it if necessary.
var helmProgram = sync.OnceValues(func() (string, error) {
	return testbin.Ensure("helm", "about three minutes")
})

// helm runs Helm without user settings. It ends the test if Helm fails.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := tryHelm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func tryHelm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := helmProgram()
	must(t, err)
	home := t.TempDir()
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	return string(out) + complaint.String(), err
}

// byName returns the objects of a YAML stream by kind and name. It omits the Namespace object, because the chart has none.
func byName(t *testing.T, text string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, one := range strings.Split("\n"+text, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(one), &object); err != nil {
			t.Fatalf("%v in\n%s", err, one)
		}
		if object == nil || object["kind"] == "Namespace" {
			continue
		}
		// kustomize sets a namespace, because it does not know that these kinds are cluster-scoped.
		if strings.HasPrefix(object["kind"].(string), "ValidatingAdmission") {
			delete(object["metadata"].(map[string]any), "namespace")
		}
		name := object["kind"].(string) + " " + object["metadata"].(map[string]any)["name"].(string)
		if all[name] != nil {
			t.Errorf("there are two of %s", name)
		}
		all[name] = object
	}
	return all
}

// TestChartIsTheManifests checks that the Helm chart and the kustomization in deploy/kubernetes produce the same objects, without
// components and with each component. It also compares the chart of a release with the release's install.yaml.
func TestChartIsTheManifests(t *testing.T) {
	t.Parallel()
	for component, values := range map[string][]string{
		"": nil, "replicas": {"--set", "replicas=2"}, "podmonitor": {"--set", "metrics.podMonitor=true"},
		"secrets": {"--set", "rbac.secrets=true"}, "evict": {"--set", "rbac.evict=true"}, "hooks": {"--set", "rbac.hooks=true"},
		"admission":  {"--set", "admissionPolicy.enabled=true"},
		"namespaces": {"--set", "namespaces={shop}"},
	} {
		made := helm(t, append([]string{"template", "gitrollout", chartDir, "-n", "gitrollout"}, values...)...)
		components := ""
		if component != "" {
			components = "components: [base/" + component + "]\n"
		}
		want := byName(t, kustomized(t, components))
		if diff := compare.Diff(want, byName(t, made)); diff != "" || len(want) < 9 {
			t.Errorf("component %q: of %d objects differ (-kustomize +helm):\n%s", component, len(want), diff)
		}
	}
	compare.CheckNamed(t, "a release's install.yaml, and its chart",
		byName(t, readText(t, filepath.Join(releaseOf(t), "install.yaml"))),
		byName(t, helm(t, "template", "gitrollout", releasedChart(t), "-n", "gitrollout")))
}

func releasedChart(t *testing.T) string {
	t.Helper()
	return filepath.Join(releaseOf(t), "gitrollout-"+strings.TrimPrefix(releasedVersion, "v")+".tgz")
}

// everyValue sets all values of the chart except metrics: the test cluster has no CRDs of the Prometheus operator.
const everyValue = `
replicas: 2
branch: trunk
clusters: [{name: eu}, {name: us, kubeconfigSecret: us}]
image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", pullPolicy: Always}
forge: {existingSecret: forge}
signing: {existingSecret: signing}
policy: {existingConfigMap: policy}
dashboard: {enabled: true, ingress: {host: rollouts.example.com, className: nginx, tlsSecret: tls, annotations: {a: b}}}
webhook: {enabled: true, existingSecret: webhook, ingress: {host: hooks.example.com}}
admissionPolicy: {enabled: true, actions: [Warn, Audit], writers: [{kind: Group, name: break-glass, apiGroup: rbac.authorization.k8s.io}]}
namespaces: [NS]
rbac: {secrets: true, evict: true, hooks: true}
serviceAccount: {name: robot, annotations: {a: b}}
extraArgs: [--log-level=debug]
extraVolumes: [{name: more, emptyDir: {}}]
extraVolumeMounts: [{name: more, mountPath: /more}]
`

// TestChart runs helm lint, checks that the chart refuses invalid values, and dry-runs the chart with everyValue.
func TestChart(t *testing.T) {
	t.Parallel()
	for _, chart := range []string{chartDir, releasedChart(t)} {
		helm(t, "lint", "--strict", chart)
	}
	for _, wrong := range []string{"image.tga=x", "replicas=two", "clusters[0].kubeconfigSecret=x", "webhook.enabled=true",
		"dashboard.enabled=true",
		"git.existingSecret=", "git.existingSecret=null", "rbac.apps=null", "image.repository=", "cluster=../x", "cluster=a b",
		"clusters[0].name=a,clusters[1].name=a", "admissionPolicy.actions={}", "admissionPolicy.actions={Refuse}"} {
		if out, err := tryHelm(t, "template", "gitrollout", chartDir, "--set", wrong); err == nil {
			t.Errorf("--set %s makes\n%s", wrong, out)
		}
	}
	w := newWorld(t, shop{version: "v1", strategy: canary("", "setWeight: 50")}.files())
	values := tempFile(t, "values.yaml", strings.ReplaceAll(everyValue, "NS", w.ns))
	made := helm(t, "template", "team", chartDir, "-n", w.ns, "-f", values)
	w.kubectl("label", "namespace", w.ns, "pod-security.kubernetes.io/warn=restricted")
	out := w.kubectl("apply", "--server-side", "--dry-run=server", "-f", tempFile(t, "all.yaml", made))
	if strings.Contains(out, "Warning") {
		t.Errorf("the API server warns:\n%s", out)
	}
	compare.Contains(t, out, "deployment.apps/team-gitrollout-eu", "deployment.apps/team-gitrollout-us",
		"ingress.networking.k8s.io/team-gitrollout-dashboard",
		"ingress.networking.k8s.io/team-gitrollout-webhook", "serviceaccount/robot", "role.rbac.authorization.k8s.io/team-gitrollout-loop",
		"validatingadmissionpolicybinding.admissionregistration.k8s.io/team-gitrollout-held")
	for name, object := range byName(t, made) {
		if strings.HasPrefix(name, "Deployment ") {
			text, err := yaml.Marshal(object)
			must(t, err)
			checkArgs(t, string(text))
		}
	}
}

// TestInstallChart installs the chart as docs/install.md says, beside another installation, and releases an app. An
// upgrade of gitrollout during a release starts and stops no pod of the app.
func TestInstallChart(t *testing.T) {
	t.Parallel()
	next := filepath.Join(t.TempDir(), "dist")
	must(t, makeRelease("../..", next, "-version", nextVersion, "-key", ""))
	in := installation{namespace: "gitrollout-by-chart", chart: releasedChart(t),
		roles: []string{"second-gitrollout-loop", "second-gitrollout-apps"}}
	w, before := install(t, in)
	commit := w.stage("v3", map[string]string{"shop.yaml": routed("v3").files()["shop.yaml"]})
	var rest sample
	w.awaitPods("no pod coming or going", func(s sample) bool {
		rest = s
		return maps.Equal(rest.all, rest.ready)
	})
	begun := w.pods.mark()
	w.helm("upgrade", "second", filepath.Join(next, "gitrollout-"+strings.TrimPrefix(nextVersion, "v")+".tgz"), "-n", in.namespace,
		"--reuse-values", "--set", "extraArgs[0]=--log-level=debug")
	w.until("another pod of gitrollout", func() bool { return awaitPod(t, w, in.namespace).UID != before.pod.UID })
	w.stop()
	after := newKubelet(t, w, in.namespace, readImage(t, filepath.Join(next, "image-"+nextVersion+".tar")))
	if !slices.Contains(after.args, "--log-level=debug") {
		t.Errorf("the new pod has the arguments %q", after.args)
	}
	w.inside, w.env = after.container, after.env
	w.startExactly(after.args...)
	w.pods.stays(t, 3*time.Second)
	for _, s := range w.pods.since(begun) {
		if !maps.Equal(s.all, rest.all) || !maps.Equal(s.ready, rest.ready) {
			t.Errorf("during the upgrade the pods were %v, ready %v, and before %v", s.all, s.ready, rest.all)
		}
	}
	compare.CheckNamed(t, "the phase", rollout.Paused, w.state().Phase)
	body := ""
	eventually(t, "the metrics of the new version, once it has read the cluster", func() bool {
		_, body = getPage(t, "http://"+after.metrics+"/metrics")
		return strings.Contains(body, `version="`+nextVersion+`"`)
	}, func() any { return body })
	w.promote().awaitHealthy(commit)
}
