package e2e

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// protect installs the kustomize component `admission`, and limits its policy to the test's namespace.
func (w *world) protect() {
	w.t.Helper()
	var ours []string
	for _, document := range strings.Split(kustomized(w.t, "namespace: "+w.ns+"\ncomponents: [base/admission]\n"), "\n---\n") {
		if !strings.Contains(document, "gitrollout-held") {
			continue
		}
		document = strings.ReplaceAll(document, "gitrollout-held", "gitrollout-held-"+w.ns)
		if strings.Contains(document, "kind: ValidatingAdmissionPolicyBinding") { // spec is the document's last field
			document = strings.TrimSpace(document) +
				"\n  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " + w.ns + "}}}\n"
		}
		ours = append(ours, document)
	}
	w.applyForTest(strings.Join(ours, "\n---\n"))
}

// applyForTest applies manifests, and deletes their objects after the test.
func (w *world) applyForTest(manifests string) {
	w.t.Helper()
	file := tempFile(w.t, "manifests.yaml", manifests)
	w.t.Cleanup(func() { _, _ = w.tryKubectl("delete", "--wait=false", "-f", file) })
	w.kubectl("apply", "-f", file)
}

// TestHeldIsProtected checks the component `admission`. During a release, only gitrollout's account can change the Deployment fields that
// gitrollout stages. The error for other accounts names the release and the command to inspect the release. Scaling, the Deployment
// controller, the release, its rollback, and the deletion of the namespace still work.
func TestHeldIsProtected(t *testing.T) {
	t.Parallel()
	app := shop{version: "v1", strategy: canary("", "setWeight: 50", "pause: {}")}
	w := newWorld(t, app.files())
	w.installRights()
	w.protect()
	w.startAs(audit(t, w, "gitrollout", w.ns).kubeconfig, freeAddress(t))
	w.awaitHealthy(w.repo.Head())
	w.kubectl("scale", "deployment/shop", "--replicas=2")
	w.stage("v2", app.at("v2").files())
	w.pods.awaitReady(t, map[string]int{"v1": 1, "v2": 1})
	w.awaitRefusal("set", "image", "deployment/shop", "shop=shop:byhand", "--dry-run=server")

	before := w.deployment()
	for name, args := range map[string][]string{
		"set image":       {"set", "image", "deployment/shop", "shop=shop:byhand"},
		"rollout undo":    {"rollout", "undo", "deployment/shop"},
		"rollout restart": {"rollout", "restart", "deployment/shop"},
		"rollout pause":   {"rollout", "pause", "deployment/shop"},
		"delete":          {"delete", "deployment/shop", "--wait=false"},
		"a strategy":      {"patch", "deployment/shop", "-p", `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":7}}}}`},
		"a thaw":          {"patch", "deployment/shop", "-p", `{"spec":{"minReadySeconds":0}}`},
		"an escape":       {"annotate", "deployment/shop", rollout.AnnotationStatus + "-"},
		"another owner":   {"annotate", "deployment/shop", "--overwrite", rollout.AnnotationCluster + "=x"},
		"another excuse":  {"annotate", "deployment/shop", "--overwrite", rollout.AnnotationStatus + "=x"},
	} {
		out, err := w.tryKubectl(args...)
		if err == nil || !strings.Contains(out, "held between the steps of release ") || !strings.Contains(out, "see: gitrollout get "+w.app) {
			t.Errorf("%s: %v, and it says %q", name, err, out)
		}
	}
	if after := w.deployment(); after.Generation != before.Generation || after.UID != before.UID {
		t.Errorf("generation %d, was %d: something was written", after.Generation, before.Generation)
	}

	w.kubectl("annotate", "deployment/shop", "example.com/note=kept")
	w.kubectl("label", "deployment/shop", "team=shop")
	w.kubectl("autoscale", "deployment/shop", "--min=4", "--max=6", "--cpu=80%")
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 2})
	w.kubectl("delete", "hpa/shop")
	w.kubectl("scale", "deployment/shop", "--replicas=2")
	w.pods.awaitReady(t, map[string]int{"v1": 1, "v2": 1})

	w.promote().awaitHealthy(w.state().Release.Commit)
	w.pods.awaitReady(t, map[string]int{"v2": 2})
	w.kubectl("rollout", "restart", "deployment/shop") // between releases no field is protected
	third := w.stage("v3", app.at("v3").files())
	w.pods.awaitReady(t, map[string]int{"v2": 1, "v3": 1})
	w.awaitRefusal("set", "image", "deployment/shop", "shop=shop:byhand", "--dry-run=server")
	w.revert(third)
	w.pods.awaitReady(t, map[string]int{"v2": 2})

	// A user may write if the ClusterRoleBinding gitrollout-held lists one of the user's groups.
	w.stage("v4", app.at("v4").files())
	w.kubectl("patch", "clusterrolebinding/gitrollout-held-"+w.ns, "--type=json", "-p",
		`[{"op":"add","path":"/subjects/-","value":{"kind":"Group","name":"break-glass","apiGroup":"rbac.authorization.k8s.io"}}]`)
	w.awaitNoRefusal("patch", "deployment/shop", "-p", `{"spec":{"paused":true}}`, "--dry-run=server",
		"--as=ann", "--as-group=system:masters", "--as-group=break-glass")
	w.stop()

	// A user must not delete the Deployment. Kubernetes' controllers may, because they delete namespaces. The test impersonates these
	// controllers. It deletes no namespace, because Kubernetes would first delete the namespaces of all finished tests.
	w.awaitRefusal("delete", "deployment/shop", "--dry-run=server")
	for _, controller := range []string{
		"system:kube-controller-manager", "system:serviceaccount:kube-system:namespace-controller",
		"system:serviceaccount:kube-system:generic-garbage-collector",
	} {
		w.awaitNoRefusal("delete", "deployment/shop", "--dry-run=server", "--as="+controller, "--as-group=system:masters")
	}
}

// TestHeldByTwo installs the chart's admission policy twice in one cluster. Each installation's account can write its
// own Deployments, but not the other installation's Deployments.
func TestHeldByTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop{version: "v1", strategy: canary("", "setWeight: 50")}.files())
	held := func(cluster string) string {
		return fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": %q, "annotations": {%q: "held", %q: %q}},
			"spec": {"replicas": 0, "selector": {"matchLabels": {"a": %[1]q}}, "template": {"metadata": {"labels": {"a": %[1]q}},
			"spec": {"containers": [{"name": "a", "image": "a:v1"}]}}}}`, cluster, rollout.AnnotationStatus, rollout.AnnotationCluster, cluster)
	}
	clusters, releases := []string{w.ns + "-eu", w.ns + "-us"}, []string{"held-eu", "held-us"}
	for i, cluster := range clusters {
		made := helm(t, "template", releases[i], chartDir, "-n", w.ns, "--set", "admissionPolicy.enabled=true,cluster="+cluster)
		var ours []string
		for _, document := range strings.Split(made, "\n---\n") {
			if strings.Contains(document, "templates/admission.yaml") {
				ours = append(ours, document)
			}
		}
		w.applyForTest(strings.Join(append(ours, held(cluster)), "\n---\n"))
	}
	write := func(held, as string) []string {
		return []string{"set", "image", "deployment/" + held, "a=a:v2", "--dry-run=server", "--as-group=system:masters",
			"--as=system:serviceaccount:" + w.ns + ":" + as + "-gitrollout"}
	}
	for i, own := range clusters {
		w.awaitRefusal(write(own, releases[1-i])...)
	}
	for i, own := range clusters {
		if out, err := w.tryKubectl(write(own, releases[i])...); err != nil {
			t.Errorf("%s is kept from its own object: %v: %s", own, err, out)
		}
	}
}

func (w *world) awaitRefusal(args ...string) {
	w.t.Helper()
	w.awaitAnswer("refused", func(err error) bool { return err != nil }, args)
}

func (w *world) awaitNoRefusal(args ...string) {
	w.t.Helper()
	w.awaitAnswer("taken", func(err error) bool { return err == nil }, args)
}

func (w *world) awaitAnswer(what string, ok func(error) bool, args []string) {
	w.t.Helper()
	var out string
	eventually(w.t, fmt.Sprint(what, ": ", args), func() bool {
		var err error
		out, err = w.tryKubectl(args...)
		return ok(err)
	}, func() any { return out })
}
