package kube

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestScalingAfterTheControllerRead changes a Deployment's replicas after a sync has read the Deployment. The sync still writes the old
// number into a ReplicaSet's annotation. This annotation makes the next sync scale all ReplicaSets in proportion.
func TestScalingAfterTheControllerRead(t *testing.T) {
	quarter := rollout.Amount{Value: 25, Percent: true}
	old, fresh := &ReplicaSet{Name: "old", Replicas: 7}, &ReplicaSet{Name: "fresh", Replicas: 7, desiredNote: 7, maxNote: 14}
	d := &Deployment{Sets: []*ReplicaSet{old, fresh}, settings: settings{Template: "v2", Replicas: 7, surge: quarter, unavailable: quarter}}
	fresh.Template = d.Template
	d.queue(old, 6, false)
	d.Replicas = 2
	for range 2 {
		for _, w := range d.writes {
			w.scale()
		}
		d.writes = nil
		d.scaleProportionally(fresh, []*ReplicaSet{old})
	}
	compare.Check(t, [2]int{2, 1}, [2]int{old.Replicas, fresh.Replicas})
}
