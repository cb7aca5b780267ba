package strategies

import (
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// PodRole is a pod whose labels or annotations do not match its role. Metadata holds the role's metadata in JSON.
type PodRole struct {
	Namespace, Metadata string
	Pod                 rollout.Pod
}

// PodRoles returns the pods whose role metadata must change. Stable pods have the role stable or active. A release's
// new pods have the role canary or preview. Other pods have no role.
func PodRoles(in Input) (all []PodRole) {
	if in.Source == nil || in.Observed.Unseen != "" {
		return nil
	}
	for _, w := range slices.SortedFunc(maps.Keys(in.Observed.Workloads), rollout.Workload.Compare) {
		live := in.Observed.Workloads[w]
		if live.Serial == 0 {
			continue // another app has the workload
		}
		spec, _ := in.Source.Spec(w)
		spec.Workload = w
		roles := plan.Compiled{Spec: spec, OldRole: plan.RoleStable, FreshRole: plan.RoleCanary}
		of := map[plan.Role]string{plan.RoleStable: spec.StableMetadata, plan.RoleCanary: spec.NewMetadata}
		if in.State.Stable == nil { // as in Argo Rollouts, a first deployment is stable
			of[plan.RoleCanary] = spec.StableMetadata
		}
		for _, r := range live.Revisions {
			metadata := of[roles.RoleOf(in.State, r)]
			for _, p := range r.Members {
				if !p.Terminating && p.Role != metadata {
					all = append(all, PodRole{w.Namespace, metadata, p})
				}
			}
		}
	}
	return all
}
