package console_test

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

// TestEventsOfAnApp checks which objects belong to an app, so that the app's page shows their events. For example, the Deployment web-2
// does not belong to the app of the Deployment web.
func TestEventsOfAnApp(t *testing.T) {
	web := rollout.Workload{Namespace: "shop", Name: "web"}
	of := console.TitlesOf(rollout.State{
		Inventory: []rollout.Ref{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
			{Group: "apps", Kind: "StatefulSet", Namespace: "shop", Name: "db"}, {Kind: "Service", Namespace: "edge", Name: "web"}},
		// The pod edge/web-0 belongs to another app's StatefulSet, and not to the Service edge/web.
		Hooks: []rollout.HookRun{{Name: "shop/migrate", Job: "migrate-1f0c-1"}},
	}, rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{
		web: {Revisions: []rollout.Revision{{Name: "web-5d8f7c9b4"}}}}})
	for title, want := range map[string]bool{
		"Deployment shop/web": true, "ReplicaSet shop/web-5d8f7c9b4": true, "Pod shop/web-5d8f7c9b4-bbbbb": true,
		"StatefulSet shop/db": true, "Pod shop/db-0": true, "Service edge/web": true, "Pod edge/web-0": false,
		"Job shop/migrate-1f0c-1": true, "Pod shop/migrate-1f0c-1-x7x7x": true,
		"Deployment shop/web-2": false, "ReplicaSet shop/web-2": false, "Pod shop/web-2-5d8f7c9b4-bbbbb": false,
		"Pod shop/db-2-0": false, "Deployment other/web": false, "Pod other/db-0": false, "Node web": false, "": false,
	} {
		compare.CheckNamed(t, title, want, console.IsIn(of, title))
	}
}
