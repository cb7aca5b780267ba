package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// withReplicas is the app's manifest before spec.replicas leaves Git for an autoscaler.
var withReplicas = strings.Replace(withoutReplicas, "spec:\n", "spec:\n  replicas: 4\n", 1)

func TestReplicasAreHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("shop", withReplicas)
	w.complete("shop", "shop")
	w.wantWrites(2, "giving up replicas", func() { w.apply("shop", withoutReplicas) })
	w.wantReplicas("when Git stops naming them", 4)
	w.wantWrites(0, "the next apply", func() { w.apply("shop", withoutReplicas) })
	w.scale("shop", 3)
	w.until("the scaling being seen", func() (bool, string) { return w.observe("shop", "shop").Replicas == 3, "" })
	w.wantWrites(0, "an apply after scaling", func() { w.apply("shop", withoutReplicas) })
	w.apply("shop", withReplicas)
	w.wantReplicas("though Git names 4 again", 4)
	w.apply("shop", withoutReplicas)
	w.wantReplicas("the second time", 4)
}

func TestReplicasAreHandedOverAfterARace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("shop", withReplicas)
	// The autoscaler's 7 replicas must stay, even if the watch does not show the autoscaler's write yet.
	w.scale("shop", 7)
	w.apply("shop", withoutReplicas)
	w.wantReplicas("after the autoscaler's write", 7)
}

func (w *world) wantReplicas(when string, want int32) {
	w.t.Helper()
	if got := *w.deployment("shop").Spec.Replicas; got != want {
		w.t.Errorf("%s there are %d replicas, want %d", when, got, want)
	}
}

func (w *world) scale(name string, replicas int32) {
	w.t.Helper()
	_, err := w.cluster.Kube.AppsV1().Deployments(w.ns).UpdateScale(context.Background(), name, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
	}, metav1.UpdateOptions{FieldManager: "kube-controller-manager"})
	must(w.t, err)
}

// kubectl runs the real kubectl, because adoption depends on the managed fields that kubectl writes.
func (w *world) kubectl(stdin string, args ...string) {
	w.t.Helper()
	command := exec.Command(testcluster.Kubectl(w.t), append([]string{"--kubeconfig", w.cluster.Kubeconfig, "-n", w.ns}, args...)...)
	command.Stdin = strings.NewReader(strings.ReplaceAll(stdin, "NS", w.ns))
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		w.t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out.String())
	}
}

// adopted is the manifest in Git for a Deployment that another program has already created in the cluster.
const adopted = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: NS, labels: {team: a, tier: web}}
spec:
  replicas: 2
  minReadySeconds: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - {name: shop, image: "shop:v1", ports: [{containerPort: 8080}], env: [{name: A, value: a}, {name: B, value: b}]}
      - {name: log, image: "log:v1"}
`

func TestAdoptionRestartsNoPodAndRemovesLater(t *testing.T) {
	makers := map[string][]string{ // arguments of kubectl
		"kubectl apply":                     {"apply"},
		"kubectl apply --server-side":       {"apply --server-side"},
		"kubectl create":                    {"create"},
		"kubectl create, then apply":        {"create", "apply"},
		"helm 3":                            {"create --field-manager=helm"},
		"helm 4":                            {"apply --server-side --field-manager=helm"},
		"argo cd":                           {"apply --field-manager=argocd-controller"},
		"argo cd, server-side":              {"apply --server-side --field-manager=argocd-controller"},
		"argo cd, replace":                  {"create --field-manager=argocd-controller"},
		"flux kustomize-controller":         {"apply --server-side --field-manager=kustomize-controller"},
		"flux helm-controller":              {"create --field-manager=helm-controller"},
		"flux helm-controller, server-side": {"apply --server-side --field-manager=helm-controller"},
		"another program":                   {"create --field-manager=provisioner"},
		"another program, server-side":      {"apply --server-side --field-manager=provisioner"},
	}
	for name, calls := range makers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, call := range calls {
				w.kubectl(adopted, append(strings.Fields(call), "-f", "-")...)
			}
			w.kubectl("", "rollout", "restart", "deployment/shop")
			w.kubectl("", "rollout", "status", "deployment/shop", "--timeout=60s")
			before := w.complete("shop", "shop")
			if before.Hash != "" {
				t.Errorf("hash %q on a Deployment that was never applied", before.Hash)
			}
			w.wantSame(adopted, true)
			w.apply("shop", adopted)
			w.wantWrites(0, "the apply after the adoption", func() { w.apply("shop", adopted) })
			after := w.complete("shop", "shop")
			if a, b := before.Revisions[0], after.Revisions[0]; len(after.Revisions) != len(before.Revisions) || a.Name != b.Name ||
				a.Members[0].Name != b.Members[0].Name {
				t.Errorf("adoption restarted pods: %+v, then %+v", before.Revisions, after.Revisions)
			}
			w.restart()
			w.wantWrites(0, "a new process after the adoption", func() { w.apply("shop", adopted) })

			// After the adoption, fields and containers that leave Git are removed from the cluster.
			smaller := strings.NewReplacer(", tier: web", "", ", {name: B, value: b}", "", "      - {name: log, image: \"log:v1\"}\n", "",
				"  minReadySeconds: 1\n", "").Replace(adopted)
			w.wantSame(smaller, false)
			w.apply("shop", smaller)
			d := w.deployment("shop")
			containers := d.Spec.Template.Spec.Containers
			if d.Labels["tier"] != "" || len(containers) != 1 || len(containers[0].Env) != 1 || d.Spec.MinReadySeconds != 0 {
				t.Errorf("still there: labels %v, minReadySeconds %d, containers %+v", d.Labels, d.Spec.MinReadySeconds, containers)
			}
		})
	}
}

// serverSide returns kubectl's arguments for a server-side apply by the given field manager.
func serverSide(manager string) []string {
	return []string{"apply", "--server-side", "--field-manager=" + manager, "-f", "-"}
}

// TestWhatAToolAddedGoesInOneWrite checks the adoption of an object to which a tool has added fields, such as a
// tracking label. The write that adopts the object also removes these fields, so that pods are replaced only once.
func TestWhatAToolAddedGoesInOneWrite(t *testing.T) {
	extra := strings.NewReplacer("tier: web}", "tier: web, kustomize.toolkit.fluxcd.io/name: shop}",
		"log:v1\"}", "log:v1\"}\n      - {name: mesh, image: \"mesh:v1\"}").Replace(adopted)
	for _, tool := range []string{"kubectl", "helm", "argocd-controller", "kustomize-controller"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.kubectl(extra, serverSide(tool)...)
			w.complete("shop", "shop")
			w.wantSame(extra, true)
			w.wantSame(adopted, false)
			w.apply("shop", strings.Replace(adopted, "shop:v1", "shop:v2", 1))
			d := w.deployment("shop")
			if len(d.Labels) != 4 || len(d.Spec.Template.Spec.Containers) != 2 {
				t.Errorf("still there: labels %v, containers %+v", d.Labels, d.Spec.Template.Spec.Containers)
			}
			for _, entry := range d.ManagedFields {
				if entry.Manager == tool {
					t.Errorf("%s still owns %s", tool, entry.FieldsV1)
				}
			}
			if seen := w.complete("shop", "shop"); len(seen.Revisions) != 2 {
				t.Errorf("the change came in %d parts: %+v", len(seen.Revisions)-1, seen.Revisions)
			}
		})
	}
}

// TestWhatAToolSharesLeavesWithTheNextVersion checks an adopted object with a field that is not in Git. Another tool still owns the field.
// A write without a new version keeps the field, because the removal would replace pods. The next version's write removes it.
func TestWhatAToolSharesLeavesWithTheNextVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := strings.Replace(adopted, "namespace: NS,", "namespace: NS, annotations: {gitrollout.dev/template-hash: h1-one},", 1)
	w.apply("shop", first)
	w.complete("shop", "shop")
	w.kubectl(strings.Replace(adopted, "log:v1\"}", "log:v1\"}\n      - {name: mesh, image: \"mesh:v1\"}", 1),
		serverSide("argocd-controller")...)
	w.until("the pods with the other container", func() (bool, string) { return len(w.observe("shop", "shop").Revisions) == 2, "" })
	before := w.complete("shop", "shop")
	w.restart()
	scaled := strings.Replace(first, "replicas: 2", "replicas: 3", 1)
	w.apply("shop", scaled)
	if after := w.complete("shop", "shop"); len(after.Revisions) != len(before.Revisions) {
		t.Errorf("to scale replaced pods: %+v, then %+v", before.Revisions, after.Revisions)
	}
	w.apply("shop", strings.NewReplacer("h1-one", "h1-two", "shop:v1", "shop:v2").Replace(scaled))
	if containers := w.deployment("shop").Spec.Template.Spec.Containers; len(containers) != 2 {
		t.Errorf("still there: %+v", containers)
	}
}

func (w *world) wantSame(manifest string, want bool) {
	w.t.Helper()
	got, err := w.SameTemplate(context.Background(), w.objects(manifest)[0])
	if err != nil || got != want {
		w.t.Errorf("SameTemplate = %v, %v, want %v", got, err, want)
	}
	server, err := cluster.NewDryRunner(w.cluster.Config)
	if err != nil {
		w.t.Fatal(err)
	}
	runs, same, err := server.Runs(context.Background(), w.objects(manifest)[0])
	if err != nil || !runs || same != want {
		w.t.Errorf("Runs = %v, %v, %v, want true, %v", runs, same, err, want)
	}
}

func TestAdoptionRemovesWhatKubectlAppliedAndGitDoesNotHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	extra := strings.NewReplacer("tier: web}", "tier: web, old: x}", "{name: B, value: b}",
		"{name: B, value: b}, {name: C, value: c}").Replace(adopted)
	w.kubectl(extra, "apply", "-f", "-")
	w.complete("shop", "shop")
	w.wantSame(extra, true)
	w.wantSame(adopted, false)
	w.apply("shop", adopted)
	d := w.deployment("shop")
	if d.Labels["old"] != "" || len(d.Spec.Template.Spec.Containers[0].Env) != 2 {
		t.Errorf("still there: labels %v, env %v", d.Labels, d.Spec.Template.Spec.Containers[0].Env)
	}
	if _, ok := d.Annotations["kubectl.kubernetes.io/last-applied-configuration"]; ok {
		t.Error("kubectl's annotation is still there")
	}
}

// TestAdoptionOutlastsABurstOfWrites adopts a Deployment while other clients write it all the time, as controllers do while pods start.
// Each write outdates the resource version in the adoption's patch.
func TestAdoptionOutlastsABurstOfWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kubectl(withReplicas, "apply", "-f", "-")
	var burst sync.WaitGroup
	for range 2 {
		burst.Go(func() {
			for began := time.Now(); time.Since(began) < 300*time.Millisecond; {
				body := fmt.Appendf(nil, `{"metadata": {"annotations": {"written": "%d"}}}`, time.Now().UnixNano())
				_, _ = w.cluster.Kube.AppsV1().Deployments(w.ns).Patch(t.Context(), "shop", types.MergePatchType, body, metav1.PatchOptions{})
			}
		})
	}
	w.apply("shop", withReplicas)
	burst.Wait()
}

func TestAdoptionKeepsReplicasThatGitLeavesToAnAutoscaler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kubectl(withReplicas, "apply", "-f", "-")
	w.apply("shop", withoutReplicas)
	w.wantReplicas("after the adoption", 4)
}

// held adds the fields with which package strategies stops a Deployment at a step.
func held(manifest string) string {
	return strings.Replace(manifest, "spec:\n", "spec:\n  minReadySeconds: 2147483646\n  progressDeadlineSeconds: 2147483647\n"+
		"  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 20%, maxUnavailable: 0}}\n", 1)
}

func TestStrategyFieldsGoBackToTheirDefaults(t *testing.T) {
	makers := map[string]func(*world){
		"own":            func(w *world) { w.apply("shop", withReplicas) },
		"kubectl apply":  func(w *world) { w.kubectl(withReplicas, "apply", "-f", "-") },
		"kubectl create": func(w *world) { w.kubectl(withReplicas, "create", "-f", "-") },
	}
	for name, create := range makers {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			create(w)
			before := w.deployment("shop").Spec
			w.apply("shop", withReplicas)
			w.apply("shop", held(withReplicas))
			during := w.deployment("shop").Spec
			if during.MinReadySeconds != 2147483646 || *during.ProgressDeadlineSeconds != 2147483647 ||
				during.Strategy.RollingUpdate.MaxSurge.String() != "20%" {
				t.Errorf("held: %+v", during)
			}
			w.apply("shop", withReplicas)
			if after := w.deployment("shop").Spec; !equality.Semantic.DeepEqual(before, after) {
				t.Errorf("before the hold %+v, after it %+v", before, after)
			}
		})
	}
}

func TestServiceSelectorGainsAndLosesThePodHash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plain := coreManifest("Service", "shop", "spec: {selector: {app: shop}, ports: [{port: 80}]}")
	w.kubectl(plain, "apply", "-f", "-")
	pinned := strings.Replace(plain, "{app: shop}", "{app: shop, "+rollout.LabelPodHash+": abc}", 1)
	for range 2 {
		w.apply("shop", pinned)
		if got := w.service("shop").Spec.Selector; len(got) != 2 || got[rollout.LabelPodHash] != "abc" {
			t.Fatalf("pinned selector is %v", got)
		}
		w.apply("shop", plain)
		if got := w.service("shop").Spec.Selector; len(got) != 1 {
			t.Fatalf("selector is %v after the pin is gone", got)
		}
	}
}

// TestDroppedFieldsOfAnotherManagerAreRemoved removes fields from Git that another manager also owns. The list `tools` in adopt.go lacks
// this manager. One write must remove and report the fields. Fields that were never in Git stay.
func TestDroppedFieldsOfAnotherManagerAreRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	extra := strings.NewReplacer("tier: web}", "tier: web, injected: x}", "{name: B, value: b}",
		"{name: B, value: b}, {name: C, value: c}").Replace(adopted)
	w.kubectl(extra, "create", "--field-manager=provisioner", "-f", "-")
	w.apply("shop", adopted)
	w.edit("shop", `{"spec": {"template": {"spec": {"containers": [{"name": "log", "resources": {"limits": {"cpu": "1"}}}]}}}}`)
	w.complete("shop", "shop")
	smaller := strings.NewReplacer(", tier: web", "", ", {name: B, value: b}", "", "      - {name: log, image: \"log:v1\"}\n", "", "shop:v1",
		"shop:v2").Replace(adopted)
	must(t, w.Check(t.Context(), "shop", w.objects(smaller)))
	w.wantWrites(1, "the apply after the check", func() { w.healed("shop", smaller) })
	d := w.deployment("shop")
	containers := d.Spec.Template.Spec.Containers
	if d.Labels["tier"] != "" || d.Labels["injected"] != "x" || len(containers) != 1 || len(containers[0].Env) != 2 {
		t.Errorf("labels %v, containers %+v", d.Labels, containers)
	}
	want := []string{
		`metadata.labels.tier, spec.template.spec.containers[{"name":"log"}], ` +
			`spec.template.spec.containers[{"name":"shop"}].env[{"name":"B"}] of provisioner`,
		`spec.template.spec.containers[{"name":"log"}] of kubectl-edit`,
	}
	told := strings.Split(strings.Join(w.taken, "; "), "; ")
	slices.Sort(told)
	compare.Check(t, want, told)
	w.wantWrites(0, "the apply after the removal", func() { w.apply("shop", smaller) })
}

// TestEmptyMapClaimsNoFieldOfAnotherManager checks a map that is empty in Git, and in which another manager sets
// fields. When the map leaves Git, the fields stay.
func TestEmptyMapClaimsNoFieldOfAnotherManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	empty := strings.NewReplacer("  selector:", "  strategy: {}\n  selector:",
		"spec: {containers", "spec: {securityContext: {}, containers", `"shop:v1"`, `"shop:v1", resources: {}`).Replace(withoutReplicas)
	w.apply("shop", empty)
	w.edit("shop", `{"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 0}},
		"template": {"spec": {"securityContext": {"runAsNonRoot": true}, "containers": [
			{"name": "shop", "resources": {"limits": {"memory": "1Gi"}}}]}}}}`)
	w.complete("shop", "shop")
	w.healed("shop", strings.Replace(withoutReplicas, "shop:v1", "shop:v2", 1))
	d := w.deployment("shop")
	pod := d.Spec.Template.Spec
	if d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 || pod.SecurityContext.RunAsNonRoot == nil ||
		pod.Containers[0].Resources.Limits.Memory().IsZero() || pod.Containers[0].Image != "shop:v2" || len(w.taken) > 0 {
		t.Errorf("strategy %v, pod %+v; taken %q", d.Spec.Strategy.RollingUpdate, pod, w.taken)
	}
}

// TestDroppedPortOfAnotherManagerMakesRoom checks that one write replaces a port by a port with another number and the
// same name. The API server would refuse both ports together.
func TestDroppedPortOfAnotherManagerMakesRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	till := coreManifest("Service", "till", `spec:
  selector: {app: till}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: dns, port: 53}, {name: dns-udp, port: 53, protocol: UDP}]`)
	w.kubectl(till, "create", "--field-manager=provisioner", "-f", "-")
	w.apply("till", till)
	moved := strings.NewReplacer("port: 80,", "port: 8081,", ", {name: dns-udp, port: 53, protocol: UDP}", "").Replace(till)
	w.until("the watch of the Service", func() (bool, string) {
		err := w.Check(t.Context(), "till", w.objects(moved))
		return err == nil, fmt.Sprint(err)
	})
	w.apply("till", moved)
	if ports := w.service("till").Spec.Ports; len(ports) != 2 || ports[1].Port+ports[0].Port != 8081+53 {
		t.Errorf("ports are %+v", ports)
	}
}
