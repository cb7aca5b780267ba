package e2e

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/gittest"
)

// installation is a way to install gitrollout into a namespace.
type installation struct {
	namespace string
	manifests string   // a file for kubectl apply; "" if there is a chart
	chart     string   // a chart's file for helm install; "" if there are manifests
	roles     []string // names of the installation's ClusterRoles
}

// TestInstall installs the release with the commands of docs/install.md. It runs the pod's image as a kubelet does, with the pod's
// arguments, environment, volumes and account. This gitrollout releases an app.
func TestInstall(t *testing.T) {
	t.Parallel()
	install(t, installation{namespace: "gitrollout", manifests: filepath.Join(releaseOf(t), "install.yaml"),
		roles: []string{"gitrollout-loop", "gitrollout-apps"}})
}

// install installs gitrollout, runs its pod, and releases an app. It returns the app's world, and the kubelet that runs the pod.
func install(t *testing.T, in installation) (*world, *kubelet) {
	t.Helper()
	files := everyKind()
	other := regexp.MustCompile(`(?s)apiVersion: v1\nkind: (Secret|ServiceAccount)\n.*?---\n`)
	files["more.yaml"] = other.ReplaceAllString(files["more.yaml"], "")
	w := newWorld(t, files)
	w.server = w.repo.HTTP(gittest.HTTPOptions{TLS: true, User: "x-access-token", Password: "s3cret"})
	token := tempFile(t, "token", "s3cret\n")
	began := time.Now()
	for _, line := range in.lines(t) {
		line = strings.NewReplacer("install.yaml", in.manifests, "-n gitrollout", "-n "+in.namespace,
			"install gitrollout gitrollout-0.2.0.tgz", "install second "+in.chart, "https://git.example.com/shop.git", w.server.URL,
			"--from-literal=cluster=prod", "--from-literal=cluster=test", "=token", "="+token).Replace(line)
		if args, is := strings.CutPrefix(line, "helm "); is {
			w.helm(strings.Fields(args)...)
			continue
		}
		w.kubectl(append(strings.Fields(line)[1:], "-n", in.namespace)...)
	}
	t.Cleanup(func() { in.remove(w) })
	k := newKubelet(t, w, in.namespace, readImage(t, filepath.Join(releaseOf(t), "image-"+releasedVersion+".tar")))
	w.inside, w.env = k.container, k.env
	w.startExactly(k.args...)
	w.awaitHealthy(w.repo.Head())
	t.Logf("%s from the first command line to an app that is healthy; the aim is a minute", time.Since(began).Round(time.Second))
	for _, probe := range []string{k.pod.Spec.Containers[0].LivenessProbe.HTTPGet.Path, k.pod.Spec.Containers[0].ReadinessProbe.HTTPGet.Path} {
		if code, body := getPage(t, "http://"+k.metrics+probe); code != 200 {
			t.Errorf("%s: %d %s", probe, code, body)
		}
	}
	w.useEveryRight("HorizontalPodAutoscaler")
	roles := map[string][]rbacv1.PolicyRule{}
	for _, name := range in.roles {
		role, err := w.cluster.Kube.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		roles[name] = role.Rules
	}
	k.api.compare(t, roles)
	return w, k
}

// lines returns the commands that install gitrollout. The chart's namespace admits only restricted pods.
func (in installation) lines(t *testing.T) []string {
	t.Helper()
	manifests, byChart := installLines(t)
	if in.chart == "" {
		return manifests
	}
	return []string{"kubectl create namespace " + in.namespace,
		"kubectl label namespace " + in.namespace + " pod-security.kubernetes.io/enforce=restricted", byChart, manifests[1]}
}

func (in installation) remove(w *world) {
	if in.chart == "" {
		w.kubectl("delete", "-n", in.namespace, "--ignore-not-found", "--wait=false", "-f", in.manifests)
		return
	}
	w.helm("uninstall", "second", "-n", in.namespace, "--wait=hookOnly")
	w.kubectl("delete", "namespace", in.namespace, "--wait=false")
}

func (w *world) helm(args ...string) string {
	w.t.Helper()
	return helm(w.t, append(args, "--kubeconfig", w.cluster.Kubeconfig)...)
}

// installLines returns the commands of docs/install.md, for manifests and for the chart.
func installLines(t *testing.T) (manifests []string, byChart string) {
	t.Helper()
	section, _, _ := strings.Cut(readText(t, "../../docs/install.md"), "\n## An image")
	for _, m := range regexp.MustCompile(`(?m)^    (kubectl (?:[^\n]*\\\n)*[^\n]*)$`).FindAllStringSubmatch(section, -1) {
		manifests = append(manifests, strings.ReplaceAll(m[1], "\\\n", ""))
	}
	byChart = strings.TrimSpace(regexp.MustCompile(`(?m)^    helm install .*$`).FindString(section))
	if len(manifests) != 2 || byChart == "" {
		t.Fatalf("docs/install.md installs by %q, and not by a manifest and a Secret, and by %q", manifests, byChart)
	}
	return manifests, byChart
}

// kubelet runs the pod of an installation as a node does.
type kubelet struct {
	pod       corev1.Pod
	container *container
	args, env []string
	api       *audited
	metrics   string // address of the port metrics
}

func newKubelet(t *testing.T, w *world, namespace string, image ociImage) *kubelet {
	t.Helper()
	k := &kubelet{pod: awaitPod(t, w, namespace)}
	c := k.pod.Spec.Containers[0]
	if c.Image != image.names["io.containerd.image.name"] {
		t.Errorf("the pod is of %s, and the image is loaded as %s", c.Image, image.names["io.containerd.image.name"])
	}
	if !*c.SecurityContext.ReadOnlyRootFilesystem ||
		!strings.HasPrefix(image.config.Config.User, fmt.Sprint(*k.pod.Spec.SecurityContext.RunAsUser, ":")) {
		t.Errorf("the pod is run as %+v with %+v, the test's as %s", k.pod.Spec.SecurityContext, c.SecurityContext, image.config.Config.User)
	}
	k.api = audit(t, w, k.pod.Spec.ServiceAccountName, namespace)
	host, port, err := net.SplitHostPort(k.api.address)
	must(t, err)
	k.env = []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
	for _, v := range c.Env {
		value := v.Value
		if v.ValueFrom != nil {
			value = k.secret(t, w, v.ValueFrom.SecretKeyRef.Name)[v.ValueFrom.SecretKeyRef.Key]
		}
		k.env = append(k.env, v.Name+"="+value)
	}
	k.metrics = freeAddress(t) // the tests' pods share an IP address, so the port must be free
	for _, arg := range c.Args {
		k.args = append(k.args, strings.Replace(arg, "--metrics-address=:8085", "--metrics-address="+k.metrics, 1))
	}
	k.args = append(k.args, "--interval=200ms", "--dashboard-address=", "--analysis-allow-cidr=127.0.0.0/8")
	volumes := k.volumes(t, w)
	// The image trusts Mozilla's certificate authorities, which do not include the test's Git server.
	volumes[rootsFile] = string(image.files[rootsFile]) + string(w.server.CA)
	k.container = newContainer(t, image, volumes)
	return k
}

// awaitPod waits until gitrollout has exactly one pod in a namespace.
func awaitPod(t *testing.T, w *world, namespace string) corev1.Pod {
	t.Helper()
	var pods *corev1.PodList
	eventually(t, "one pod of gitrollout", func() bool {
		var err error
		pods, err = w.cluster.Kube.CoreV1().Pods(namespace).List(t.Context(),
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=gitrollout"})
		must(t, err)
		return len(pods.Items) == 1
	}, func() any {
		return fmt.Sprintf("%d pods:\n%s", len(pods.Items), w.kubectl("-n", namespace, "describe", "replicasets"))
	})
	return pods.Items[0]
}

// secret returns the content of a Secret in the pod's namespace.
func (k *kubelet) secret(t *testing.T, w *world, name string) map[string]string {
	t.Helper()
	s, err := w.cluster.Kube.CoreV1().Secrets(k.pod.Namespace).Get(context.Background(), name, metav1.GetOptions{})
	must(t, err)
	content := map[string]string{}
	for key, value := range s.Data {
		content[key] = string(value)
	}
	return content
}

// volumes returns the files that are mounted into the pod's container.
func (k *kubelet) volumes(t *testing.T, w *world) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, mount := range k.pod.Spec.Containers[0].VolumeMounts {
		for _, v := range k.pod.Spec.Volumes {
			switch {
			case v.Name != mount.Name:
			case v.Secret != nil:
				for _, item := range v.Secret.Items {
					files[mount.MountPath+"/"+item.Path] = k.secret(t, w, v.Secret.SecretName)[item.Key]
				}
			case v.Projected != nil: // the account's token; the API server is the auditing proxy
				files[mount.MountPath+"/token"] = k.api.token
				files[mount.MountPath+"/ca.crt"] = string(k.api.authority)
				files[mount.MountPath+"/namespace"] = k.pod.Namespace
			default:
				t.Fatalf("the pod has a volume that the test does not know: %+v", v)
			}
		}
	}
	return files
}
