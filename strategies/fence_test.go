package strategies_test

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestAPauseByHandIsUndone checks that in each phase of a release, the desired Deployment has the field spec.paused with the value false.
func TestAPauseByHandIsUndone(t *testing.T) {
	for phase, step := range map[rollout.Phase]int{rollout.Paused: 1, rollout.Progressing: 0, rollout.Promoting: 3} {
		h, in := atStep(nil, step)
		in.State.Phase = phase
		compare.CheckNamed(t, string(phase)+": spec.paused", false, desiredOf(in, h, web).Map("spec")["paused"])
	}
}

// TestRollbackWaitsForReports checks that a rollback pauses the Deployment while the stable ReplicaSet may report more available pods than
// replicas. The pause ends when the report is correct. Until then, maxSurge covers the extra pods, so that no pod starts or stops.
func TestRollbackWaitsForReports(t *testing.T) {
	const paused, moving, asItIs = "paused, maxSurge 10%", "moving, maxSurge 25%", "as it is"
	for name, row := range map[string]struct {
		desired, reported, fresh int
		turned, synced, through  bool
		want                     string
	}{
		"at rest":                    {8, 8, 2, false, true, false, moving},
		"more pods move":             {9, 9, 2, false, true, false, paused},
		"a report to come":           {8, 9, 3, false, true, false, paused},
		"the pause is not seen":      {8, 9, 3, true, false, false, asItIs},
		"the report is not seen":     {8, 9, 3, true, true, false, paused},
		"all is seen":                {8, 8, 3, true, true, false, moving},
		"pods of stable are missing": {8, 3, 2, true, true, false, moving},
		"stable has all pods":        {10, 11, 1, true, true, false, moving},
		"stable pods stop":           {2, 2, 8, false, true, true, "paused, maxSurge 20%"},
		"stable pods have stopped":   {0, 0, 8, false, true, true, moving},
		"their last report is old":   {0, 2, 8, false, true, true, "paused, maxSurge 0%"},
		"stable pods may stop":       {10, 10, 4, false, true, true, "paused, maxSurge 40%"},
		"that pause is not seen":     {10, 10, 4, true, false, true, asItIs},
		"no stable pod has stopped":  {10, 10, 4, true, true, true, moving},
	} {
		h := twoVersions(nil)
		stable := set(h, commitID(0), row.desired, row.desired)
		stable.Available, stable.Current = row.reported, row.turned
		in := inFlight(h, 0, stable, set(h, commitID(1), row.fresh, row.fresh))
		in.State.Phase, in.State.Source, in.State.Rollback = rollout.Aborting, commitID(0), &rollout.Rollback{To: commitID(0)}
		if row.through {
			in.State.Progress[0].Step = in.State.Progress[0].Of
		}
		changeLive(&in, web, func(live *rollout.ObservedWorkload) { live.Synced = row.synced })
		got := asItIs
		if o := desiredOf(in, h, web); o != nil {
			got = map[any]string{true: "paused", false: "moving"}[o.Map("spec")["paused"]] +
				fmt.Sprintf(", maxSurge %v", rollout.In(o, "spec.strategy.rollingUpdate.maxSurge"))
		}
		compare.CheckNamed(t, name, row.want, got)
	}
}

// pods returns a ReplicaSet with the given number of desired pods. Its ready pods have been ready since noon.
func pods(desired, ready int) rollout.Revision {
	r := rollout.Revision{Desired: desired, Pods: max(desired, ready)}
	for range ready {
		r.ReadySince = append(r.ReadySince, noon)
	}
	return r
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
