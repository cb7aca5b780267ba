package terminal

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/views/status"
)

// TestPodsThatAreAsked checks the view of a step that sets the number of canary pods (setCanaryScale) and no weight.
func TestPodsThatAreAsked(t *testing.T) {
	w := status.Workload{Workload: "shop/web", Strategy: "canary", Moving: true, Step: 1, Replicas: 5, Pods: 2, RealWeight: 20,
		Steps: []status.Step{{Text: "setCanaryScale replicas 2", Status: "current"}}, Revisions: []status.Revision{{Role: "canary"}}}
	const bar = "  ██████▒▒▒▒▒▒░░░░░░░░░░░░░░░░░░  2 pods asked, " +
		"20% of the ready pods\n"
	compare.Check(t, bar, drawWeight(w, Look{}))
	if got := Line(status.App{Workloads: []status.Workload{w}}); !strings.HasSuffix(got, "(setCanaryScale replicas 2, 2 pods)") {
		t.Errorf("%q", got)
	}
	_, _, weight, _ := summary(status.App{Workloads: []status.Workload{w}})
	compare.CheckNamed(t, "the weight", "2 pods", weight)
}

// TestRolesWithoutAStage checks the labels of revisions without a role. A revision with a hash is labelled "old" if it
// has no desired pods, and does not have the workload's current template.
func TestRolesWithoutAStage(t *testing.T) {
	for want, r := range map[string]status.Revision{
		"pods     74844b988f  2/2 ready": {Desired: 2, Ready: 2},
		"pods     74844b988f  0/0 ready": {Current: true},
		"old      74844b988f  0/0 ready": {},
	} {
		r.Hash, r.PodHash = "h1-1", "74844b988f"
		compare.Check(t, want, strings.TrimSpace(drawRevision(r, Look{})))
	}
}
