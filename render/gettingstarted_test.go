package render_test

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// goldenHash is the hash of the getting-started template. Never change it. Instead, fix the code that changed the hash.
// With another hash, the next upgrade of gitrollout would release every app.
const goldenHash = "h1-0161a62003"

func TestGettingStarted(t *testing.T) {
	got := mustRender(t, render.New(render.InProcess{}), readFiles(t, "testdata/getting-started"),
		rollout.App{Name: "demo", Namespace: "default"})
	weight := func(n int) rollout.Step { return rollout.Step{SetWeight: &n} }
	pause := rollout.Step{Pause: &rollout.Pause{Duration: new(10 * time.Second)}}
	workload := rollout.Workload{Namespace: "default", Name: "rollouts-demo"}
	want := []rollout.Spec{{
		Name:     "rollouts-demo",
		Workload: workload,
		Canary: &rollout.Canary{Steps: []rollout.Step{
			weight(20), {Pause: &rollout.Pause{}}, weight(40), pause, weight(60), pause, weight(80), pause,
		}},
		Replicas: new(5), MaxSurge: quarter, MaxUnavailable: quarter, ProgressDeadlineSeconds: 600, Scaling: rollout.InPlace,
	}}
	compare.CheckNamed(t, "specs", want, got.Specs)
	objects := []string{"core/Service/default/rollouts-demo", "apps/Deployment/default/rollouts-demo"}
	compare.CheckNamed(t, "objects", objects, refs(got.Objects))
	compare.CheckNamed(t, "template hashes", map[rollout.Workload]rollout.Hash{workload: goldenHash}, got.Templates)
	compare.CheckNamed(t, "warnings", []string(nil), got.Warnings)
	compare.CheckNamed(t, "files", []string{"kustomization.yaml", "rollout.yaml", "service.yaml"}, got.Files)
}

func refs(objects []rollout.Object) []string {
	return rollout.Mapped(objects, func(o rollout.Object) string { return o.Ref().String() })
}
