package rollout_test

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestPackedRender checks that a packed render has the same objects as before, and that Packed does not return a changed copy's original.
func TestPackedRender(t *testing.T) {
	objects := []rollout.Object{{"kind": "ConfigMap", "data": map[string]any{"a": "<&>"}},
		{"kind": "Odd", "spec": map[string]any{"n": int64(1) << 60, "f": 0.5, "list": []any{nil, true, []any{}, map[string]any{}}}}}
	packed := &rollout.Render{Commit: rollout.Commit{ID: "1"}, Objects: objects, Files: []string{"a.yaml"}}
	packed.Pack()
	if packed.Objects != nil {
		t.Errorf("the packed render has the objects %v", packed.Objects)
	}
	whole := packed.Unpacked()
	compare.CheckNamed(t, "objects", objects, whole.Objects)
	compare.CheckNamed(t, "objects by reference", 2, len(packed.ByRef()))
	odd := rollout.Object{"kind": "Role", "metadata": map[string]any{"name": "a&b"}}
	named := &rollout.Render{Objects: []rollout.Object{odd}}
	compare.CheckNamed(t, "object of a plain render", odd, named.Object(odd.Ref()))
	named.Pack()
	compare.CheckNamed(t, "object", odd, named.Object(odd.Ref()))
	compare.CheckNamed(t, "object of an unpacked render", odd, named.Unpacked().Object(odd.Ref()))
	for _, other := range []rollout.Ref{{Kind: "Role", Name: "b"}, {Kind: "Service", Name: "a&b"}} {
		compare.CheckNamed(t, other.String(), rollout.Object(nil), named.Object(other))
	}
	changed, plain := *whole, &rollout.Render{Objects: objects}
	changed.Commit.ID = "2"
	for name, tc := range map[string]struct{ got, want *rollout.Render }{
		"an unpacked render again": {whole.Unpacked(), whole}, "its packed render": {whole.Packed(), packed},
		"a packed render again": {packed.Packed(), packed}, "a changed copy": {changed.Packed(), &changed},
		"a plain render": {plain.Packed(), plain}, "a plain render's objects": {plain.Unpacked(), plain},
	} {
		if tc.got != tc.want {
			t.Errorf("%s is %p, want %p", name, tc.got, tc.want)
		}
	}
}
