package strategies

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// A restart deletes all pods created before the requested time, while no release is in flight. The creation times of
// new pods show the progress, so a restart is not recorded.

// apart delays a restart, so that no new pod has a creation time before the restart, even if the API server's clock is
// behind.
const apart = 5 * time.Second

type restart struct {
	spec rollout.Spec
	at   time.Time
	left []rollout.Pod        // pods to replace
	now  []workloads.Eviction // pods to delete now
	due  time.Time            // the time of the next deletion; zero if the deletion waits for other pods
}

func restarts(in Input) (all []restart) {
	if in.Source == nil || in.State.Draining != nil || in.Observed.Unseen != "" || !isResting(in.State) {
		return nil
	}
	for _, spec := range in.Source.Specs {
		r, live := restart{spec: spec, at: spec.RestartAt}, in.Observed.Workloads[spec.Workload]
		if s := in.State; s.Stable != nil && in.Promotion.Says(rollout.Restart, s.Stable.Hash) {
			r.at = rollout.Later(r.at, in.Promotion.RestartAt)
		}
		r.left, r.now, r.due = workloads.Restart(spec, live, r.at, in.Now)
		if begin := r.at.Add(apart); in.Now.Before(begin) {
			r.now, r.due = nil, begin
		}
		if live.Synced {
			all = append(all, r)
		}
	}
	return all
}

// Restarting describes restarts, or returns "" once all pods are new. It also returns the earliest restart.due.
func Restarting(in Input) (text string, due time.Time) {
	var all []string
	for _, r := range restarts(in) {
		if len(r.left) > 0 {
			what := map[bool]string{true: "planned for", false: rollout.Count(len(r.left), "pod") + " created before"}
			all = append(all, fmt.Sprintf("the restart of %s: %s %s", r.spec.Workload, what[in.Now.Before(r.at)],
				r.at.Format(time.RFC3339)))
			due = rollout.Soonest(due, r.due)
		}
	}
	return strings.Join(all, "; "), due
}

func withRestart(in, given Input, d Decision) Decision {
	if d.Stale {
		return d
	}
	in.State, in.Promotion = d.State, given.Promotion
	text, due := Restarting(in)
	d.Waiting, d.Requeue = cmp.Or(d.Waiting, text), rollout.Soonest(d.Requeue, due)
	return d
}
