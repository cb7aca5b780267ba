package strategies

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// pinsOf returns the pod-template-hash that each Service of the staged
// workloads selects; a Service that is not in it selects all pods, as the user
// wrote it. The hash is read from the ReplicaSet, so a version without one
// cannot be pinned yet.
func pinsOf(s rollout.State, v View) map[rollout.Ref]string {
	pins := map[rollout.Ref]string{}
	for _, p := range s.Progress {
		spec, ok := v.Source.Spec(p.Workload)
		if !ok || s.Stable == nil || s.Release == nil {
			continue
		}
		live := v.Observed.Workloads[p.Workload]
		stable, _ := live.Find(s.StableHash(p.Workload))
		fresh, _ := live.Find(s.Release.Templates[p.Workload])
		main, side := pinHashes(s, spec, p, v, stable, fresh)
		mainName, sideName := serviceNames(s, spec)
		for name, hash := range map[string]string{mainName: main, sideName: side} {
			if name != "" && hash != "" {
				pins[rollout.Ref{Kind: "Service", Namespace: p.Workload.Namespace, Name: name}] = hash
			}
		}
	}
	return pins
}

// serviceNames returns the Service that users reach and the one for the new
// version.
func serviceNames(s rollout.State, spec rollout.Spec) (main, side string) {
	switch {
	case spec.BlueGreen != nil:
		return spec.BlueGreen.ActiveService, spec.BlueGreen.PreviewService
	case spec.Canary.PingPong == nil:
	case slices.Contains(s.Pong, spec.Workload):
		return spec.Canary.PingPong.PongService, spec.Canary.PingPong.PingService
	default:
		return spec.Canary.PingPong.PingService, spec.Canary.PingPong.PongService
	}
	return spec.Canary.StableService, spec.Canary.CanaryService
}

// pinHashes decides what both Services select.
//
//	                 main (stable, active)          side (canary, preview)
//	between steps    stable; a canary's all while   new once it has a ReplicaSet or,
//	                 stable has no ready pod;       where requests are routed, a ready pod
//	                 new once switched, all while
//	                 the new one has no ready pod
//	Promoting        the same if switched, else all new
//	Aborting         stable once enough is ready    stable, all while that has no ready pod;
//	                                                a preview stays until the drain
func pinHashes(s rollout.State, spec rollout.Spec, p rollout.Progress, v View, stable, fresh rollout.Revision) (main, side string) {
	live := v.Observed.Workloads[p.Workload]
	switched := hasSwitched(planOf(spec), p.Step)
	switch {
	case s.Phase == rollout.Aborting:
		side = stable.PodHash
		switch {
		case held(s) && spec.BlueGreen != nil:
			side = fresh.PodHash
		case isRouted(spec) && (min(stable.Ready(), stable.Desired) == 0 || draining(s, spec, p, live)):
			side = "" // the routers may still send it something
		}
		if min(stable.Ready(), stable.Desired) >= neededStable(spec, p, live) && !draining(s, spec, p, live) {
			main = stable.PodHash
		}
	case switched && fresh.Ready() > 0:
		main, side = fresh.PodHash, fresh.PodHash
	case isRouted(spec) && (switched || s.Phase == rollout.Promoting):
		if fresh.Ready() > 0 {
			side = fresh.PodHash
		}
	case switched || s.Phase == rollout.Promoting:
		side = fresh.PodHash
	case isRouted(spec) && (min(fresh.Ready(), fresh.Desired) == 0 || countsAt(planOf(spec), p.Step, replicas(spec, live)).canary == 0 && !stillRouted(spec, p, v)):
		// Some routers drop a route altogether that names a Service without
		// endpoints, whatever its weight is: Traefik does so with a TraefikService.
		if stable.Ready() > 0 {
			main, side = stable.PodHash, stable.PodHash
		}
	case spec.BlueGreen == nil && (min(stable.Ready(), stable.Desired) == 0 || countsAt(planOf(spec), p.Step, replicas(spec, live)).stable == 0):
		side = fresh.PodHash // in place at 100 %, or with one pod: none of stable is left to pin to
	default:
		main, side = stable.PodHash, orElse(fresh.PodHash, stable.PodHash)
	}
	return main, side
}

// draining reports whether the Deployment controller may still be removing the
// last stable pods: the release was at a step that keeps none or was being
// promoted when its retreat began, and the stable template is not yet back.
func draining(s rollout.State, spec rollout.Spec, p rollout.Progress, live rollout.ObservedWorkload) bool {
	promoted := !slices.ContainsFunc(s.Progress, func(o rollout.Progress) bool { return o.Step < o.Of })
	keepsNone := countsAt(planOf(spec), p.Step, replicas(spec, live)).stable == 0
	return (promoted || keepsNone) && (live.Hash != s.StableHash(p.Workload) || !live.Synced)
}

// neededStable is how many stable pods must be ready before a retreat sends all
// traffic to them: all of them, where the new version had taken it over, and
// any, where stable had it all the time.
func neededStable(spec rollout.Spec, p rollout.Progress, live rollout.ObservedWorkload) int {
	n := replicas(spec, live)
	pl := planOf(spec)
	if isDynamic(spec) { // its pods are as few as its share was
		return max(1, n-spec.MaxUnavailable.RoundDown(n))
	}
	if p.Step >= len(pl.stages) || hasSwitched(pl, p.Step) || countsAt(pl, p.Step, n).stable == 0 {
		return max(1, n)
	}
	return 1
}

func hasSwitched(p plan, step int) bool {
	for i, s := range p.stages {
		if i <= step && s.switched {
			return true
		}
	}
	return false
}
