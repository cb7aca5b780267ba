package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// wantError applies and checks for an error of one object.
func (w *world) wantError(manifests string, kind string, reason cluster.Reason, says ...string) (cluster.Result, *cluster.Error) {
	w.t.Helper()
	result, err := w.Apply(context.Background(), "shop", w.objects(manifests))
	var refusal *cluster.Error
	if !errors.As(err, &refusal) {
		w.t.Fatalf("error is %v, want a refusal", err)
	}
	if refusal.Ref.Kind != kind || refusal.Reason != reason {
		w.t.Errorf("error is about %v because of %s, want %s because of %s: %v", refusal.Ref, refusal.Reason, kind, reason, err)
	}
	compare.Contains(w.t, err.Error(), says...)
	if strings.Contains(err.Error(), "\n") || strings.HasSuffix(err.Error(), ".") {
		w.t.Errorf("error is not one sentence: %q", err)
	}
	return result, refusal
}

func TestRefusals(t *testing.T) {
	deployment := strings.TrimPrefix(withoutReplicas, "\n")
	t.Run("immutable selector", func(t *testing.T) {
		w := newWorld(t)
		w.apply("shop", deployment)
		changed := strings.ReplaceAll(deployment, "app: shop", "app: other")
		w.wantError(changed, "Deployment", cluster.Immutable, "Deployment "+w.ns+"/shop: ", "spec.selector", "field is immutable",
			"delete the object")
		w.apply("shop", deployment)
	})
	t.Run("immutable cluster IP", func(t *testing.T) {
		w := newWorld(t)
		service := `
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: NS}
spec: {selector: {app: shop}, ports: [{port: 80}]}`
		w.apply("shop", service)
		w.wantError(strings.Replace(service, "spec: {", "spec: {clusterIP: None, ", 1), "Service", cluster.Immutable, "clusterIP",
			"may not change once set")
	})
	t.Run("unknown field", func(t *testing.T) {
		w := newWorld(t)
		w.wantError(strings.Replace(deployment, "spec:\n", "spec:\n  replica: 3\n", 1), "Deployment", cluster.Invalid, "replica")
	})
	t.Run("invalid value", func(t *testing.T) {
		w := newWorld(t)
		w.wantError(strings.Replace(deployment, "spec:\n", "spec:\n  replicas: -1\n", 1), "Deployment", cluster.Invalid, "spec.replicas")
	})
	t.Run("unknown kind", func(t *testing.T) {
		w := newWorld(t)
		w.wantError("apiVersion: nowhere.dev/v1\nkind: Thing\nmetadata: {name: x, namespace: NS}", "Thing", cluster.UnknownKind,
			"kind Thing.nowhere.dev is not known to the cluster; install its CRD")
	})
	t.Run("missing namespace", func(t *testing.T) {
		w := newWorld(t)
		w.wantError(strings.ReplaceAll(deployment, "NS", "nowhere"), "Deployment", cluster.Missing, `namespaces "nowhere" not found`)
	})
	t.Run("no namespace", func(t *testing.T) {
		w := newWorld(t)
		w.wantError(strings.ReplaceAll(deployment, ", namespace: NS", ""), "Deployment", cluster.Invalid, "has no namespace")
	})
	t.Run("quota", func(t *testing.T) {
		w := newWorld(t)
		w.quota("services")
		w.wantError("apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: NS}\nspec: {ports: [{port: 80}]}", "Service", cluster.Quota,
			"exceeded quota", "raise the quota")
	})
	t.Run("namespace that goes away", func(t *testing.T) {
		w := newWorld(t)
		// A finalizer delays its deletion during the test.
		w.apply("shop", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hold, namespace: NS, finalizers: [gitrollout.dev/test]}")
		ctx := context.Background()
		must(t, w.cluster.Kube.CoreV1().Namespaces().Delete(ctx, w.ns, metav1.DeleteOptions{}))
		w.wantError(deployment, "Deployment", cluster.NamespaceGone, "is being terminated")
		w.apply("shop", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hold, namespace: NS}")
	})
}

// quota permits none of a resource, and waits until the API server enforces it.
func (w *world) quota(of corev1.ResourceName) {
	w.t.Helper()
	ctx := context.Background()
	quotas := w.cluster.Kube.CoreV1().ResourceQuotas(w.ns)
	none := corev1.ResourceList{of: resource.MustParse("0")}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	_, err := quotas.Create(ctx, q, metav1.CreateOptions{})
	must(w.t, err)
	w.until("the quota being counted", func() (bool, string) {
		q, err := quotas.Get(ctx, "none", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0, "not yet"
	})
}

func TestCheckChangesNothing(t *testing.T) {
	w := newWorld(t)
	set := shop + "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: bad, namespace: NS}\nspec: {ports: [{port: 99999}]}"
	w.wantWrites(0, "checking", func() {
		err := w.Check(context.Background(), "shop", w.objects(set))
		var refusal *cluster.Error
		if !errors.As(err, &refusal) || refusal.Reason != cluster.Invalid || refusal.Ref.Name != "bad" {
			t.Errorf("error is %v, want one about Service bad", err)
		}
		if err := w.Check(context.Background(), "shop", w.objects(shop)); err != nil {
			t.Error(err)
		}
	})
	if got := w.apply("shop", shop); len(got.Unchanged) != 0 {
		t.Errorf("%v were there", got.Unchanged)
	}
	before := w.Stats()
	if err := w.Check(context.Background(), "shop", w.objects(strings.Replace(shop, "shop:v1", "shop:v2", 1))); err != nil {
		t.Error(err)
	}
	if got := w.Stats(); got.DryRuns != before.DryRuns+1 || got.Writes != before.Writes || got.Reads != before.Reads {
		t.Errorf("checking a release that changes one object took %+v after %+v", got, before)
	}
}

func TestSetWithItsNamespaceAndItsCRD(t *testing.T) {
	w := newWorld(t)
	group := w.ns + ".example.com"
	set := strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: NS-own}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP}
spec:
  group: GROUP
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
---
apiVersion: GROUP/v1
kind: Thing
metadata: {name: one, namespace: NS-own}
spec: {size: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: NS-own}
spec:
  selector: {matchLabels: {app: shop}}
  template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: shop, image: "shop:v1"}]}}
`, "GROUP", group)
	ctx := context.Background()
	t.Cleanup(func() {
		_ = w.cluster.Kube.CoreV1().Namespaces().Delete(ctx, w.ns+"-own", metav1.DeleteOptions{})
		_ = w.cluster.Kube.Discovery().RESTClient().Delete().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things." +
			group).Do(ctx).Error()
	})
	if got := w.apply("shop", set); len(got.Written) != 4 {
		t.Fatalf("created %v", got.Written)
	}
	w.wantWrites(0, "the second apply", func() { w.apply("shop", set) })
	w.restart()
	w.wantWrites(0, "an apply of a new process", func() { w.apply("shop", set) })
	for ref, want := range map[rollout.Ref]bool{
		{Group: group, Kind: "Thing", Namespace: w.ns + "-own", Name: "one"}:                       true,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "things." + group}: true,
		{Group: group, Kind: "Thing", Namespace: w.ns + "-own", Name: "two"}:                       false,
		{Group: "nowhere.dev", Kind: "Other", Namespace: w.ns, Name: "x"}:                          false,
	} {
		if got := w.Shows(ctx, "shop", ref); got != want {
			t.Errorf("%v is shown: %v, want %v", ref, got, want)
		}
	}
	newer := "apiVersion: " + group + "/v2\nkind: Thing\nmetadata: {name: one, namespace: NS-own}\n"
	if err := w.Check(ctx, "shop", w.objects(newer)); err == nil ||
		!strings.Contains(err.Error(), "kind Thing."+group+" is not served by the cluster as v2, but as v1; change its apiVersion") {
		t.Errorf("a version that is not served: %v", err)
	}
	// The CRD is deleted, and with it every object of the kind.
	must(t, w.cluster.Kube.Discovery().RESTClient().Delete().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things."+
		group).Do(ctx).Error())
	w.until("CRD and object back", func() (bool, string) {
		result, err := w.Apply(ctx, "shop", w.objects(set))
		if err != nil {
			return false, err.Error()
		}
		return len(result.Unchanged) == 2, ""
	})
}

func TestRightsThatAreMissingAreNamed(t *testing.T) {
	w := newWorld(t)
	w.apply("shop", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: poor, namespace: NS}")
	poor := rest.CopyConfig(w.cluster.Config)
	poor.Impersonate.UserName = "system:serviceaccount:" + w.ns + ":poor"
	client, err := cluster.New(poor, cluster.Options{})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer client.Wait()
	defer cancel()
	err = client.Start(ctx)
	if err == nil || !strings.Contains(err.Error(), `cannot watch resource "deployments"`) {
		t.Errorf("error is %v", err)
	}
}

func TestServerThatDoesNotAnswerIsOneError(t *testing.T) {
	client, err := cluster.New(&rest.Config{Host: "https://127.0.0.1:1"}, cluster.Options{})
	must(t, err)
	err = client.Start(context.Background())
	var refusal *cluster.Error
	if !errors.As(err, &refusal) || refusal.Reason != cluster.Unavailable || !refusal.Temporary() {
		t.Errorf("error is %v", err)
	}
	client.Wait()
}
