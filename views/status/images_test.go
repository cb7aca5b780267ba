package status_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

func TestImagesText(t *testing.T) {
	for _, c := range []struct{ images, other, want string }{
		{"acme/web:v2 proxy:1", "acme/web:v1 proxy:1", "web:v1 → v2"},
		{"acme/web:v2 proxy:2", "acme/web:v1 proxy:1", "web:v1 → v2, proxy:1 → 2"},
		{"other/web:v1", "acme/web:v1", "web:v1"}, // an image of the same name in another repository
		{"web@sha256:1111111111", "web@sha256:2222222222", "web@2222222 → 1111111"},
		{"web", "web:v1", "web"}, {"site:v1", "web:v1", "site:v1"}, {"web:v1 proxy:1", "web:v1 proxy:1", "web:v1"},
		{"web:v1", "", "web:v1"}, {"", "web:v1", ""},
	} {
		compare.CheckNamed(t, c.images+" beside "+c.other, c.want, status.ImagesText(strings.Fields(c.images), strings.Fields(c.other)))
	}
}

// TestImagesOfAnOlderRecord checks that a release whose record has no images gets the images from the render of its commit.
func TestImagesOfAnOlderRecord(t *testing.T) {
	in := paused()
	in.State.Stable.Images = []string{"web:v1"}
	container := map[string]any{"image": "web:v2"}
	in.Head.Render.Objects = []rollout.Object{{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "shop", "labels": map[string]any{"team": "pay"}},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}}}
	a := status.Of(in, "prod", nil)
	compare.Check(t, "web:v1 → v2", a.ImagesText())
	compare.Check(t, map[string]string{"team": "pay"}, a.Labels)
	container["image"] = "web:v3" // the render of a newer commit
	in.Head.Render.Commit.ID, in.Source = "c3", nil
	compare.Check(t, "web:v1", status.ImagesText(status.Of(in, "prod", nil).Stable.Images, nil))
	compare.Check(t, 0, len(status.Of(in, "prod", nil).Release.Images))
}

// TestRejectedAuthor checks that a rejected version has an author and a subject only if it was rejected at the head's commit.
func TestRejectedAuthor(t *testing.T) {
	in := paused()
	reject(&in)
	rejected := status.Of(in, "prod", nil).Rejected
	compare.Check(t, "Ann <ann@example.com>, "+in.Head.Render.Commit.Subject, rejected.Author+", "+rejected.Subject)
	in.State.Rejected[0].Commit = "c1" // the head is a newer commit, with the same version
	compare.Check(t, "", status.Of(in, "prod", nil).Rejected.Author)
}
