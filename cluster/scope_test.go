package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/cluster"
)

// TestKindsWithoutNamespace: whether a kind belongs to a namespace is for the cluster to say, whatever the object says.
// What is there already is nobody's to forbid.
func TestKindsWithoutNamespace(t *testing.T) {
	w := newWorld(t)
	w.kinds = "example.com/Widget"
	const class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NS, namespace: NS}\nvalue: 1\n"
	err := w.Check(t.Context(), "shop", w.objects(class))
	var refused *cluster.Error
	if !errors.As(err, &refused) || refused.Reason != cluster.Forbidden ||
		!strings.HasSuffix(err.Error(), "clusterResources: [scheduling.k8s.io/PriorityClass]") {
		t.Errorf("the error is %v", err)
	}
	w.kinds = "scheduling.k8s.io/PriorityClass"
	if err := w.Check(t.Context(), "shop", w.objects(class)); err != nil {
		t.Errorf("it may have it: %v", err)
	}
	w.apply("shop", class)
	w.kinds = "example.com/Widget"
	if err := w.Check(t.Context(), "shop", w.objects(class)); err != nil {
		t.Errorf("it has it: %v", err)
	}
}
