// Package testcluster gives tests a real Kubernetes API server with its controllers: the localcluster program, started
// on demand. The product does not use this package.
//
// A cluster needs about 5 seconds and 500 MB. GITROLLOUT_TEST_KUBECONFIG names a running cluster, so that several test
// packages share it:
//
//	bin/localcluster --kubeconfig /tmp/kc &
//	GITROLLOUT_TEST_KUBECONFIG=/tmp/kc go test ./...
//
// If no cluster is available, a test fails; it is never skipped.
package testcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"gitrollout.dev/gitrollout/internal/testbin"
)

// These environment variables have the kubeconfig of a running cluster, the URL of its pods, and the path of a
// localcluster that replaces bin/localcluster.
const (
	KubeconfigVariable = "GITROLLOUT_TEST_KUBECONFIG"
	PodsURLVariable    = "GITROLLOUT_TEST_PODS_URL"
	ProgramVariable    = "GITROLLOUT_TEST_LOCALCLUSTER"
)

// Cluster is a running control plane.
type Cluster struct {
	Kubeconfig string       // path of a kubeconfig with all rights
	Config     *rest.Config // the client configuration of Kubeconfig, without a rate limit; copy it before changing it
	PodsURL    string       // URL at which all simulated pods respond; "" if pods are not simulated
	Kube       kubernetes.Interface
}

// shared is package state, because the start of a cluster for each test would take longer than the tests. The
// cluster ends with the test process.
var shared = sync.OnceValues(func() (*Cluster, error) {
	if path := os.Getenv(KubeconfigVariable); path != "" {
		return open(path)
	}
	c, _, err := Launch()
	return c, err
})

// Shared returns the cluster of this test process. The first call starts it. Each test uses separate namespaces.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := shared()
	if err != nil {
		tb.Fatalf("test cluster: %v", err)
	}
	return c
}

// Start returns a cluster that only this test uses, and that ends with the test. It is for tests that stop or break the control plane.
func Start(tb testing.TB) *Cluster {
	tb.Helper()
	c, stop, err := Launch()
	if err != nil {
		tb.Fatalf("test cluster: %v", err)
	}
	tb.Cleanup(stop)
	return c
}

// Launch starts a cluster with the given flags of localcluster. It is for harnesses whose cluster must run
// longer than a test, or needs flags that the shared cluster does not have.
func Launch(flags ...string) (c *Cluster, stop func(), err error) {
	running, err := start(flags...)
	if err != nil {
		return nil, nil, err
	}
	if c, err = open(running.kubeconfig); err != nil {
		running.stop()
		return nil, nil, err
	}
	return c, running.stop, nil
}

// Namespace creates a namespace named after the test, and deletes it when the test ends.
func (c *Cluster) Namespace(tb testing.TB) string {
	tb.Helper()
	notAllowed := regexp.MustCompile(`[^a-z0-9]+`)
	name := strings.Trim(notAllowed.ReplaceAllString(strings.ToLower(tb.Name()), "-"), "-")
	name = strings.Trim(name[:min(len(name), 40)], "-")
	ns, err := c.Kube.CoreV1().Namespaces().Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}, metav1.CreateOptions{})
	if err != nil {
		tb.Fatalf("create a namespace for the test: %v", err)
	}
	tb.Cleanup(func() {
		// The deletion takes seconds. The test does not wait, because the namespace's name is not used again.
		_ = c.Kube.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{})
	})
	return ns.Name
}

// Kubectl returns the path of bin/kubectl, in the cluster's version. A missing program is built.
func Kubectl(tb testing.TB) string {
	tb.Helper()
	binary, err := testbin.Ensure("kubectl", "a minute")
	if err != nil {
		tb.Fatalf("kubectl: %v", err)
	}
	return binary
}

func open(kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", kubeconfig, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return nil, fmt.Errorf("the cluster of %s (%s) does not answer: %w", kubeconfig, config.Host, err)
	}
	c := &Cluster{Kubeconfig: kubeconfig, Config: config, Kube: kube, PodsURL: os.Getenv(PodsURLVariable)}
	if url, err := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), "pods-url")); err == nil && c.PodsURL == "" {
		c.PodsURL = strings.TrimSpace(string(url))
	}
	return c, nil
}
