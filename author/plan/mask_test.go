package plan_test

import (
	"maps"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestNoValueOfASecretIsShown checks that no diff shows a Secret's value, in any field of the Secret and on either side of the diff.
func TestNoValueOfASecretIsShown(t *testing.T) {
	const value, encoded = "hunter2", "aHVudGVyMg=="
	object := func(fields map[string]any) rollout.Object {
		o := rollout.Object{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "keys", "namespace": "shop"}}
		o["type"] = "Opaque"
		maps.Copy(o, fields)
		return o
	}
	annotated := func(key, text string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "keys", "annotations": map[string]any{key: text, "owner": "ann"}}}
	}
	for name, fields := range map[string]map[string]any{
		"Data":             {"data": map[string]any{"password": encoded}},
		"StringData":       {"stringData": map[string]any{"password": value}},
		"Both":             {"stringData": map[string]any{"password": value}, "data": map[string]any{"password": encoded, "x": encoded}},
		"NumberInData":     {"data": map[string]any{"password": map[string]any{"nested": value}}},
		"DataThatIsAText":  {"data": value},
		"DataThatIsAList":  {"stringData": []any{value}},
		"WrongCase":        {"stringdata": map[string]any{"password": value}},
		"KubectlApplied":   annotated("kubectl.kubernetes.io/last-applied-configuration", `{"data":{"password":"`+encoded+`"}}`),
		"AnotherTool":      annotated("kapp.k14s.io/original", `{"data":{"password":"`+encoded+`"}}`),
		"YAMLInAnnotation": annotated("last-applied", "data:\n  password: "+encoded),
		"LongAnnotation":   annotated("objectset.rio.cattle.io/applied", strings.Repeat("H4sI", 60)+value),
	} {
		t.Run(name, func(t *testing.T) {
			secret, empty := object(fields), object(nil)
			other := object(map[string]any{"data": map[string]any{"password": "b3RoZXI="}})
			for i, pair := range [][2]rollout.Object{
				{nil, secret}, {secret, nil}, {empty, secret}, {secret, empty}, {secret, other}, {other, secret}, {}} {
				text, err := plan.Compare("was", pair[0], "now", pair[1])
				if i == 6 {
					text, err = plan.Masked(secret)
				}
				must(t, err)
				for _, hidden := range []string{value, encoded, "b3RoZXI="} {
					if strings.Contains(text, hidden) {
						t.Errorf("%s is shown:\n%s", hidden, text)
					}
				}
			}
			if before := object(fields); len(before) != len(secret) {
				t.Error("the object itself was changed")
			}
		})
	}
}

// TestMasked checks that the YAML of a Secret has no values, and that the YAML of another object is complete.
func TestMasked(t *testing.T) {
	for want, o := range map[string]rollout.Object{
		"data:\n  password: '***'\nkind: Secret\n":      {"kind": "Secret", "stringData": map[string]any{"password": "hunter2"}},
		"data:\n  password: hunter2\nkind: ConfigMap\n": {"kind": "ConfigMap", "data": map[string]any{"password": "hunter2"}},
	} {
		o["apiVersion"] = "v1"
		text, err := plan.Masked(o)
		must(t, err)
		compare.Check(t, "apiVersion: v1\n"+want, text)
	}
}

func TestCompareTellsThatASecretDiffers(t *testing.T) {
	secret := func(field, password string) rollout.Object {
		return rollout.Object{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "keys"},
			field: map[string]any{"password": password, "same": password[:0]}}
	}
	text, err := plan.Compare("was", secret("stringData", "hunter2"), "now", secret("data", "aHVudGVyMw=="))
	if err != nil || !strings.Contains(text, "+  password: '*** (after)'") || !strings.Contains(text, "   same: '***'") {
		t.Errorf("%v\n%s", err, text)
	}
	if text, err := plan.Compare("was", secret("stringData", "hunter2"), "now", secret("data", "aHVudGVyMg==")); err != nil || text != "" {
		t.Errorf("the same value, written as text and as the server keeps it, differs: %v\n%s", err, text)
	}
	for _, o := range []rollout.Object{config("ConfigMap", "v1"), config("Secret", "example.com/v1")} {
		if text, err := plan.Compare("was", nil, "now", o); err != nil || !strings.Contains(text, "mode: fast") {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

func config(kind, api string) rollout.Object {
	return rollout.Object{"apiVersion": api, "kind": kind, "metadata": map[string]any{"name": "a"}, "data": map[string]any{"mode": "fast"}}
}

// TestCompareIsAboutWhatPeopleWrite checks that diffs omit the fields that the API server sets.
func TestCompareIsAboutWhatPeopleWrite(t *testing.T) {
	o := config("ConfigMap", "v1")
	live := o.Copy()
	live["status"] = map[string]any{"phase": "Active"}
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		live.Map("metadata")[field] = "x"
	}
	live.Map("metadata")["annotations"] = map[string]any{"deployment.kubernetes.io/revision": "3"}
	live.Map("metadata")["labels"] = map[string]any{"gitrollout.dev/applied": "x"}
	if text, err := plan.Compare("was", live, "now", o); err != nil || text != "" {
		t.Errorf("%v\n%s", err, text)
	}
	if len(live.Map("metadata", "labels")) != 1 || live["status"] == nil {
		t.Error("the object itself was changed")
	}
}

// TestShortAnnotationsOfASecretAreShown checks that an annotation of at most 200 bytes and one line is shown, unless
// the annotation may contain an object.
func TestShortAnnotationsOfASecretAreShown(t *testing.T) {
	for text, shown := range map[string]bool{strings.Repeat("a", 200): true, strings.Repeat("a", 201): false, "{": false, "a\nb": false} {
		o := rollout.Object{"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"name": "a", "annotations": map[string]any{"note": text}}}
		got, err := plan.Compare("was", nil, "now", o)
		if err != nil || strings.Contains(got, "***") == shown {
			t.Errorf("%d bytes are shown: %t, want %t (%v):\n%s", len(text), !shown, shown, err, got)
		}
		if !strings.HasPrefix(got, "--- was\n+++ now\n@@") {
			t.Errorf("a difference begins with %s", got)
		}
	}
}
