package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/cluster"
)

const madeIngress = `
apiVersion: v1
kind: ConfigMap
metadata: {name: first, namespace: NS}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web-canary
  namespace: NS
  annotations: {gitrollout.dev/generated-by: web}
spec: {defaultBackend: {service: {name: web-canary, port: {number: 80}}}}
`

// TestWhatIsMadeForAReleaseTakesNothingOver checks that a generated object adopts no existing object of its name,
// because Git does not name it.
func TestWhatIsMadeForAReleaseTakesNothingOver(t *testing.T) {
	for _, c := range []struct {
		name, labels, want string // "": it is adopted
	}{
		{"foreign", "", "exists and is none of this app's objects, and Rollout web would make an object of this name for its release"},
		{"another app's", "gitrollout.dev/app: other",
			"exists and is in app other, and Rollout web would make an object of this name for its release"},
		{"the app's own, of an earlier process", "gitrollout.dev/app: shop", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			live := w.objects(strings.Replace(strings.Split(madeIngress, "\n---\n")[1], "annotations: {gitrollout.dev/generated-by: web}",
				"labels: {"+c.labels+"}", 1))[0]
			client := w.cluster.Kube.NetworkingV1().Ingresses(w.ns)
			w.create(live)
			before, err := client.Get(t.Context(), "web-canary", metav1.GetOptions{})
			must(t, err)
			checked := w.Check(t.Context(), "shop", w.objects(madeIngress))
			_, applied := w.Apply(t.Context(), "shop", w.objects(madeIngress))
			after, err := client.Get(t.Context(), "web-canary", metav1.GetOptions{})
			must(t, err)
			if c.want == "" {
				if checked != nil || applied != nil || after.Annotations["gitrollout.dev/generated-by"] != "web" {
					t.Errorf("Check %v, Apply %v, annotations %v", checked, applied, after.Annotations)
				}
				return
			}
			for verb, err := range map[string]error{"Check": checked, "Apply": applied} {
				var refused *cluster.Error
				if !errors.As(err, &refused) || refused.Reason != cluster.Contested || refused.Temporary() || !strings.Contains(err.Error(), c.want) ||
					refused.Fix == "" {
					t.Errorf("%s says %v, want %q", verb, err, c.want)
				}
			}
			if before.ResourceVersion != after.ResourceVersion {
				t.Error("it was written")
			}
		})
	}
}

// TestWhatIsMadeAgainCostsOneRequest checks that a changed object costs one write and no read, since the watch names
// its app.
func TestWhatIsMadeAgainCostsOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("shop", madeIngress)
	before := w.Stats()
	w.apply("shop", strings.Replace(madeIngress, "number: 80", "number: 81", 1))
	if now := w.Stats(); now.Writes != before.Writes+1 || now.Reads != before.Reads {
		t.Errorf("%d writes and %d reads for one change", now.Writes-before.Writes, now.Reads-before.Reads)
	}
}

func (w *world) create(o map[string]any) {
	w.t.Helper()
	raw, err := json.Marshal(o)
	must(w.t, err)
	_, err = w.cluster.Kube.NetworkingV1().Ingresses(w.ns).Patch(context.Background(), "web-canary", types.ApplyPatchType, raw,
		metav1.PatchOptions{FieldManager: "kubectl"})
	must(w.t, err)
}
