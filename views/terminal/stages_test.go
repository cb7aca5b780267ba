package terminal_test

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// TestFleetView checks that the matrix fits 80 columns, and that one app's view and -o wide have a line for each cluster.
func TestFleetView(t *testing.T) {
	in := func(cluster, image string, age time.Duration, phase rollout.Phase) status.App {
		return status.App{Cluster: cluster, Phase: phase, Stable: &status.Release{Images: []string{image}, Commit: "9f31c0a4d2e8",
			Since: before(age)}}
	}
	soaks, flies, waits := in("staging-eu", "checkout:v3", 12*time.Minute, rollout.Healthy), in("staging-us", "checkout:v3",
		5*time.Minute, rollout.Progressing), in("prod-ap", "checkout:v2", 75*time.Hour, rollout.Healthy)
	soaks.Waiting, flies.Reason = "soaks until 14:05 UTC", "3 of 10 pods of the new version are ready, and the step waits for 5"
	waits.Held = &rollout.Held{Reason: rollout.HeldStage, Message: "release h1-7b4e2a91d0 of 5832d1e by Ann waits for stage staging"}
	other, long := waits, in("prod-sa", "checkout:v3-with-a-long-tag", time.Minute, rollout.Healthy)
	other.Cluster = "prod-eu"
	f := status.Fleet{Stages: []string{"dev", "staging", "prod", ""}, Notes: []string{"cluster prod-us: state branch " +
		"gitrollout/state/prod-us does not exist: run gitrollout in cluster prod-us, or take the cluster out of its stage"},
		Apps: []status.FleetApp{
			{App: "pay", Stages: map[string][]status.App{
				"": {{Cluster: "lab", Phase: rollout.Healthy, Source: &rollout.Commit{ID: "9f31c0a4d2e8"}}}, "prod": {waits}}},
			{App: "shop", Stages: map[string][]status.App{"dev": {in("dev", "checkout:v3", 2*time.Hour, rollout.Healthy)},
				"staging": {soaks, flies}, "prod": {waits, other, long,
					{Cluster: "prod-us", Phase: status.Unknown, Reason: "no readable record: see the note"}}}}}}
	golden(t, "fleet", terminal.Fleet(f, false, terminal.Look{Width: 80, Now: at()}))
	golden(t, "fleet-one", terminal.Fleet(status.Fleet{Stages: f.Stages[:3], Apps: f.Apps[1:]}, true, terminal.Look{Width: 80, Now: at()}))
	golden(t, "fleet-wide", terminal.Fleet(f, false, terminal.Look{Wide: true, Now: at(), Color: true}))
}
