package main

import (
	"fmt"
	"io"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestPlanRendersTwiceOnlyWhatDiffers plans one changed app of many: the others are rendered once, although one side is
// a commit and the other a folder.
func TestPlanRendersTwiceOnlyWhatDiffers(t *testing.T) {
	const apps = 40
	files := map[string]string{".gitrollout/prod/config.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n"}
	for i := range apps {
		dir := fmt.Sprintf("apps/app%d/", i)
		files[dir+"kustomization.yaml"] = "resources: [../../base]\nnamePrefix: p" + fmt.Sprint(i) + "-\n"
	}
	files["base/kustomization.yaml"] = "resources: [deployment.yaml]\n"
	files["base/deployment.yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {selector: {matchLabels: {a: a}}, template: {metadata: {labels: {a: a}}, spec: {containers: [{name: a, image: \"a:v1\"}]}}}\n"
	repo := gittest.New(t)
	repo.CommitFiles("first", files)
	t.Chdir(repo.Work)
	planned := func() (plan.Plan, int) {
		c := &planCommand{streams: streams{out: io.Discard, err: io.Discard}, noState: true}
		c.source.branch = "main"
		sides, err := c.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := plan.Sides{Cluster: "prod", Own: protected(), Now: time.Now(), Renderer: newRenderer(streams{}, nil)}
		if err := p.Read(sides.base, sides.head); err != nil {
			t.Fatal(err)
		}
		var out plan.Plan
		if err := out.Add(&p, t.Context().Err); err != nil {
			t.Fatal(err)
		}
		return out, p.Renderer.Builds()
	}
	if p, builds := planned(); len(p.Apps) != 0 || builds != apps {
		t.Errorf("nothing has changed: %d apps change, %d builds, want 0 and %d", len(p.Apps), builds, apps)
	}
	repo.Write(map[string]string{"apps/app7/kustomization.yaml": "resources: [../../base]\nnamePrefix: p7-\nimages: [{name: a, newTag: v2}]\n"})
	if p, builds := planned(); len(p.Apps) != 1 || p.Apps[0].App != "app7" || builds != apps+1 || p.Unchanged != apps-1 {
		t.Errorf("one app has changed: %d apps change, %d builds, want 1 and %d", len(p.Apps), builds, apps+1)
	}
	repo.Write(map[string]string{"base/deployment.yaml": files["base/deployment.yaml"] + "# a comment\n"})
	if p, builds := planned(); len(p.Apps) != 1 || builds != 2*apps {
		t.Errorf("a comment has changed for all: %d apps change, %d builds, want 1 and %d", len(p.Apps), builds, 2*apps)
	}
	repo.Write(map[string]string{"base/deployment.yaml": files["base/deployment.yaml"][:len(files["base/deployment.yaml"])-1] + " \n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"})
	if p, _ := planned(); len(p.Apps) != apps || len(p.Shared) != 1 || p.Shared[0].File != "base/deployment.yaml" || len(p.Shared[0].Apps) != apps {
		t.Errorf("a shared file has changed: %d apps change, shared %+v", len(p.Apps), p.Shared)
	}
}
