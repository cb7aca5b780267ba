package cluster_test

import (
	"context"
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

// wantError applies manifests. It checks that the error has the reason and contains the texts, and that it is about an object of the kind.
func (w *world) wantError(manifests string, kind string, reason cluster.Reason, says ...string) (cluster.Result, *cluster.Error) {
	w.t.Helper()
	result, err := w.Apply(context.Background(), "shop", w.objects(manifests))
	refusal := wantRefusal(w.t, "Apply", err, reason, says...)
	if refusal.Ref.Kind != kind {
		w.t.Errorf("error is about %v, want a %s: %v", refusal.Ref, kind, err)
	}
	if strings.Contains(err.Error(), "\n") || strings.HasSuffix(err.Error(), ".") {
		w.t.Errorf("error is not one sentence: %q", err)
	}
	return result, refusal
}

func TestRefusals(t *testing.T) {
	deployment := strings.TrimPrefix(withoutReplicas, "\n")
	withSpec := func(field string) string { return strings.Replace(deployment, "spec:\n", "spec:\n  "+field+"\n", 1) }
	for name, c := range map[string]struct {
		manifest, kind string
		reason         cluster.Reason
		says           string
	}{
		"unknown field": {withSpec("replica: 3"), "Deployment", cluster.Invalid, "replica"},
		"invalid value": {withSpec("replicas: -1"), "Deployment", cluster.Invalid, "spec.replicas"},
		"unknown kind": {"apiVersion: nowhere.dev/v1\nkind: Thing\nmetadata: {name: x, namespace: NS}", "Thing", cluster.UnknownKind,
			"kind Thing.nowhere.dev is not known to the cluster; install its CRD"},
		"missing namespace": {strings.ReplaceAll(deployment, "NS", "nowhere"), "Deployment", cluster.Missing, `namespaces "nowhere" not found`},
		"no namespace":      {strings.ReplaceAll(deployment, ", namespace: NS", ""), "Deployment", cluster.Invalid, "has no namespace"},
	} {
		t.Run(name, func(t *testing.T) { newWorld(t).wantError(c.manifest, c.kind, c.reason, c.says) })
	}
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
		w.apply("shop", serviceManifest("shop"))
		w.wantError(strings.Replace(serviceManifest("shop"), "spec: {", "spec: {clusterIP: None, ", 1), "Service", cluster.Immutable,
			"clusterIP", "may not change once set")
	})
	t.Run("quota", func(t *testing.T) {
		w := newWorld(t)
		w.quota("services")
		w.wantError(serviceManifest("x"), "Service", cluster.Quota, "exceeded quota", "raise the quota")
	})
	t.Run("namespace that goes away", func(t *testing.T) {
		w := newWorld(t)
		// Because of this finalizer, the deletion of the namespace does not end during the test.
		w.apply("shop", strings.Replace(coreManifest("ConfigMap", "hold", ""), "NS", "NS, finalizers: [gitrollout.dev/test]", 1))
		must(t, w.cluster.Kube.CoreV1().Namespaces().Delete(context.Background(), w.ns, metav1.DeleteOptions{}))
		w.wantError(deployment, "Deployment", cluster.NamespaceGone, "is being terminated")
		w.apply("shop", coreManifest("ConfigMap", "hold", ""))
	})
}

// quota creates a quota of 0 for a resource. It returns when the API server enforces the quota.
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
	set := documents(shop, coreManifest("Service", "bad", "spec: {ports: [{port: 99999}]}"))
	w.wantWrites(0, "checking", func() {
		err := w.Check(t.Context(), "shop", w.objects(set))
		if refusal := wantRefusal(t, "Check", err, cluster.Invalid); refusal.Ref.Name != "bad" {
			t.Errorf("error is %v, want one about Service bad", err)
		}
		must(t, w.Check(t.Context(), "shop", w.objects(shop)))
	})
	if got := w.apply("shop", shop); len(got.Unchanged) != 0 {
		t.Errorf("%v were there", got.Unchanged)
	}
	made := w.requests(func() {
		must(t, w.Check(t.Context(), "shop", w.objects(strings.Replace(shop, "shop:v1", "shop:v2", 1))))
	})
	if made != (cluster.Stats{DryRuns: 1}) {
		t.Errorf("checking a release that changes one object took %+v", made)
	}
}

func TestSetWithItsNamespaceAndItsCRD(t *testing.T) {
	w := newWorld(t)
	group := w.ns + ".example.com"
	set := documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-own}",
		definition(group, "v1", "Thing", "things", "{type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}"),
		"apiVersion: "+group+"/v1\nkind: Thing\nmetadata: {name: one, namespace: NS-own}\nspec: {size: 1}",
		strings.Replace(withoutReplicas, "NS", "NS-own", 1))
	ctx := context.Background()
	t.Cleanup(func() {
		_ = w.cluster.Kube.CoreV1().Namespaces().Delete(ctx, w.ns+"-own", metav1.DeleteOptions{})
		_ = w.deleteDefinition("things." + group)
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
	compare.CheckError(t, "a version that is not served", w.Check(ctx, "shop", w.objects(newer)),
		"kind Thing."+group+" is not served by the cluster as v2, but as v1; change its apiVersion")
	must(t, w.deleteDefinition("things."+group))
	w.until("CRD and object back", func() (bool, string) {
		result, err := w.Apply(ctx, "shop", w.objects(set))
		if err != nil {
			return false, err.Error()
		}
		return len(result.Unchanged) == 2, ""
	})
}

func TestServerThatDoesNotAnswerIsOneError(t *testing.T) {
	client, err := cluster.New(&rest.Config{Host: "https://127.0.0.1:1"}, cluster.Options{})
	must(t, err)
	err = client.Start(context.Background())
	if !wantRefusal(t, "Start", err, cluster.Unavailable).Temporary() {
		t.Errorf("%v is not temporary", err)
	}
	client.Wait()
}
