package rollout_test

import (
	"cmp"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestRefText(t *testing.T) {
	for want, ref := range map[string]rollout.Ref{
		"core/Service/shop/web":    {Kind: "Service", Namespace: "shop", Name: "web"},
		"apps/Deployment/shop/web": {Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
		"core/Namespace/-/shop":    {Kind: "Namespace", Name: "shop"},
		"networking.k8s.io/Ingress/shop/web.example.com": {
			Group: "networking.k8s.io", Kind: "Ingress", Namespace: "shop", Name: "web.example.com",
		},
		"rbac.authorization.k8s.io/ClusterRole/-/system:reader": {
			Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:reader",
		},
	} {
		text, err := ref.MarshalText()
		must(t, err)
		compare.Check(t, want, string(text))
		compare.Check(t, want, ref.String())
		var back rollout.Ref
		must(t, back.UnmarshalText(text))
		compare.CheckNamed(t, "round trip", ref, back)
	}
	for _, bad := range []string{"", "a", "core/Service/shop", "core/Service/shop/web/x", "core//shop/web", "core/Service/shop/",
		"/Service/shop/web", "core/Service//web"} {
		var r rollout.Ref
		if err := r.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("UnmarshalText(%q) = %v, want an error", bad, r)
		}
	}
}

func TestRefCompare(t *testing.T) {
	ordered := []rollout.Ref{
		{Kind: "Namespace", Name: "shop"},
		{Kind: "Service", Namespace: "a", Name: "z"},
		{Kind: "Service", Namespace: "b", Name: "a"},
		{Kind: "Service", Namespace: "b", Name: "b"},
		{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "a"},
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, want := a.Compare(b), cmp.Compare(i, j); got != want {
				t.Errorf("%v.Compare(%v) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestWorkloadText(t *testing.T) {
	for _, bad := range []string{"", "web", "/web", "shop/", "a/b/c", "StatefulSet/shop/web/x", "CronJob/shop/web", "StatefulSet//web"} {
		var w rollout.Workload
		if err := w.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("UnmarshalText(%q) = %v, want an error", bad, w)
		}
	}
}

func TestObject(t *testing.T) {
	o := rollout.Object{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop",
			"annotations": map[string]any{rollout.AnnotationPrune: "disabled", "number": int64(1)},
		},
		"spec": map[string]any{"list": []any{map[string]any{"a": int64(1)}}},
	}
	compare.Check(t, web.Ref(), o.Ref())
	compare.Check(t, "disabled", o.Annotation(rollout.AnnotationPrune))
	compare.CheckNamed(t, "an annotation that is not a string", "", o.Annotation("number"))
	core := rollout.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"}}
	compare.Check(t, rollout.Ref{Kind: "Namespace", Name: "shop"}, core.Ref())
	for name, strange := range map[string]rollout.Object{"Nil": nil, "Empty": {},
		"WrongTypes": {"apiVersion": int64(1), "kind": []any{}, "metadata": "x"}} {
		compare.CheckNamed(t, name, rollout.Ref{}, strange.Ref())
		if m := strange.Map("metadata", "labels"); m != nil {
			t.Errorf("%s: Map is %v, want nil", name, m)
		}
	}

	c := o.Copy()
	if diff := compare.Diff(o, c); diff != "" {
		t.Fatalf("copy (-want +got):\n%s", diff)
	}
	c.Map("spec")["list"].([]any)[0].(map[string]any)["a"] = int64(2)
	c.Map("metadata", "annotations")["new"] = "x"
	if o.Map("spec")["list"].([]any)[0].(map[string]any)["a"] != int64(1) || o.Annotation("new") != "" {
		t.Error("a change of the copy changed the original")
	}
}

// TestKindsOfWorkloads checks the text form of workloads: without a kind for a Deployment, and with a kind for all other workloads.
func TestKindsOfWorkloads(t *testing.T) {
	for want, kind := range map[string]rollout.Ref{
		"shop/web":                            {Group: "apps", Kind: "Deployment"},
		"StatefulSet/shop/web":                {Group: "apps", Kind: "StatefulSet"},
		"DaemonSet/shop/web":                  {Group: "apps", Kind: "DaemonSet"},
		"ReplicaSet.apps/shop/web":            {Group: "apps", Kind: "ReplicaSet"},
		"Deployment.example.com/shop/web":     {Group: "example.com", Kind: "Deployment"},
		"StatefulSet.apps.kruise.io/shop/web": {Group: "apps.kruise.io", Kind: "StatefulSet"},
	} {
		ref := rollout.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: "shop", Name: "web"}
		w, is := rollout.WorkloadOf(ref)
		if is == strings.Contains(want, ".") {
			t.Errorf("that %s is a workload whatever documents say is %t", ref, is)
		}
		text, err := w.MarshalText()
		must(t, err)
		compare.Check(t, want, string(text))
		compare.Check(t, ref, w.Ref())
		for _, text := range []string{string(text), w.String()} {
			var back rollout.Workload
			must(t, back.UnmarshalText([]byte(text)))
			compare.Check(t, w, back)
		}
	}
	var spelled rollout.Workload
	must(t, spelled.UnmarshalText([]byte("Deployment/shop/web")))
	compare.Check(t, web, spelled)
}

// TestHoldsData checks the kinds of objects whose deletion would lose users' data.
func TestHoldsData(t *testing.T) {
	for ref, want := range map[rollout.Ref]bool{
		{Kind: "Namespace"}: true, {Kind: "PersistentVolumeClaim"}: true, {Kind: "PersistentVolume"}: true,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true, {Kind: "ConfigMap"}: false,
		{Group: "example.com", Kind: "Namespace"}: false,
	} {
		compare.CheckNamed(t, ref.String(), want, ref.HoldsData())
	}
}

func TestForeignText(t *testing.T) {
	f := rollout.Foreign{Ref: rollout.Ref{Kind: "Deployment", Namespace: "a", Name: "b"}, By: "X", Sign: "the sign"}
	compare.Check(t, "Deployment a/b is managed by X: the sign", f.String())
	f.Ref.Namespace = ""
	compare.Check(t, "Deployment b is managed by X: the sign", f.String())
}
