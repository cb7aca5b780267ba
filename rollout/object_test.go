package rollout

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

func TestRefText(t *testing.T) {
	for name, tc := range map[string]struct {
		ref  Ref
		text string
	}{
		"Core":    {Ref{Kind: "Service", Namespace: "shop", Name: "web"}, "core/Service/shop/web"},
		"Group":   {Ref{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, "apps/Deployment/shop/web"},
		"Cluster": {Ref{Kind: "Namespace", Name: "shop"}, "core/Namespace/-/shop"},
		"Dotted": {Ref{Group: "networking.k8s.io", Kind: "Ingress", Namespace: "shop", Name: "web.example.com"},
			"networking.k8s.io/Ingress/shop/web.example.com"},
		"WithColon": {Ref{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:reader"},
			"rbac.authorization.k8s.io/ClusterRole/-/system:reader"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := tc.ref.MarshalText()
			if err != nil || string(text) != tc.text || tc.ref.String() != tc.text {
				t.Errorf("text is %q (%v), want %q", text, err, tc.text)
			}
			var back Ref
			must(t, back.UnmarshalText(text))
			compare.CheckNamed(t, "round trip", tc.ref, back)
		})
	}
	for _, bad := range []string{"", "a", "core/Service/shop", "core/Service/shop/web/x", "core//shop/web", "core/Service/shop/",
		"/Service/shop/web", "core/Service//web"} {
		var r Ref
		if err := r.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("UnmarshalText(%q) = %v, want an error", bad, r)
		}
	}
}

func TestRefCompare(t *testing.T) {
	ordered := []Ref{
		{Kind: "Namespace", Name: "shop"},
		{Kind: "Service", Namespace: "a", Name: "z"},
		{Kind: "Service", Namespace: "b", Name: "a"},
		{Kind: "Service", Namespace: "b", Name: "b"},
		{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "a"},
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, want := a.Compare(b), compareInt(i, j); got != want {
				t.Errorf("%v.Compare(%v) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func compareInt(i, j int) int {
	switch {
	case i < j:
		return -1
	case i > j:
		return 1
	default:
		return 0
	}
}

func TestWorkloadText(t *testing.T) {
	text, err := web.MarshalText()
	if err != nil || string(text) != "shop/web" {
		t.Errorf("text is %q (%v), want shop/web", text, err)
	}
	var back Workload
	if err := back.UnmarshalText(text); err != nil || back != web {
		t.Errorf("round trip gave %v (%v), want %v", back, err, web)
	}
	if got, want := web.Ref().String(), "apps/Deployment/shop/web"; got != want {
		t.Errorf("Ref is %s, want %s", got, want)
	}
	for _, bad := range []string{"", "web", "/web", "shop/", "a/b/c", "StatefulSet/shop/web/x", "CronJob/shop/web", "StatefulSet//web"} {
		var w Workload
		if err := w.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("UnmarshalText(%q) = %v, want an error", bad, w)
		}
	}
}

func TestObject(t *testing.T) {
	o := Object{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop",
			"annotations": map[string]any{AnnotationPrune: "disabled", "number": int64(1)},
		},
		"spec": map[string]any{"list": []any{map[string]any{"a": int64(1)}}},
	}
	if got := o.Ref(); got != web.Ref() {
		t.Errorf("Ref is %v, want %v", got, web.Ref())
	}
	if got := o.Annotation(AnnotationPrune); got != "disabled" {
		t.Errorf("annotation is %q, want disabled", got)
	}
	if got := o.Annotation("number"); got != "" {
		t.Errorf("an annotation that is no text is %q, want nothing", got)
	}
	if got := (Object{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": "shop"}}).Ref(); got != (Ref{Kind: "Namespace", Name: "shop"}) {
		t.Errorf("Ref of a core object is %v", got)
	}
	for name, strange := range map[string]Object{"Nil": nil, "Empty": {},
		"WrongTypes": {"apiVersion": int64(1), "kind": []any{}, "metadata": "x"}} {
		if got := strange.Ref(); got != (Ref{}) {
			t.Errorf("%s: Ref is %v, want nothing", name, got)
		}
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

// TestKindsOfWorkloads checks that a Deployment is written without its kind, and all others with it.
func TestKindsOfWorkloads(t *testing.T) {
	for _, c := range []struct {
		ref  Ref
		want string
	}{
		{Ref{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, "shop/web"},
		{Ref{Group: "apps", Kind: "StatefulSet", Namespace: "shop", Name: "web"}, "StatefulSet/shop/web"},
		{Ref{Group: "apps", Kind: "DaemonSet", Namespace: "shop", Name: "web"}, "DaemonSet/shop/web"},
		{Ref{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web"}, "ReplicaSet.apps/shop/web"},
		{Ref{Group: "example.com", Kind: "Deployment", Namespace: "shop", Name: "web"}, "Deployment.example.com/shop/web"},
		{Ref{Group: "apps.kruise.io", Kind: "StatefulSet", Namespace: "shop", Name: "web"}, "StatefulSet.apps.kruise.io/shop/web"},
	} {
		w, is := WorkloadOf(c.ref)
		if is == strings.Contains(c.want, ".") {
			t.Errorf("that %s is a workload whatever documents say is %t", c.ref, is)
		}
		var back Workload
		if err := back.UnmarshalText([]byte(w.String())); w.String() != c.want || err != nil || back != w || w.Ref() != c.ref {
			t.Errorf("%s is %s, read as %+v (%v), of %s", c.ref, w, back, err, w.Ref())
		}
	}
	var spelled Workload
	if err := spelled.UnmarshalText([]byte("Deployment/shop/web")); err != nil || spelled != web {
		t.Errorf("%+v, %v", spelled, err)
	}
}

// TestHoldsData checks whose deletion would delete users' data.
func TestHoldsData(t *testing.T) {
	for _, c := range []struct {
		ref  Ref
		want bool
	}{
		{Ref{Kind: "Namespace"}, true}, {Ref{Kind: "PersistentVolumeClaim"}, true}, {Ref{Kind: "PersistentVolume"}, true},
		{Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, true}, {Ref{Kind: "ConfigMap"}, false},
		{Ref{Group: "example.com", Kind: "Namespace"}, false},
	} {
		if got := c.ref.HoldsData(); got != c.want {
			t.Errorf("%s: %t", c.ref, got)
		}
	}
}

func TestForeignText(t *testing.T) {
	f := Foreign{Ref: Ref{Kind: "Deployment", Namespace: "a", Name: "b"}, By: "X", Sign: "the sign"}
	if got := f.String(); got != "Deployment a/b is in the hands of X: the sign" {
		t.Error(got)
	}
	if f.Ref.Namespace = ""; f.String() != "Deployment b is in the hands of X: the sign" {
		t.Error(f)
	}
}
