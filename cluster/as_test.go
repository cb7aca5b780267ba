package cluster_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestAsAnAccount checks that an app's objects are written with the rights of the app's service account. If RBAC
// forbids a write, the write and its dry run fail with the API server's message. Watches use the client's own rights.
func TestAsAnAccount(t *testing.T) {
	w := newWorld(t)
	deployer, loop := w.account("deployer"), w.account("loop")
	w.permit(deployer, w.ns, rule("get create patch delete", "", "configmaps"))
	w.permitEverywhere(loop, rule("list watch", "*", "*"), rule("get", "", "namespaces", "kube-system"))
	w.permit(loop, w.ns, rule("impersonate", "", "serviceaccounts", deployer.Name))
	ctx := cluster.As(t.Context(), w.ns+"/"+deployer.Name)
	other := w.cluster.Namespace(t)
	config, secret := coreManifest("ConfigMap", "shop", "data: {a: A}"), coreManifest("Secret", "shop", "")
	w.apply("shop", secret)
	w.connect(w.login(loop))
	w.until("its rights are known", func() (bool, string) {
		_, err := w.Apply(ctx, "shop", w.objects(config))
		return err == nil, "its own namespace"
	})
	live, err := w.cluster.Kube.CoreV1().ConfigMaps(w.ns).Get(ctx, "shop", metav1.GetOptions{})
	if err != nil || live.Data["a"] != "A" {
		t.Fatalf("%v, %v", live, err)
	}
	for name, manifest := range map[string]string{
		"another kind":      strings.ReplaceAll(secret, "shop", "till"),
		"another namespace": strings.ReplaceAll(config, "NS", other),
		"no namespace":      "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-more}\n",
	} {
		_, applied := w.Apply(ctx, "shop", w.objects(manifest))
		for what, err := range map[string]error{"apply": applied, "check": w.Check(ctx, "shop", w.objects(manifest))} {
			wantRefusal(t, name+", "+what, err, cluster.Forbidden, "system:serviceaccount:"+w.ns+":deployer")
		}
	}
	_, err = w.SecretData(ctx, w.ns, "nobody", "")
	compare.CheckError(t, "a Secret", err, "deployer")
	if _, err := w.Apply(t.Context(), "shop", w.objects(config+"immutable: true\n")); err == nil {
		t.Error("the client itself may write")
	}
	_, _, err = w.Prune(ctx, "shop", []rollout.Ref{w.ref("", "Secret", "shop")})
	compare.CheckError(t, "prune", err, "deployer")
	_, _, err = w.Prune(ctx, "shop", []rollout.Ref{w.ref("", "ConfigMap", "shop")})
	must(t, err)
}
