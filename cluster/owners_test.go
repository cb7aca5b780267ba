package cluster_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
)

const anyContent = "{type: object, x-kubernetes-preserve-unknown-fields: true}"

// mine contains the app's manifests in Git.
var mine = documents(coreManifest("Service", "shop", "spec: {selector: {app: shop}, ports: [{port: 80}]}"),
	coreManifest("ConfigMap", "shop", ""), withoutReplicas)

// TestForeignControllers checks which signs of other controllers OtherOwners finds on an app's objects. Each sign has the controller's
// name, and a fix that makes the controller give up the object. OtherOwners must write nothing.
func TestForeignControllers(t *testing.T) {
	const service, deployment = 0, 2
	owned := func(w *world, o map[string]any, group, kind string) {
		o["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
			"apiVersion": group, "kind": kind, "name": "shop", "uid": w.uidOf(group, kind), "controller": true,
		}}
	}
	meta := func(o map[string]any, field, name, value string) {
		o["metadata"].(map[string]any)[field] = map[string]any{name: value}
	}
	cases := map[string]struct {
		make  func(w *world, all []rollout.Object) // changes the app's objects before they are created in the cluster
		by    string
		sign  string
		warns bool
	}{
		"no sign": {func(*world, []rollout.Object) {}, "", "", false},
		"a label": {func(_ *world, all []rollout.Object) { meta(all[deployment], "labels", "team", "a") }, "", "", false},
		"Argo's pods": {func(w *world, all []rollout.Object) {
			set := all[deployment]
			set["kind"], set["metadata"].(map[string]any)["name"] = "ReplicaSet", "shop-5d8f7c9b4"
			meta(set, "labels", "app", "shop")
			owned(w, set, "argoproj.io/v1alpha1", "Rollout")
		}, "Argo Rollouts", "Rollout shop owns ReplicaSet shop-5d8f7c9b4", false},
		"Argo's Service": {func(_ *world, all []rollout.Object) {
			all[service]["spec"].(map[string]any)["selector"] = map[string]any{"app": "shop", "rollouts-pod-template-hash": "5d8f7c9b4"}
		}, "Argo Rollouts", "selects pods by rollouts-pod-template-hash", false},
		"Argo's annotation": {func(_ *world, all []rollout.Object) {
			meta(all[service], "annotations", "argo-rollouts.argoproj.io/managed-by-rollouts", "shop")
		}, "Argo Rollouts", "managed-by-rollouts: shop", false},
		"Flagger's Deployment": {func(w *world, all []rollout.Object) {
			owned(w, all[deployment], "flagger.app/v1beta1", "Canary")
		}, "Flagger", "Canary shop owns it", false},
		"Flagger's primary": {func(w *world, all []rollout.Object) {
			all[deployment]["metadata"].(map[string]any)["name"] = "shop-primary"
			owned(w, all[deployment], "flagger.app/v1beta1", "Canary")
		}, "Flagger", "owns Deployment shop-primary", false},
		"Flagger's Service": {func(w *world, all []rollout.Object) {
			owned(w, all[service], "flagger.app/v1beta1", "Canary")
		}, "Flagger", "deleting the Canary deletes the Service", false},
		"Kruise's label": {func(_ *world, all []rollout.Object) {
			meta(all[deployment], "labels", "rollouts.kruise.io/workload-type", "deployment")
		}, "Kruise Rollouts", "the label rollouts.kruise.io/workload-type", false},
		"Kruise's release": {func(_ *world, all []rollout.Object) {
			meta(all[deployment], "annotations", "rollouts.kruise.io/in-progressing", "{}")
		}, "Kruise Rollouts", "the annotation rollouts.kruise.io/in-progressing", false},
		"Argo CD": {func(*world, []rollout.Object) {}, "Argo CD", "less than 10 minutes ago", true},
		"Flux":    {func(*world, []rollout.Object) {}, "Flux", "less than 10 minutes ago", true},
		"another app": {func(w *world, _ []rollout.Object) { w.wants("other", mine); w.apply("other", mine) },
			"another app", "is in app shop and in app other", false},
	}
	managers := map[string]string{"Argo CD": "argocd-controller", "Flux": "kustomize-controller"}
	newWorld(t).apply("others", documents(definition("argoproj.io", "v1alpha1", "Rollout", "rollouts", anyContent),
		definition("flagger.app", "v1beta1", "Canary", "canaries", anyContent)))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for version, kind := range map[string]string{"argoproj.io/v1alpha1": "Rollout", "flagger.app/v1beta1": "Canary"} {
				w.ssa(rollout.Object{"apiVersion": version, "kind": kind,
					"metadata": map[string]any{"name": "shop", "namespace": w.ns}}, "others")
			}
			live := w.objects(mine)
			c.make(w, live)
			for _, o := range live {
				w.ssa(o, cmp.Or(managers[c.by], "people"))
			}
			if live[deployment].Kind() == "ReplicaSet" {
				w.until("its pods", func() (bool, string) {
					set, err := w.cluster.Kube.AppsV1().ReplicaSets(w.ns).Get(t.Context(), "shop-5d8f7c9b4", metav1.GetOptions{})
					return err == nil && set.Status.Replicas > 0, fmt.Sprint(err)
				})
			}
			before := w.Stats()
			signs, err := w.OtherOwners(t.Context(), "shop", w.objects(mine), time.Now())
			if err != nil || w.Stats().Writes != before.Writes {
				t.Errorf("error %v, %d writes", err, w.Stats().Writes-before.Writes)
			}
			dry, err := cluster.NewDryRunner(w.cluster.Config)
			must(t, err)
			seen, err := dry.OtherOwners(t.Context(), w.objects(mine), time.Now())
			if err != nil || c.by != "another app" && len(seen) != len(signs) {
				t.Errorf("without watches: %v, %v", seen, err)
			}
			if (c.by == "") != (len(signs) == 0) {
				t.Fatalf("signs %v, want %q", signs, c.by)
			}
			for _, sign := range signs[:min(len(signs), 1)] {
				if sign.By != c.by || !strings.Contains(sign.Sign, c.sign) || sign.Warns != c.warns || sign.Fix == "" {
					t.Errorf("sign %+v, want a sign of %s that says %q", sign, c.by, c.sign)
				}
				if kruise := strings.TrimPrefix(c.by, "Kruise"); kruise != c.by && !strings.HasSuffix(sign.Fix, path.Base(c.sign)+"-") {
					t.Errorf("fix %q, want one that removes %s", sign.Fix, c.sign)
				}
			}
		})
	}
}

// ssa applies an object by server-side apply with another tool's field manager.
func (w *world) ssa(o rollout.Object, manager string) {
	w.t.Helper()
	raw, err := json.Marshal(o)
	must(w.t, err)
	yes := true
	_, err = w.cluster.Kube.Discovery().RESTClient().Patch(types.ApplyPatchType).AbsPath(pathOf(o)).Body(raw).
		VersionedParams(&metav1.PatchOptions{FieldManager: manager, Force: &yes}, metav1.ParameterCodec).Do(context.Background()).Raw()
	if err != nil {
		w.t.Fatalf("apply %s: %v", o.Ref(), err)
	}
}

func pathOf(o rollout.Object) string {
	plural := cmp.Or(map[string]string{"Canary": "canaries"}[o.Kind()], strings.ToLower(o.Kind())+"s")
	root := cmp.Or(map[string]string{"v1": "/api/v1"}[o.APIVersion()], "/apis/"+o.APIVersion())
	return root + "/namespaces/" + o.Namespace() + "/" + plural + "/" + o.Name()
}

// uidOf returns the UID of the object of the given kind that is named shop.
func (w *world) uidOf(version, kind string) string {
	w.t.Helper()
	at := pathOf(rollout.Object{"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": w.ns, "name": "shop"}})
	raw, err := w.cluster.Kube.Discovery().RESTClient().Get().AbsPath(at).Do(context.Background()).Raw()
	must(w.t, err)
	var o metav1.PartialObjectMetadata
	must(w.t, json.Unmarshal(raw, &o))
	return string(o.UID)
}
