package rollout_test

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

const gameServers = `
- apiVersion: example.com/v1
  kind: GameServerSet
  partition: {path: spec.rollout.canaries, counts: new}
  minReadySeconds: spec.rollout.minReadySeconds
  ordered: true
  status: {updatedReady: status.newReady}
`

func TestWorkloadsOfAConfiguration(t *testing.T) {
	const config = "apps: [{path: apps/*}]\nworkloads:"
	status := rollout.DefaultStatus()
	status.UpdatedReady = "status.newReady"
	want := rollout.Partitioned{APIVersion: "example.com/v1", Kind: "GameServerSet", Partition: "spec.rollout.canaries", CountsNew: true,
		Ordered: true, MinReady: "spec.rollout.minReadySeconds", Status: status}
	app, err := parsed(t, config+gameServers).Apps[0].App("apps/games")
	must(t, err)
	compare.CheckNamed(t, "the kinds of its apps", []rollout.Partitioned{want}, rollout.PartitionedOf(app))
	if found, _ := rollout.FindPartitioned(rollout.PartitionedOf(app), "example.com/v1", "GameServerSet"); found == nil || *found != want {
		t.Errorf("it is found as %+v", found)
	}
	const noPartition = " has a fixed meaning already; name the field that says how many pods keep their version"
	const isStaged = " is released in stages without an entry; leave the entry out"
	const notInSpec = " is not a field below spec; write its path, as in spec.updateStrategy.partition"
	for _, c := range []struct{ entry, wrong string }{
		{"apps/v1, kind: StatefulSet, partition: {path: spec.a}", "[0].kind: StatefulSet" + isStaged},
		{"batch/v1, kind: Job, partition: {path: spec.a}", `[0].apiVersion: batch/v1 Job has no partition; leave the entry out`},
		{"example.com/v1, kind: Set, partition: {path: status.a}", `[0].partition.path: "status.a"` + notInSpec},
		{"example.com/v1, kind: Set, partition: {path: partition}", `[0].partition.path: "partition"` + notInSpec},
		{"gitrollout.dev/v1alpha1, kind: Rollout, partition: {path: spec.a}",
			`[0].apiVersion: gitrollout.dev/v1alpha1 Rollout has no partition; leave the entry out`},
		{"apps.kruise.io/v1alpha1, kind: CloneSet, partition: {path: spec.a}", "[0].kind: CloneSet" + isStaged},
		{"a.io/v1, kind: Set, partition: {path: spec.template.spec.a}", `[0].partition.path: "spec.template.spec.a"` + noPartition},
		{"a.io/v1, kind: Set, partition: {path: spec.replicas}", `[0].partition.path: "spec.replicas"` + noPartition},
		{"a.io/v1, kind: Set, partition: {path: spec.selector.a}", `[0].partition.path: "spec.selector.a"` + noPartition},
		{"a.io/v1, kind: Set, partition: {path: spec.minReadySeconds}", `[0].partition.path: "spec.minReadySeconds"` + noPartition},
		{"a.io/v1, kind: Set, partition: {path: spec.a}, minReadySeconds: spec.a", `[0].partition.path: "spec.a"` + noPartition},
		{"a.io/v1, kind: Set, partition: {path: spec.a}, minReadySeconds: spec.replicas",
			`[0].minReadySeconds: "spec.replicas" has a fixed meaning already; name the field that says how long a pod is to be ready`},
		{"a.io/v1, kind: Set, partition: {path: spec.a}, status: {updated: spec.b}",
			`[0].status.updated: "spec.b" is not a field below status; write its path, as in status.updatedReplicas`},
		{"example.com/v1, kind: Set, partition: {path: spec.a, counts: new, unit: percent}",
			`[0].partition.unit: is percent, and the rounding of a percentage of new pods is undefined; write unit: pods`},
		{"example.com/v1, kind: Set, partition: {path: spec.a, counts: all}",
			`[0].partition.counts: "all" is not one of old, new; write old if the field counts pods of the old version, ` +
				`and new if it counts updated pods`},
		{"example.com, kind: Set, partition: {path: spec.a}",
			`[0].apiVersion: "example.com" is not a version of an API; write group/version, as in example.com/v1`},
		{"example.com/v1, kind: set, partition: {path: spec.a}", `[0].kind: "set" is not a kind; write it as in manifests`},
		{"example.com/v1, kind: Set, partition: {path: spec.a}, template: spec.template",
			`[0].template: is not a known field; use one of apiVersion, kind, minReadySeconds, ordered, partition, status`},
		{"example.com/v1, kind: Set", `[0].partition: is missing; say which field stages its pods: partition: {path: ` +
			`spec.updateStrategy.partition}; if none does, remove this entry and the Rollout: the workload is applied as it is`},
		{"a.io/v1, kind: Set, partition: {path: spec.a}, status: {updated: 3}", `[0].status.updated: must be a string, not 3; quote it`},
		{"a.io/v1, kind: A, partition: {path: spec.a}}, {apiVersion: a.io/v2, kind: A, partition: {path: spec.a}",
			`[1].kind: A of a.io is also in workloads[0]; keep only the entry for the version in your manifests`},
	} {
		checkRefused(t, c.entry, config+" [{apiVersion: "+c.entry+"}]", "workloads"+c.wrong)
	}
}

// TestWorkloadsOfAState checks that State.Workloads returns a workload outside WorkloadKinds only if a release has the workload's template.
func TestWorkloadsOfAState(t *testing.T) {
	clone, _ := rollout.WorkloadOf(rollout.Ref{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web"})
	s := rollout.State{Inventory: []rollout.Ref{clone.Ref(), web.Ref(), {Kind: "Service", Namespace: "shop", Name: "web"}}}
	compare.CheckNamed(t, "without a release", []rollout.Workload{web}, s.Workloads())
	for _, released := range []rollout.State{
		{Inventory: s.Inventory, Stable: &rollout.Release{Templates: map[rollout.Workload]rollout.Hash{clone: "h1-one"}}},
		{Inventory: s.Inventory, Release: &rollout.Release{Templates: map[rollout.Workload]rollout.Hash{clone: "h1-one"}}},
	} {
		compare.Check(t, []rollout.Workload{clone, web}, released.Workloads())
	}
	for _, text := range []string{".apps.kruise.io/shop/web", "CloneSet./shop/web", "CloneSet/shop/web", "CloneSet.apps.kruise.io/shop/"} {
		if err := new(rollout.Workload).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as a workload", text)
		}
	}
}
