package workloads

import (
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

var KindFor = kindFor // needs only a workload and its spec

func (f Limits) SurgeValue() any { return f.surgeValue() } // returns a value that Kubernetes must round to the surge

// UnavailableValue returns a value that Kubernetes must round to the number of unavailable pods.
func (f Limits) UnavailableValue() any { return f.unavailableValue() }

// NextLimits makes one step of a rolling update.
func (m Staged) NextLimits(v View, old, fresh rollout.Revision, want plan.Counts, surge int) (Limits, bool) {
	return m.nextLimits(v, old, fresh, want, surge)
}
