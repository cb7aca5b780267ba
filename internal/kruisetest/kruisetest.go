// Package kruisetest gives a test's cluster OpenKruise: its own CustomResourceDefinitions, and its controllers. Those
// are the real ones if KRUISE_TEST_BINARY names the program of internal/peers/kruise, as make test-peers does, and else a
// small model of those of CloneSets and DaemonSets, which internal/contract holds to the same. Nothing in the product uses it.
package kruisetest

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"gitrollout.dev/gitrollout/internal/crds"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// Variable names the program with the real controllers.
const Variable = "KRUISE_TEST_BINARY"

// IsReal reports whether the real controllers run, those of Advanced StatefulSets among them.
func IsReal() bool { return os.Getenv(Variable) != "" }

// Start has CloneSets and Advanced DaemonSets of a namespace controlled until the test ends.
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

// Model has workloads of a namespace moved until the test ends, those of a kind that works like CloneSets and has its
// fields where the description says.
func Model(tb testing.TB, c *testcluster.Cluster, namespace, plural string, of rollout.Partitioned) {
	tb.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		tb.Fatal(err)
	}
	resource := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupVersion().WithResource(plural)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	tb.Cleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		m := &model{kube: c.Kube, sets: client.Resource(resource).Namespace(namespace), namespace: namespace, of: of}
		for ctx.Err() == nil {
			m.pass(ctx)
			time.Sleep(50 * time.Millisecond)
		}
	}()
}
