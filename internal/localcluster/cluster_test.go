package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

func TestCluster(t *testing.T) {
	scratch := t.TempDir()
	local := start(t, []string{"TMPDIR=" + scratch})
	t.Logf("%s, resident memory %s", local.ready, local.residentMemory(t))

	t.Run("kubeconfig is the owner's only", func(t *testing.T) {
		info, err := os.Stat(local.kubeconfig)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("kubeconfig: %v, %v; want mode 0600", info.Mode(), err)
		}
	})
	t.Run("reports its release", func(t *testing.T) {
		version, err := local.client.Discovery().ServerVersion()
		if err != nil || version.GitVersion != kubernetesVersion {
			t.Errorf("server version %v, %v; want %s", version, err, kubernetesVersion)
		}
	})
	t.Run("serves a Deployment", func(t *testing.T) { testDeployment(t, local) })
	t.Run("crash loop", func(t *testing.T) { testCrashLoop(t, local.client) })
	t.Run("never ready", func(t *testing.T) { testNeverReady(t, local.client) })
	t.Run("unschedulable until a node fits", func(t *testing.T) { testUnschedulable(t, local.client) })
	t.Run("pod is ready soon", func(t *testing.T) { measureReadiness(t, local.client) })

	if code := local.terminate(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	if printed := local.stderr.String(); printed != "" {
		t.Errorf("printed on stderr: %s", printed)
	}
	if left, _ := filepath.Glob(filepath.Join(scratch, "localcluster-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func testDeployment(t *testing.T, local *localCluster) {
	ctx := t.Context()
	_, err := local.client.CoreV1().Services("default").Create(ctx, newService("shop"), metav1.CreateOptions{})
	must(t, err)
	deployments := local.client.AppsV1().Deployments("default")
	_, err = deployments.Create(ctx, newDeployment("shop", "shop:v7", 3), metav1.CreateOptions{})
	must(t, err)
	eventually(t, "3 available replicas", func() error {
		deployment, err := deployments.Get(ctx, "shop", metav1.GetOptions{})
		if err == nil && deployment.Status.AvailableReplicas != 3 {
			err = fmt.Errorf("%d available", deployment.Status.AvailableReplicas)
		}
		return err
	})
	eventually(t, "3 ready endpoints", func() error { return readyEndpoints(ctx, local.client, "shop", 3) })

	pods, err := local.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=shop"})
	must(t, err)
	nodes := make(map[string]bool)
	for _, pod := range pods.Items {
		nodes[pod.Spec.NodeName] = true
		byPath, _ := http.NewRequest(http.MethodGet, local.podsURL+"/namespaces/default/pods/"+pod.Name+"/cart", nil)
		checkAnswer(t, byPath, pod.Name, "v7")
		byHost, _ := http.NewRequest(http.MethodGet, local.podsURL+"/cart", nil)
		byHost.Host = pod.Status.PodIP + ":8080"
		checkAnswer(t, byHost, pod.Name, "v7")
	}
	if len(nodes) != 3 {
		t.Errorf("3 pods on %d nodes, want one on each", len(nodes))
	}
	foreground := metav1.DeletePropagationForeground
	must(t, deployments.Delete(ctx, "shop", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	eventually(t, "Deployment and pods to be gone", func() error {
		pods, err := local.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=shop"})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(pods.Items))
		}
		if _, missing := deployments.Get(ctx, "shop", metav1.GetOptions{}); err == nil && !apierrors.IsNotFound(missing) {
			err = fmt.Errorf("Deployment: %v", missing)
		}
		return err
	})
}

func readyEndpoints(ctx context.Context, client kubernetes.Interface, service string, want int) error {
	all, err := client.DiscoveryV1().EndpointSlices("default").List(ctx,
		metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	if err != nil {
		return err
	}
	ready := 0
	for _, slice := range all.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	if ready != want {
		return fmt.Errorf("%d ready endpoints, want %d", ready, want)
	}
	return nil
}

func checkAnswer(t *testing.T, request *http.Request, pod, version string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	var answer struct{ Pod, Version string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatalf("answer of pod %s: %v", pod, err)
	}
	if answer.Pod != pod || answer.Version != version {
		t.Errorf("answer %+v, want pod %s version %s", answer, pod, version)
	}
}

func testCrashLoop(t *testing.T, client kubernetes.Interface) {
	createPod(t, client, "crash", podSpec("shop:v1-crash"))
	eventually(t, "a second restart", func() error {
		status := containerOf(t, client, "crash")
		if status.RestartCount < 2 || status.State.Waiting == nil || status.State.Waiting.Reason != "CrashLoopBackOff" {
			return fmt.Errorf("container status %+v", status)
		}
		return nil
	})
}

func testNeverReady(t *testing.T, client kubernetes.Interface) {
	createPod(t, client, "never", podSpec("shop:v1-neverready"))
	eventually(t, "a running container", func() error {
		if status := containerOf(t, client, "never"); status.State.Running == nil {
			return fmt.Errorf("container status %+v", status)
		}
		return nil
	})
	if containerOf(t, client, "never").Ready {
		t.Error("container is ready, want never")
	}
}

func testUnschedulable(t *testing.T, client kubernetes.Interface) {
	spec := podSpec("shop:v1")
	spec.NodeSelector = map[string]string{"disk": "fast"}
	createPod(t, client, "picky", spec)
	scheduled := func(want corev1.ConditionStatus) error {
		pod := getPod(t, client, "picky")
		if hasCondition(pod, corev1.PodScheduled, want) {
			return nil
		}
		return fmt.Errorf("conditions %v", pod.Status.Conditions)
	}
	eventually(t, "PodScheduled=False", func() error { return scheduled(corev1.ConditionFalse) })
	label := []byte(`{"metadata":{"labels":{"disk":"fast"}}}`)
	_, err := client.CoreV1().Nodes().Patch(t.Context(), "node-2", types.MergePatchType, label, metav1.PatchOptions{})
	must(t, err)
	eventually(t, "PodScheduled=True", func() error { return scheduled(corev1.ConditionTrue) })
}

// measureReadiness logs the average time from a pod's creation to Ready.
func measureReadiness(t *testing.T, client kubernetes.Interface) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var total time.Duration
	const pods = 10
	for n := range pods {
		name := fmt.Sprintf("quick-%d", n)
		watch, err := client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		must(t, err)
		began := time.Now()
		createPod(t, client, name, podSpec("shop:v1"))
		for event := range watch.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && hasCondition(pod, corev1.PodReady, corev1.ConditionTrue) {
				break
			}
		}
		watch.Stop()
		total += time.Since(began)
	}
	if ctx.Err() != nil {
		t.Fatal("pods did not become ready in 30s")
	}
	t.Logf("from create to Ready: %s on average of %d", (total / pods).Round(100*time.Microsecond), pods)
}

func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == status })
}

func createPod(t *testing.T, client kubernetes.Interface, name string, spec corev1.PodSpec) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
}

func getPod(t *testing.T, client kubernetes.Interface, name string) *corev1.Pod {
	t.Helper()
	pod, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return pod
}

func containerOf(t *testing.T, client kubernetes.Interface, pod string) corev1.ContainerStatus {
	t.Helper()
	if all := getPod(t, client, pod).Status.ContainerStatuses; len(all) > 0 {
		return all[0]
	}
	return corev1.ContainerStatus{}
}

func podSpec(image string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name: "app", Image: image, Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
	}}}
}

func newDeployment(name, image string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(image)},
		},
	}
}

func newService(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
}

func get(url string) (string, error) {
	response, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return strings.TrimSpace(string(body)), err
}
