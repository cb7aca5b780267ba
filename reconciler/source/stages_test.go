package source

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

const fleetHead = "apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\nstages:\n"

// TestFleetOfABranch checks the stage and the freeze that fleet.yaml gives a cluster. The longer of two freezes counts. An unusable file
// leaves the branch readable.
func TestFleetOfABranch(t *testing.T) {
	prod := "- {name: prod, clusters: ['pro?'], maxUpdate: 1}\n"
	b := changed(t, map[string]string{rollout.FleetPath: fleetHead + prod + "freeze: {reason: sale, until: 2027-01-01T00:00:00Z}\n"})
	if s := b.Stage(); s == nil || s.Name != "prod" || b.Unstaged != nil {
		t.Errorf("stage %+v, %v", s, b.Unstaged)
	}
	compare.CheckNamed(t, "freeze", "sale", b.Calendar("shop").Freeze.Reason)
	b = changed(t, map[string]string{rollout.FleetPath: fleetHead + prod + "freeze: {reason: sale, until: 2027-01-01T00:00:00Z}\n",
		rollout.FreezePath("prod"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: holidays\n"})
	compare.CheckNamed(t, "the longer freeze", "holidays", b.Calendar("shop").Freeze.Reason)
	b = changed(t, map[string]string{rollout.FleetPath: fleetHead + "- {name: dev, clusters: [dev]}\n"})
	if b.Stage() != nil || !rollout.IsInvalid(b.Unstaged) || len(b.Apps) != 2 {
		t.Errorf("an unusable fleet.yaml: %+v", b)
	}
	if b = changed(t, nil); b.Fleet != nil || b.Unstaged != nil || b.Calendar("shop").Freeze != nil {
		t.Errorf("without fleet.yaml: %+v", b)
	}
}
