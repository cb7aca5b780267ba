package status

import (
	"errors"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestFleetOf checks each cluster's version and wait, from records alone: soaking, in flight, waiting for the stage before, held by an
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
	sick.Unhealthy = "Deployment shop/web: 0 pods are ready"
	reads := func(s rollout.State, err error) ClusterRecords {
		return ClusterRecords{Apps: []string{"shop"}, Of: func(string) (rollout.State, error) { return s, err }}
	}
	f := &rollout.Fleet{Freeze: &rollout.Freeze{Reason: "holidays", Until: noon.Add(time.Hour)}, Stages: []rollout.Stage{
		{Name: "dev", Clusters: []string{"dev"}},
		{Name: "staging", Clusters: []string{"eu", "us", "za"}, Soak: time.Hour},
		{Name: "prod", Clusters: []string{"p1", "p2", "p3", "p4", "p5"}},
	}}
	records := map[string]ClusterRecords{
		"dev": reads(soaked, nil), "eu": reads(soaks, nil), "us": reads(flight, nil), "za": reads(sick, nil), "p1": reads(waits, nil),
		"p2": reads(held, nil), "p3": reads(rollout.State{}, nil), "p4": reads(rollout.State{}, errors.New("cannot be read")),
		"p5": {Apps: []string{"shop"}, Problem: "state branch p5 does not exist"}, "lab": {Apps: []string{"lone"}, Of: reads(plain, nil).Of},
	}
	got := FleetOf(f, records, "", noon)
	var waiting []string
	for _, a := range got.Apps {
		for _, c := range a.Clusters {
			waiting = append(waiting, a.App+" "+c.Cluster+" "+c.Stage+" "+string(c.Phase)+" "+c.Version+": "+c.Waiting)
		}
	}
	compare.Check(t, []string{
		"lone lab  Healthy c1c1c1c: ", "shop dev dev Healthy web:v3: ", "shop eu staging Healthy web:v3: soaks until 12:50 UTC",
		"shop us staging Progressing web:v3: step 1 of 3",
		"shop za staging Degraded web:v3: Deployment shop/web: 0 pods are ready",
		"shop p1 prod Healthy web:v2: waits for stage staging", "shop p2 prod Healthy web:v2: fleet.yaml is unusable",
		"shop p3 prod Pending : the first deployment", "shop p4 prod Unknown : cannot be read",
		"shop p5 prod Unknown : no record: see the note",
	}, waiting)
	compare.Check(t, []string{"all clusters are frozen: holidays, until 2026-11-20T13:00:00Z",
		"cluster p5: state branch p5 does not exist"}, got.Notes)
	compare.Check(t, []string{"dev", "staging", "prod", ""}, got.Stages)
	one := FleetOf(f, records, "lone", noon)
	compare.Check(t, 1, len(one.Apps))
}
