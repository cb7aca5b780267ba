package cluster

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestPartitionIsRead checks that a workload's fields are read from the paths in its kind's description. The partition becomes the number
// of pods that keep the old version.
func TestPartitionIsRead(t *testing.T) {
	clones, _ := rollout.FindPartitioned(nil, "apps.kruise.io/v1alpha1", "CloneSet")
	counting := *clones
	counting.Partition, counting.CountsNew, counting.Status.UpdatedReady = "spec.canaries", true, ""
	for name, tc := range map[string]struct {
		kind rollout.Partitioned
		spec map[string]any
		want int
	}{
		"none":                {*clones, map[string]any{"replicas": int64(4)}, 0},
		"a number":            {*clones, map[string]any{"replicas": int64(4), "updateStrategy": map[string]any{"partition": int64(3)}}, 3},
		"more than there are": {*clones, map[string]any{"replicas": int64(4), "updateStrategy": map[string]any{"partition": int64(9)}}, 4},
		"a percentage":        {*clones, map[string]any{"replicas": int64(3), "updateStrategy": map[string]any{"partition": "66%"}}, 2},
		"not a number":        {*clones, map[string]any{"replicas": int64(3), "updateStrategy": map[string]any{"partition": "most"}}, 0},
		"of the default":      {*clones, map[string]any{"updateStrategy": map[string]any{"partition": int64(1)}}, 1},
		"of new ones":         {counting, map[string]any{"replicas": int64(4), "canaries": int64(1)}, 3},
		"of too many new":     {counting, map[string]any{"replicas": int64(4), "canaries": int64(9)}, 0},
	} {
		got := readPartitioned(tc.kind, rollout.Object{"spec": tc.spec})
		if got.partition != tc.want {
			t.Errorf("%s: %d pods stay old, want %d", name, got.partition, tc.want)
		}
		if says := got.updatedReady >= 0; says != (tc.kind.Status.UpdatedReady != "") {
			t.Errorf("%s: %d pods are ready, as the controller says", name, got.updatedReady)
		}
	}
	got := readPartitioned(*clones, rollout.Object{
		"metadata": map[string]any{"generation": int64(7)},
		"spec":     map[string]any{"replicas": int64(5), "ordinals": map[string]any{"start": int64(2)}},
		"status": map[string]any{"observedGeneration": int64(6), "replicas": int64(4), "updatedReplicas": int64(3),
			"updatedReadyReplicas": int64(2), "availableReplicas": int64(1), "currentRevision": "a", "updateRevision": "b"}})
	want := workload{generation: 7, observed: 6, replicas: 5, total: 4, updated: 3, updatedReady: 2, available: 1, base: "a",
		update: "b", first: 2}
	compare.Check(t, want, *got)
}

// TestNodesAreRead checks a kind with one pod per node. A workload's status has the number of nodes, and the hash of the current revision.
func TestNodesAreRead(t *testing.T) {
	agents, _ := rollout.FindPartitioned(nil, "apps.kruise.io/v1alpha1", "DaemonSet")
	got := readPartitioned(*agents, rollout.Object{
		"metadata": map[string]any{"generation": int64(7)},
		"spec":     map[string]any{"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"partition": int64(9)}}},
		"status": map[string]any{"observedGeneration": int64(6), "desiredNumberScheduled": int64(10), "currentNumberScheduled": int64(9),
			"updatedNumberScheduled": int64(1), "numberAvailable": int64(8), "daemonSetHash": "b", "numberMisscheduled": int64(1)}})
	want := workload{generation: 7, observed: 6, replicas: 10, strays: 1, total: 9, updated: 1, updatedReady: -1, available: 8, update: "b",
		partition: 9}
	compare.Check(t, want, *got)
	kind := partitionedKind(*agents)
	old := &revision{stamp: stamp{key: key{name: "web-a"}}, pin: rollout.Pin{Label: rollout.LabelRevision, Value: "a"}}
	fresh := &revision{stamp: stamp{key: key{name: "web-b"}}, pin: rollout.Pin{Label: rollout.LabelRevision, Value: "b"}}
	if r := kind.current(got, true, []*revision{old, fresh}); r != fresh {
		t.Errorf("its revision is %+v", r)
	}
	out := rollout.ObservedWorkload{Revisions: []rollout.Revision{{Name: "web-b", Current: true, Pods: 1}, {Name: "web-a", Pods: 9}}}
	kind.finish(got, &out)
	if out.Floor != 9 || out.Strays != 1 || out.Revisions[0].Desired != 2 || out.Revisions[1].Desired != 8 || !out.Revisions[1].Base {
		t.Errorf("one of ten nodes has no pod, and another node has a surplus pod: %+v", out)
	}
}

// TestFieldsThatAreNotThere checks that a missing status field is reported as a revision's problem when a pod of the newest version is
// ready. Until then, the field may be missing because its value is 0.
func TestFieldsThatAreNotThere(t *testing.T) {
	clones, _ := rollout.FindPartitioned(nil, "apps.kruise.io/v1alpha1", "CloneSet")
	quiet := *clones
	quiet.Status.UpdatedReady = ""
	for name, tc := range map[string]struct {
		kind    rollout.Partitioned
		without string
		soon    int64 // minReadySeconds
		ready   int   // number of ready pods of the newest version
		trouble string
		want    bool
	}{
		"all there":                 {*clones, "", 0, 1, "", false},
		"no generation":             {*clones, "observedGeneration", 0, 1, "", true},
		"no count":                  {*clones, "updatedReplicas", 0, 1, "", true},
		"no revision":               {*clones, "updateRevision", 0, 1, "", true},
		"it may be 0":               {*clones, "updatedReplicas", 0, 0, "", false},
		"none is available":         {*clones, "availableReplicas", 0, 1, "", true},
		"none is available so far":  {*clones, "availableReplicas", 5, 1, "", false},
		"a pod has a problem":       {*clones, "updateRevision", 0, 1, "pod a: OOMKilled", false},
		"the kind does not name it": {quiet, "updatedReadyReplicas", 0, 1, "", false},
	} {
		status := map[string]any{"observedGeneration": int64(1), "replicas": int64(2), "updatedReplicas": int64(1),
			"updatedReadyReplicas": int64(1), "availableReplicas": int64(1), "currentRevision": "a", "updateRevision": "b"}
		delete(status, tc.without)
		w := readPartitioned(tc.kind, rollout.Object{"spec": map[string]any{"minReadySeconds": tc.soon}, "status": status})
		w.hash = "h1-new"
		fresh := rollout.Revision{Name: "b", Hash: "h1-new", Pods: 1, Problem: tc.trouble, ReadySince: make([]time.Time, tc.ready)}
		out := rollout.ObservedWorkload{Revisions: []rollout.Revision{fresh, {Name: "a", Hash: "h1-old", ReadySince: make([]time.Time, 1)}}}
		byCounts(w, &out)
		want := tc.trouble
		if tc.want {
			want = "its controller writes no status." + tc.without +
				": under workloads in .gitrollout/<cluster>/config.yaml, name the field that the controller writes"
		}
		if got := out.Revisions[0].Problem; got != want || out.Revisions[1].Problem != "" {
			t.Errorf("%s: %q and of the old version %q, want %q", name, got, out.Revisions[1].Problem, want)
		}
	}
}

// TestUnorderedPods checks that a StatefulSet of Kruise is unordered if it has reserved ordinals or the field unorderedUpdate.
func TestUnorderedPods(t *testing.T) {
	sets, _ := rollout.FindPartitioned(nil, "apps.kruise.io/v1beta1", "StatefulSet")
	for spec, want := range map[string]bool{
		`{"reserveOrdinals": [1, "3-5"]}`:                                true,
		`{"reserveOrdinals": []}`:                                        false,
		`{"updateStrategy": {"rollingUpdate": {"unorderedUpdate": {}}}}`: true,
		`{"updateStrategy": {"rollingUpdate": {"partition": 2}}}`:        false,
	} {
		var out rollout.ObservedWorkload
		byCounts(readPartitioned(*sets, tree(t, `{"spec": `+spec+`}`)), &out)
		compare.CheckNamed(t, spec, want, out.Unordered)
	}
}

// TestPodsAreCounted checks the desired and the ready pods of each revision. Missing pods first fill the base revision up to the partition,
// and then the current revision. The ready pods of the new revision are at most the number in the status. The partition is relative to the
// first ordinal, 5.
func TestPodsAreCounted(t *testing.T) {
	since := func(n int) (all []time.Time) {
		for i := range n {
			all = append(all, time.Unix(int64(i), 0))
		}
		return all
	}
	of := func(replicas, partition int, base string, ready int) workload {
		return workload{replicas: replicas, partition: partition, base: base, update: "b", updatedReady: ready}
	}
	for name, tc := range map[string]struct {
		w           workload
		fresh, old  int // existing pods of the new and the old revision
		synced      bool
		want        [2]int // desired pods of the new and the old revision
		ready       int    // ready pods of the new revision
		base, whole bool   // base: the new revision is the base revision; whole: the workload is complete
	}{
		"all there":                       {of(5, 4, "a", 1), 1, 4, true, [2]int{1, 4}, 1, false, false},
		"one to be made old":              {of(5, 4, "a", 1), 1, 3, true, [2]int{1, 4}, 1, false, false},
		"one to be made new":              {of(5, 3, "a", 1), 1, 3, true, [2]int{2, 3}, 1, false, false},
		"both":                            {of(8, 4, "a", 1), 1, 3, true, [2]int{4, 4}, 1, false, false},
		"more than asked for":             {of(3, 1, "a", 2), 2, 3, true, [2]int{2, 3}, 2, false, false},
		"fewer have been seen ready":      {of(5, 2, "a", 1), 3, 2, true, [2]int{3, 2}, 1, false, false},
		"no number is reported":           {of(5, 2, "a", -1), 3, 2, true, [2]int{3, 2}, 3, false, false},
		"the status is out of date":       {of(5, 2, "a", 1), 3, 2, false, [2]int{3, 2}, 3, false, false},
		"all pods have the template":      {of(5, 2, "b", 5), 5, 0, true, [2]int{5, 0}, 5, true, true},
		"none, and all have the template": {of(3, 2, "b", 0), 0, 0, true, [2]int{3, 0}, 0, true, true},
	} {
		tc.w.hash, tc.w.first = "h1-new", 5
		out := rollout.ObservedWorkload{Complete: true, Revisions: []rollout.Revision{
			{Name: "b", Pods: tc.fresh, ReadySince: since(tc.fresh), Current: tc.synced, Hash: "h1-made"},
			{Name: "a", Pods: tc.old, ReadySince: since(tc.old), Hash: "h1-old"},
		}}
		byCounts(&tc.w, &out)
		fresh, old := out.Revisions[0], out.Revisions[1]
		if got := [2]int{fresh.Desired, old.Desired}; got != tc.want || fresh.Ready() != tc.ready || old.Ready() != tc.old {
			t.Errorf("%s: %v are asked for, of which %d and %d are ready; want %v and %d", name, got, fresh.Ready(), old.Ready(), tc.want, tc.ready)
		}
		if fresh.Base != tc.base || old.Base == tc.base || out.Complete != tc.whole || (fresh.Hash == "h1-new") != tc.synced ||
			old.Hash != "h1-old" {
			t.Errorf("%s: it is %+v", name, out)
		}
		if want := 5 + tc.w.partition; out.First != 5 || out.Floor != want {
			t.Errorf("%s: the pods from %d on get the current revision, and the first pod is %d; want %d and 5", name, out.Floor, out.First, want)
		}
		if n := fresh.Ready(); n > 0 && n < tc.fresh && !fresh.ReadySince[0].Equal(time.Unix(int64(tc.fresh-n), 0)) {
			t.Errorf("%s: the counted pods are ready since %v: the ones counted last", name, fresh.ReadySince)
		}
	}
}

// TestRevisionOfADaemonSet checks which revision is current. No revision is current while the watch of ControllerRevisions lags behind the
// watch of DaemonSets. Otherwise, all pods of the former revision would count as pods of the new version.
func TestRevisionOfADaemonSet(t *testing.T) {
	old, next := &revision{number: 1, template: "a", hash: "h1-a"}, &revision{number: 2, template: "b", hash: "h1-b"}
	byHand := &revision{number: 3, template: "c", hash: "h1-b"}
	adopted := &revision{number: 1, template: "a"}
	otherwise := &revision{number: 2, template: "b as another Kubernetes has it", hash: "h1-b"}
	for name, tc := range map[string]struct {
		template string
		hash     rollout.Hash
		unseen   bool
		newest   []*revision
		want     *revision
	}{
		"as it is":                     {"b", "h1-b", false, []*revision{next, old}, next},
		"not made yet":                 {"b", "h1-b", false, []*revision{old}, nil},
		"not seen by its controller":   {"b", "h1-b", true, []*revision{next, old}, nil},
		"put back, numbered as before": {"b", "h1-b", false, []*revision{byHand, next, old}, next},
		"set by hand":                  {"c", "h1-b", false, []*revision{byHand, next, old}, byHand},
		"a revision of another hash":   {"a", "h1-b", false, []*revision{old}, old},
		"adopted":                      {"a", "", false, []*revision{adopted}, adopted},
		"of another Kubernetes":        {"b", "h1-b", false, []*revision{otherwise, old}, otherwise},
	} {
		if got := equalRevision(&workload{template: tc.template, hash: tc.hash}, !tc.unseen, tc.newest); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
