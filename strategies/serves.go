package strategies

import (
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/routes"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// A release becomes stable, or a rollback ends, when its version has available pods and no other version has pods. Up
// to maxUnavailable pods are allowed to be missing, because a pod might never become available.

func servesAll(in Input, serves func(Input, rollout.Spec, rollout.Hash) bool) bool {
	release, specs := in.State.Release, releaseSpecs(in)
	if isContent(release) {
		why, _ := unready(in, release.Since)
		return why == ""
	}
	if specs == nil { // the release's commit is unreadable, so only pods count
		for w := range release.Templates {
			specs = append(specs, rollout.Spec{Workload: w})
		}
	}
	return !slices.ContainsFunc(specs, func(spec rollout.Spec) bool {
		hash := release.Templates[spec.Workload]
		return hash != in.State.StableHash(spec.Workload) && !serves(in, spec, hash)
	})
}

func serves(in Input, spec rollout.Spec, hash rollout.Hash) bool {
	live := in.Observed.Workloads[spec.Workload]
	fresh, _ := live.Find(hash)
	serving := fresh.Serving(in.Now, plan.MinReady(spec))
	return runsOnly(live, hash) && serving >= available(spec, live, workloads.Replicas(in.State, spec, live))
}

func isAllOn(in Input, spec rollout.Spec, hash rollout.Hash) bool {
	live := in.Observed.Workloads[spec.Workload]
	fresh, _ := live.Find(hash)
	return isAlone(live, hash) && fresh.Ready() >= min(workloads.Replicas(in.State, spec, live), 1)
}

func available(spec rollout.Spec, live rollout.ObservedWorkload, n int) int {
	return min(n, max(1, n-spec.Unavailable(live, n)))
}

// runsOnly reports whether all pods have the version. It counts the ReplicaSets' pods, because the Deployment's status
// lags and, after a scale-down, omits pods.
func runsOnly(live rollout.ObservedWorkload, hash rollout.Hash) bool {
	return live.Synced && isAlone(live, hash)
}

func isAlone(live rollout.ObservedWorkload, hash rollout.Hash) bool {
	return live.Hash == hash && !slices.ContainsFunc(live.Revisions, func(r rollout.Revision) bool {
		return isOther(r, hash)
	})
}

// isOther reports whether a ReplicaSet of another version has pods, or may still create some (Revision.Base, Late).
func isOther(r rollout.Revision, hash rollout.Hash) bool {
	return !r.Current && r.Hash != hash && (r.Pods+r.Desired > 0 || r.Base || r.Late)
}

func rollingBack(in Input) (texts []string, late deadline) {
	if in.Source == nil || in.State.Source != in.State.Rollback.To {
		return []string{"all pods to have the stable version"}, late
	}
	for _, spec := range in.Source.Specs {
		live := in.Observed.Workloads[spec.Workload]
		hash := in.Source.Templates[spec.Workload]
		if runsOnly(live, hash) {
			continue
		}
		stable, _ := live.Find(hash)
		texts = append(texts, rollingBackText(spec, live, stable))
		since := lastReady(drainAt(in), stable)
		late = late.earlier(deadline{at: since.Add(time.Duration(spec.ProgressDeadlineSeconds) * time.Second),
			reason: fmt.Sprintf("no progress for %ds in the rollback", spec.ProgressDeadlineSeconds)})
	}
	if isContent(in.State.Stable) {
		return unreturned(in)
	}
	if len(texts) == 0 {
		return nil, late
	}
	return append(texts, rollout.Mapped(Evictions(in), func(e workloads.Eviction) string {
		return fmt.Sprintf("pod %s/%s, which is not ready, to be deleted", e.Namespace, e.Pod.Name)
	})...), late
}

func rollingBackText(spec rollout.Spec, live rollout.ObservedWorkload, stable rollout.Revision) string {
	others := 0
	for _, r := range live.Revisions {
		if isOther(r, stable.Hash) {
			others += r.Pods
		}
	}
	if others == 0 {
		return fmt.Sprintf("the %s controller", spec.Workload.Ref().Kind)
	}
	return withProblem(fmt.Sprintf("pods of %s: %d of other versions must still be removed, "+
		"%d of %d stable pods are ready", spec.Workload, others, stable.Ready(), live.Replicas), stable.Problem)
}

// Evictions returns the pods to delete now, for a release or a restart.
func Evictions(in Input) (all []workloads.Eviction) {
	if in.State.Release == nil {
		for _, r := range restarts(in) {
			all = append(all, r.now...)
		}
		return all
	}
	v := workloads.View{Now: in.Now, Source: in.Source, Observed: in.Observed, Plans: in.plans}
	return workloads.Evictions(workloads.Evicting{View: v, State: in.State, Release: in.renderOf(in.State.Release.Hash)})
}

// OrdersNodes reports whether a release orders nodes by labels, and so needs Observed.Nodes.
func OrdersNodes(in Input) bool {
	hasOrder := func(spec rollout.Spec) bool { return spec.Canary != nil && len(spec.Canary.NodeOrder) > 0 }
	return workloads.IsHeld(in.State) && in.Source != nil && slices.ContainsFunc(in.Source.Specs, hasOrder)
}

// lessRouted returns a reason if missing pods reduce the new version's requests. It also returns the time at which the
// reason may end. The reason lasts until the pods have been ready for wellFor, so a crash loop causes only one
// transition.
func lessRouted(in Input) (reason string, due time.Time) {
	for _, m := range stagedIn(in) {
		t := m.Routing
		if t == nil || m.Routed == nil || in.State.Phase == rollout.Aborting {
			continue
		}
		isMatched := len(m.RoutedAt(m.Routed.Step).Routes) > 0
		known := workloads.Learnt(t)
		if in.State.Reason != "" {
			known = max(known, wellFor)
		}
		ready := min(m.Fresh.Serving(in.Now, known), m.Fresh.Desired)
		want := m.CountsAt(m.Routed.Step, m.N)
		bears := routes.Within(m.Routed.Weight, m.Full(), want, ready, workloads.KnownOf(m.Stable, t, in.Now))
		if bears < m.Routed.Weight || isMatched && ready == 0 {
			reason = fmt.Sprintf("the new version of %s lacks pods, or lacked some within the last minute, "+
				"so it gets fewer requests", m.Workload)
			due = rollout.Soonest(due, workloads.ServesNext(in.Now, known, m.Fresh))
		}
	}
	return reason, due
}
