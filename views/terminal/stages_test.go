package terminal

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestFleetView checks that the matrix fits 80 columns, and that one app's view and -o wide have a line for each cluster.
func TestFleetView(t *testing.T) {
	in := func(cluster, stage, version string, age time.Duration, phase rollout.Phase, waiting string) status.FleetCluster {
		return status.FleetCluster{Cluster: cluster, Stage: stage, Version: version, Commit: "9f31c0a4d2e8", Since: before(age), Phase: phase,
			Waiting: waiting}
	}
	waits := in("prod-ap", "prod", "checkout:v2", 75*time.Hour, rollout.Healthy, "waits for stage staging")
	waits.Held = &rollout.Held{Reason: rollout.HeldStage}
	other := waits
	other.Cluster = "prod-eu"
	f := status.Fleet{Stages: []string{"dev", "staging", "prod", ""}, Notes: []string{"cluster prod-us: state branch gitrollout/state/prod-us " +
		"does not exist: run gitrollout in cluster prod-us, or take the cluster out of its stage"}, Apps: []status.FleetApp{
		{App: "pay", Clusters: []status.FleetCluster{in("lab", "", "9f31c0a", 0, rollout.Healthy, "")}},
		{App: "shop", Clusters: []status.FleetCluster{
			in("dev", "dev", "checkout:v3", 2*time.Hour, rollout.Healthy, ""),
			in("staging-eu", "staging", "checkout:v3", 12*time.Minute, rollout.Healthy, "soaks until 14:05 UTC"),
			in("staging-us", "staging", "checkout:v3", 5*time.Minute, rollout.Progressing,
				"shop/checkout: 3 of 10 pods of the new version are ready, and the step waits for 5"),
			waits, other, in("prod-sa", "prod", "checkout:v3, sidecar:v1", time.Minute, rollout.Healthy, ""),
			{Cluster: "prod-us", Stage: "prod", Phase: status.Unknown, Waiting: "no record: see the note"}}}}}
	golden(t, "fleet", Fleet(f, false, Look{Width: 80, Now: at()}))
	golden(t, "fleet-one", Fleet(status.Fleet{Stages: f.Stages[:3], Apps: f.Apps[1:]}, true, Look{Width: 80, Now: at()}))
	golden(t, "fleet-wide", Fleet(f, false, Look{Wide: true, Now: at(), Color: true}))
}
