package render

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// goldenHash is the hash of the getting-started template. Never adjust it, repair what changed it: with another hash,
// the next upgrade would release every app.
const goldenHash = "h1-0161a62003"

func TestGettingStarted(t *testing.T) {
	tree := newTree(readFiles(t, "testdata/getting-started"))
	commit := rollout.Commit{ID: "1111111111111111111111111111111111111111"}
	got, err := New(InProcess{}).Render(tree, rollout.App{Name: "demo", Namespace: "default"}, commit)
	if err != nil {
		t.Fatal(err)
	}
	demo := rollout.Workload{Namespace: "default", Name: "rollouts-demo"}
	ten := 10 * time.Second
	weight := func(n int) rollout.Step { return rollout.Step{SetWeight: &n} }
	pause := rollout.Step{Pause: &rollout.Pause{Duration: &ten}}
	five := 5
	quarter := rollout.Amount{Value: 25, Percent: true}
	want := []rollout.Spec{{
		Name:     "rollouts-demo",
		Workload: demo,
		Canary: &rollout.Canary{Steps: []rollout.Step{
			weight(20), {Pause: &rollout.Pause{}}, weight(40), pause, weight(60), pause, weight(80), pause,
		}},
		Replicas: &five, MaxSurge: quarter, MaxUnavailable: quarter, ProgressDeadlineSeconds: 600, Scaling: rollout.InPlace,
	}}
	if diff := compare.Diff(want, got.Specs); diff != "" {
		t.Errorf("specs (-want +got):\n%s", diff)
	}
	if diff := compare.Diff([]string{"core/Service/default/rollouts-demo", "apps/Deployment/default/rollouts-demo"}, refs(got.Objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := compare.Diff(map[rollout.Workload]rollout.Hash{demo: goldenHash}, got.Templates); diff != "" {
		t.Errorf("template hashes (-want +got):\n%s", diff)
	}
	if len(got.Warnings) > 0 {
		t.Errorf("warnings: %q", got.Warnings)
	}
	if diff := compare.Diff([]string{"kustomization.yaml", "rollout.yaml", "service.yaml"}, got.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func refs(objects []rollout.Object) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.Ref().String())
	}
	return out
}
