package rollout_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestImagesAndLabels checks Images and Labels for a render with two workloads, of which only one has a Rollout document.
func TestImagesAndLabels(t *testing.T) {
	pod := func(images ...string) map[string]any {
		list := rollout.Mapped(images, func(image string) any { return map[string]any{"image": image} })
		return map[string]any{"template": map[string]any{"spec": map[string]any{"containers": list[1:], "initContainers": list[:1]}}}
	}
	object := func(name, team string, images ...string) rollout.Object {
		return rollout.Object{"apiVersion": "apps/v1", "kind": "Deployment", "spec": pod(images...),
			"metadata": map[string]any{"name": name, "namespace": "a", "labels": map[string]any{"team": team}}}
	}
	web, db := rollout.Workload{Namespace: "a", Name: "web"}, rollout.Workload{Namespace: "a", Name: "db"}
	r := &rollout.Render{
		Objects:   []rollout.Object{object("db", "data", "wait", "db:1"), object("web", "shop", "init:1", "web:1", "proxy\n:3", "init:1")},
		Templates: map[rollout.Workload]rollout.Hash{web: "h1", db: "h2"},
	}
	compare.CheckNamed(t, "images of all workloads", []string{"db:1", "wait", "web:1", "proxy :3", "init:1"}, r.Images())
	compare.CheckNamed(t, "labels of all workloads", map[string]string{"team": "data"}, r.Labels())
	r.Specs = []rollout.Spec{{Workload: web}}
	compare.CheckNamed(t, "images of the staged workload", []string{"web:1", "proxy :3", "init:1"}, r.Images())
	compare.CheckNamed(t, "labels of the staged workload", map[string]string{"team": "shop"}, r.Labels())
	r.Objects[1] = object("web", "shop", strings.Fields("a b c d e f g h i j k l m n o p q r s t u v w x y z")...)
	compare.CheckNamed(t, "bounded images", 20, len(r.Images()))
}

func TestShownImages(t *testing.T) {
	for _, c := range []struct{ images, other, want string }{
		{"", "", ""}, {"web:2 proxy:1", "", "web:2"}, {"web:2 proxy:1", "web:1 proxy:1", "web:2"},
		{"web:2 proxy:2", "web:1 proxy:1", "web:2 proxy:2"}, {"web:1 proxy:1", "web:1 proxy:1", "web:1"}, {"", "web:1", ""},
	} {
		got := rollout.ShownImages(strings.Fields(c.images), strings.Fields(c.other))
		compare.CheckNamed(t, c.images+" beside "+c.other, c.want, strings.Join(got, " "))
	}
}

func TestShortImage(t *testing.T) {
	for image, want := range map[string]string{
		"web": "web", "web:v2": "web:v2", "ghcr.io/acme/web:v2": "web:v2", "localhost:5000/web": "web",
		"a/web@sha256:1f2e3d4c5b": "web@1f2e3d4", "a/web:v2@sha256:1f2e3d4c5b": "web:v2@1f2e3d4", "web@sha256": "web@", "web@sha256:1": "web@1",
	} {
		compare.CheckNamed(t, image, want, rollout.ShortImage(image))
	}
}
