// Package kruisetest installs OpenKruise's CustomResourceDefinitions and controllers into a test's cluster. The real
// controllers run if KRUISE_TEST_BINARY names the program of internal/peers/kruise, as in `make test-peers`. Otherwise,
// a small model of the controllers of CloneSets and Advanced DaemonSets runs. The model and the real controllers pass
// the same tests of internal/contract. The product does not use this package.
package kruisetest

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"gitrollout.dev/gitrollout/internal/crds"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// Variable is the environment variable with the path of the real controllers' program.
const Variable = "KRUISE_TEST_BINARY"

// IsReal reports whether the real controllers run. Advanced StatefulSets need the real controllers.
func IsReal() bool { return os.Getenv(Variable) != "" }

// Start runs controllers of CloneSets and Advanced DaemonSets for a namespace until the test ends.
func Start(tb testing.TB, c *testcluster.Cluster, namespace string) {
	tb.Helper()
	crds.Apply(tb, c.Config, crds.Kruise)
	if program := os.Getenv(Variable); program != "" {
		command := exec.Command(program)
		command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "POD_NAMESPACE="+namespace)
		log, err := os.Create(tb.TempDir() + "/kruise.log")
		if err != nil {
			tb.Fatal(err)
		}
		command.Stdout, command.Stderr = log, log
		if err := command.Start(); err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait()
			if tb.Failed() {
				said, _ := os.ReadFile(log.Name())
				tb.Logf("Kruise said: …%s", said[max(0, len(said)-4000):])
			}
		})
		return
	}
	for kind, plural := range map[string]string{"CloneSet": "clonesets", "DaemonSet": "daemonsets"} {
		of, _ := rollout.FindPartitioned(nil, "apps.kruise.io/v1alpha1", kind)
		Model(tb, c, namespace, plural, *of)
	}
}

// Model runs a controller for the objects of one kind in a namespace until the test ends. The kind
// must behave like CloneSets. The argument "of" has the paths of the kind's fields.
func Model(tb testing.TB, c *testcluster.Cluster, namespace, plural string, of rollout.Partitioned) {
	tb.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		tb.Fatal(err)
	}
	resource := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupVersion().WithResource(plural)
	ctx, stop := context.WithCancel(context.Background())
	m := &model{kube: c.Kube, sets: client.Resource(resource).Namespace(namespace), namespace: namespace, of: of}
	var running sync.WaitGroup
	running.Go(func() { wait.UntilWithContext(ctx, m.pass, 50*time.Millisecond) })
	tb.Cleanup(func() { stop(); running.Wait() })
}
