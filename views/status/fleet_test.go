package status_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestFleetOf checks each cluster's version and wait, from records alone: soaking, in flight, waiting for the previous stage, held by an
// error, without a record, with an unreadable record, and without a stage.
func TestFleetOf(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	v2 := &rollout.Release{Commit: "c2c2c2c2c2", Images: []string{"acme/web:v2"}, Since: noon.Add(-time.Hour)}
	v3 := &rollout.Release{Commit: "c3c3c3c3c3", Images: []string{"acme/web:v3"}, Since: noon.Add(-10 * time.Minute)}
	calm := func(r *rollout.Release) rollout.State {
		return rollout.State{Phase: rollout.Healthy, Source: r.Commit, Stable: r}
	}
	flight, waits, soaked, held, plain := calm(v2), calm(v2), calm(v3), calm(v2), rollout.State{Phase: rollout.Healthy, Source: "c1c1c1c1c1"}
	flight.Phase, flight.Reason, flight.Release = rollout.Progressing, "step 1 of 3", v3
	waits.Held = &rollout.Held{Reason: rollout.HeldStage, Message: "release h1-1 of c3c3c3c by Ann waits for stage staging"}
	held.Held = &rollout.Held{Reason: rollout.HeldFleet, Message: "fleet.yaml is unusable"}
	soaked.Soaked = []rollout.Soaked{{Commit: v3.Commit}}
	soaks, sick := calm(v3), calm(v3)
	soaks.SoaksSince = v3.Since
	sick.Unhealthy = "Deployment shop/web: 0 pods are ready"
	reads := func(s rollout.State) status.ClusterRecords {
		return status.ClusterRecords{States: map[string]*rollout.State{"shop": &s}}
	}
	f := &rollout.Fleet{Freeze: &rollout.Freeze{Reason: "holidays", Until: noon.Add(time.Hour)}, Stages: []rollout.Stage{
		{Name: "dev", Clusters: []string{"dev"}},
		{Name: "staging", Clusters: []string{"eu", "us", "za"}, Soak: time.Hour},
		{Name: "prod", Clusters: []string{"p1", "p2", "p3", "p4"}},
	}}
	records := map[string]status.ClusterRecords{
		"dev": reads(soaked), "eu": reads(soaks), "us": reads(flight), "za": reads(sick), "p1": reads(waits), "p2": reads(held),
		"p3": reads(rollout.State{}), "lab": {States: map[string]*rollout.State{"lone": &plain}},
		"p4": {States: map[string]*rollout.State{"shop": nil}, Problem: "state branch p4 does not exist"},
	}
	got := status.FleetOf(f, records, noon)
	var seen []string
	for _, a := range got.Apps {
		for _, stage := range got.Stages {
			for _, c := range a.Stages[stage] {
				text := cmp.Or(c.Waiting, c.Reason)
				if c.Held != nil {
					text = c.Held.Message
				}
				seen = append(seen, fmt.Sprintf("%s %s %s %s %s: %s", c.App, stage, c.Cluster, c.Phase, c.ImagesText(), text))
			}
		}
	}
	compare.Check(t, []string{
		"lone  lab Healthy : ", "shop dev dev Healthy web:v3: ", "shop staging eu Healthy web:v3: soaks until 12:50 UTC",
		"shop staging us Progressing web:v2 → v3: step 1 of 3", "shop staging za Degraded web:v3: Deployment shop/web: 0 pods are ready",
		"shop prod p1 Healthy web:v2: release h1-1 of c3c3c3c by Ann waits for stage staging",
		"shop prod p2 Healthy web:v2: fleet.yaml is unusable", "shop prod p3 Pending : the app is not deployed yet",
		"shop prod p4 Unknown : no readable record: see the note",
	}, seen)
	compare.Check(t, "c1c1c1c1c1", got.Apps[0].Stages[""][0].Newest().Commit)
	compare.Check(t, []string{"all clusters are frozen: holidays, until 2026-11-20T13:00:00Z",
		"cluster p4: state branch p4 does not exist"}, got.Notes)
	compare.Check(t, []string{"dev", "staging", "prod", ""}, got.Stages)
}
