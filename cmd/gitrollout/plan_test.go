package main

import (
	"fmt"
	"io"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestPlanRendersTwiceOnlyWhatDiffers compares a commit with a folder in which one of 40 apps is changed. If both have the same files of an
// app, plan must render the app only once.
func TestPlanRendersTwiceOnlyWhatDiffers(t *testing.T) {
	const apps = 40
	const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {a: a}}
  template: {metadata: {labels: {a: a}}, spec: {containers: [{name: a, image: "a:v1"}]}}
`
	files := map[string]string{
		rollout.ConfigPath("prod"): testConfig, "base/kustomization.yaml": "resources: [deployment.yaml]\n",
		"base/deployment.yaml": deployment,
	}
	for i := range apps {
		files[fmt.Sprintf("apps/app%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../../base]\nnamePrefix: p%d-\n", i)
	}
	repo := gittest.New(t)
	repo.CommitFiles("first", files)
	t.Chdir(repo.Work)
	planned := func() (plan.Plan, int) {
		c := &planCommand{streams: streams{out: io.Discard, err: io.Discard, globalOptions: &globalOptions{}}, noState: true}
		c.source.branch = "main"
		sides, err := c.open(t.Context())
		must(t, err)
		p := plan.Sides{Cluster: "prod", Own: protected(), Now: time.Now(), Renderer: newRenderer(streams{})}
		must(t, p.Read(sides.base, sides.head))
		var out plan.Plan
		must(t, out.Add(&p, t.Context().Err))
		return out, p.Renderer.Builds()
	}
	if p, builds := planned(); len(p.Apps) != 0 || builds != apps {
		t.Errorf("nothing has changed: %d apps change, %d builds, want 0 and %d", len(p.Apps), builds, apps)
	}
	app7 := "apps/app7/kustomization.yaml"
	repo.Write(map[string]string{app7: files[app7] + "images: [{name: a, newTag: v2}]\n"})
	if p, builds := planned(); len(p.Apps) != 1 || p.Apps[0].App != "app7" || builds != apps+1 || p.Unchanged != apps-1 {
		t.Errorf("one app has changed: %d apps change, %d builds, want 1 and %d", len(p.Apps), builds, apps+1)
	}
	repo.Write(map[string]string{"base/deployment.yaml": deployment + "# a comment\n"})
	if p, builds := planned(); len(p.Apps) != 1 || builds != 2*apps {
		t.Errorf("a comment has changed for all: %d apps change, %d builds, want 1 and %d", len(p.Apps), builds, 2*apps)
	}
	repo.Write(map[string]string{"base/deployment.yaml": deployment + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"})
	p, _ := planned()
	if len(p.Apps) != apps || len(p.Shared) != 1 || p.Shared[0].File != "base/deployment.yaml" || len(p.Shared[0].Apps) != apps {
		t.Errorf("a shared file has changed: %d apps change, shared %+v", len(p.Apps), p.Shared)
	}
}
