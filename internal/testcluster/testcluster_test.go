package testcluster_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/testcluster"
)

func TestNamespacesKeepTestsApart(t *testing.T) {
	c := testcluster.Shared(t)
	a, b := c.Namespace(t), c.Namespace(t)
	if a == b {
		t.Fatalf("two namespaces of one test are both %s", a)
	}
	for _, name := range []string{a, b} {
		if _, err := c.Kube.CoreV1().Namespaces().Get(context.Background(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("namespace %s: %v", name, err)
		}
	}
	if testcluster.Shared(t) != c {
		t.Error("a second call started another cluster")
	}
}
