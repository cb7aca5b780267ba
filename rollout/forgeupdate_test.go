package rollout_test

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestChanges(t *testing.T) {
	deployment := func(image string, more ...any) rollout.Object {
		return rollout.Object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "n", "name": "shop"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": append([]any{map[string]any{"name": "app", "image": image}}, more...)}}}}
	}
	object := func(kind, name, value string) rollout.Object {
		return rollout.Object{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": "n", "name": name}, "value": value}
	}
	from := &rollout.Render{Objects: []rollout.Object{deployment("shop:1"), object("Service", "shop", "1"), object("ConfigMap", "old", "1"),
		object("ConfigMap", "same", "1")}}
	to := &rollout.Render{Objects: []rollout.Object{deployment("shop:2", map[string]any{"name": "proxy", "image": "p:1"}),
		object("Service", "shop", "2"),
		object("ConfigMap", "new", "1"), object("ConfigMap", "same", "1")}}
	want := []rollout.Change{
		{Ref: rollout.Ref{Kind: "ConfigMap", Namespace: "n", Name: "new"}, Verb: "added"},
		{Ref: rollout.Ref{Kind: "ConfigMap", Namespace: "n", Name: "old"}, Verb: "removed"},
		{Ref: rollout.Ref{Kind: "Service", Namespace: "n", Name: "shop"}, Verb: "changed"},
		{Ref: rollout.Ref{Group: "apps", Kind: "Deployment", Namespace: "n", Name: "shop"}, Verb: "changed", Images: []rollout.ImageChange{
			{Container: "app", From: "shop:1", To: "shop:2"}, {Container: "proxy", To: "p:1"}}},
	}
	compare.Check(t, want, rollout.Changes(from, to))
	if all := rollout.Changes(nil, to); len(all) != 4 || all[0].Verb != "added" {
		t.Errorf("from nothing: %v", all)
	}
	if same := rollout.Changes(to, to); len(same) != 0 {
		t.Errorf("from itself: %v", same)
	}
}

// TestImagesThatGo checks that Changes lists added, removed and changed images by container, with init containers first.
func TestImagesThatGo(t *testing.T) {
	pod := func(inits, containers map[string]string) *rollout.Render {
		list := func(images map[string]string) (all []any) {
			for name, image := range images {
				all = append(all, map[string]any{"name": name, "image": image})
			}
			return append(all, "no container")
		}
		return &rollout.Render{Objects: []rollout.Object{{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{
				"template": map[string]any{"spec": map[string]any{"initContainers": list(inits), "containers": list(containers)}}}}}}
	}
	from, to := pod(map[string]string{"z": "1"}, map[string]string{"a": "1", "b": "1", "c": "1"}), pod(map[string]string{"z": "2"},
		map[string]string{"a": "1", "c": "2", "d": "1"})
	want := []rollout.ImageChange{{"z", "1", "2"}, {"b", "1", ""}, {"c", "1", "2"}, {"d", "", "1"}}
	for range 5 {
		compare.Check(t, want, rollout.Changes(from, to)[0].Images)
	}
}
