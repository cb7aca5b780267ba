package cluster_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/cluster"
)

const ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web-canary
  namespace: NS
  annotations: {gitrollout.dev/generated-by: web}
spec: {defaultBackend: {service: {name: web-canary, port: {number: 80}}}}
`

var madeIngress = documents(coreManifest("ConfigMap", "first", ""), ingress)

// TestWhatIsMadeForAReleaseTakesNothingOver checks an object that gitrollout generates for a release. If an object of
// the same name exists outside the app, gitrollout must not write it.
func TestWhatIsMadeForAReleaseTakesNothingOver(t *testing.T) {
	for _, c := range []struct {
		name, labels, want string // want is a part of the error; "" if the object is applied
	}{
		{"foreign", "", "exists and is not in this app, but Rollout web needs this name for an object of its release"},
		{"another app's", "gitrollout.dev/app: other",
			"exists and is in app other, but Rollout web needs this name for an object of its release"},
		{"the app's own, of an earlier process", "gitrollout.dev/app: shop", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			live := strings.Replace(ingress, "annotations: {gitrollout.dev/generated-by: web}", "labels: {"+c.labels+"}", 1)
			w.kubectl(live, serverSide("kubectl")...)
			client := w.cluster.Kube.NetworkingV1().Ingresses(w.ns)
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
				if refused := wantRefusal(t, verb, err, cluster.Contested, c.want); refused.Temporary() || refused.Fix == "" {
					t.Errorf("%s says %v, want a fix", verb, err)
				}
			}
			if before.ResourceVersion != after.ResourceVersion {
				t.Error("it was written")
			}
		})
	}
}

// TestWhatIsMadeAgainCostsOneRequest checks that a change of a generated object takes one write. No read is needed, because the watch shows
// that the live object is in the app.
func TestWhatIsMadeAgainCostsOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("shop", madeIngress)
	made := w.requests(func() { w.apply("shop", strings.Replace(madeIngress, "number: 80", "number: 81", 1)) })
	if made.Writes != 1 || made.Reads != 0 {
		t.Errorf("%d writes and %d reads for one change", made.Writes, made.Reads)
	}
}
