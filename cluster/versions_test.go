package cluster

import (
	"errors"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

var cloneSets = func() (of [2]rollout.Partitioned) {
	for i, version := range []string{"apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"} {
		p, _ := rollout.FindPartitioned(nil, version, "CloneSet")
		of[i] = *p
	}
	return of
}()

// TestTwoVersionsOfAKind checks that each of two versions of a kind has exactly one watch, even if Know is called repeatedly.
func TestTwoVersionsOfAKind(t *testing.T) {
	w := newWorkloads(func(string) {})
	begun := 0
	for range 10 {
		for _, p := range cloneSets {
			if _, isNew := w.know(p); isNew {
				begun++
			}
		}
	}
	if begun != 2 {
		t.Errorf("%d watches were begun, want 2", begun)
	}
	other := cloneSets[0]
	other.Partition = "spec.elsewhere"
	if table, isNew := w.know(other); !isNew || table.described != other || len(w.more) != 2 {
		t.Errorf("described otherwise, it is new: %t, among %d tables", isNew, len(w.more))
	}
}

// TestUnwatchableKindHoldsItsApps checks that the error of a kind that cannot be watched is reported only to apps with this kind.
func TestUnwatchableKindHoldsItsApps(t *testing.T) {
	w := newWorkloads(func(string) {})
	table, _ := w.know(cloneSets[0])
	w.looked(table, nil, errors.New("clonesets.apps.kruise.io is forbidden"))
	clone := rollout.Workload{Kind: "CloneSet.apps.kruise.io", Namespace: "a", Name: "web"}
	shop := rollout.Workload{Namespace: "a", Name: "shop"}
	if why := w.unseen([]rollout.Workload{shop, clone}); why == "" {
		t.Error("an app with a CloneSet is told nothing")
	}
	if why := w.unseen([]rollout.Workload{shop}); why != "" {
		t.Errorf("an app without one is told %q", why)
	}
	w.looked(table, nil, nil)
	if why := w.unseen([]rollout.Workload{clone}); why != "" {
		t.Errorf("after it could be watched: %q", why)
	}
}
