// Package guard checks that a modelled Deployment keeps the guarantees of its fields, such as maxUnavailable, in every
// state of a release. The tests of simulate and strategies use it.
package guard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

// Guard checks the properties that a Deployment's fields guarantee during releases. At least as many pods
// serve as maxUnavailable requires. At most two versions serve at the same time. No Service selects a version
// without ready pods while the other version has ready pods.
type Guard struct {
	Up       bool // the Deployment has been available: from now on the properties must hold
	Replicas int
	Floor    int // ready pods that the user's maxUnavailable requires
	Excused  int // how many fewer pods than Floor may serve, because the test or scaling disrupted pods

	seen []routing // configurations that a proxy may still use, oldest first
}

// Leave has exceptions. While a field is true, Guard does not check some properties.
type Leave struct {
	Retreating bool // a rollback runs. Kubernetes may delete longer-ready pods, so every ready pod counts as serving
	Lag        bool // controllers act on outdated numbers, so they may violate maxUnavailable themselves
	Overtaken  bool // a release was promoted fully while another release rolled back
	Clock      bool // the clocks that measure the waiting times of a release are wrong
	Broken     bool // the stable version's pods stay broken; a blue-green Service selects these pods until the switch
	Lost       bool // the commits of the release were removed from the history, so the release's routes cannot be read
}

// needsRoom reports whether a release with dynamicStableScale rolls back. Such a rollback may delete pods to which
// proxies may still send requests.
func (l Leave) needsRoom(spec rollout.Spec) bool {
	return l.Retreating && spec.Canary != nil && spec.Canary.DynamicStableScale
}

// Trouble returns a description of a property that is violated now, or "" if all properties hold.
func (g *Guard) Trouble(k *kube.Cluster, d *kube.Deployment, spec rollout.Spec, leave Leave) string {
	if g.Replicas != d.Replicas {
		g.Scaled(k.Now, d, spec)
	}
	g.Follow(k, d, spec)
	if n := len(g.seen); (leave.Overtaken || leave.Lost || leave.needsRoom(spec)) && n > 0 {
		g.seen = g.seen[n-1:] // earlier configurations are never checked again
	}
	ready, serving, versions := 0, 0, map[string]int{}
	for _, rs := range d.Sets {
		serving += rs.Serving(k.Now, time.Duration(spec.MinReadySeconds)*time.Second)
		if n := rs.Ready(); n > 0 {
			ready += n
			versions[kube.VersionOf(rs.Template)] += n
		}
	}
	if leave.Retreating {
		serving = ready
	}
	if d.IsUnordered() { // for this workload, Kubernetes' own rolling update may leave fewer pods than Floor
		g.Excused = max(g.Excused, g.Floor-serving)
	}
	switch {
	case !g.Up:
		return ""
	case serving+g.Excused < g.Floor && !leave.Lag && !leave.Overtaken:
		return fmt.Sprintf("%s: %d pods serve (%d are ready), but the user requires at least %d (%d missing pods are excused)",
			d.Workload, serving, ready, g.Floor, g.Excused)
	case len(versions) > 2 && !leave.Overtaken:
		return fmt.Sprintf("%s: three versions have ready pods: %v", d.Workload, versions)
	case g.Excused == 0 && !leave.Lag && !leave.Overtaken:
		return cmp.Or(g.misled(k, d, spec, ready, leave), g.left(d, spec, leave))
	}
	return ""
}

// Scaled updates Floor after a change of replicas, and excuses pods that are missing because of scaling. After a
// scale-up, new pods are not ready yet. A scale-down reduces all ReplicaSets in proportion (scale in Kubernetes'
// sync.go). Kubernetes may thus delete ready pods instead of unready pods.
func (g *Guard) Scaled(now time.Time, d *kube.Deployment, spec rollout.Spec) {
	surge, unavailable := spec.MaxSurge.RoundUp(d.Replicas), min(d.Replicas, spec.MaxUnavailable.RoundDown(d.Replicas))
	if d.IsByNode() {
		unavailable = min(d.Replicas, spec.MaxUnavailable.RoundUp(d.Replicas))
	}
	if surge == 0 && unavailable == 0 {
		unavailable = min(1, d.Replicas)
	}
	floor := d.Replicas - unavailable
	if floor > g.Floor {
		g.Excused += floor - g.Floor
	} else {
		for _, rs := range d.Sets {
			g.Excused += max(rs.Replicas, len(rs.Live())) - rs.Serving(now, time.Duration(spec.MinReadySeconds)*time.Second)
		}
		for _, rs := range d.Sets {
			if rs.Replicas > 0 {
				g.Excused++ // the rounding of the ReplicaSet's share may cost a pod
			}
		}
		g.Excused += d.Moved()
	}
	g.Replicas, g.Floor = d.Replicas, floor
}

// Settle resets Excused. If pods were excused, the Guard forgets all but the newest configuration of the proxies.
func (g *Guard) Settle() {
	if n := len(g.seen); g.Excused > 0 && n > 0 {
		g.seen = g.seen[n-1:]
	}
	g.Excused = 0
}

// misled describes a Service that selects a version without ready pods while other pods are ready.
func (g *Guard) misled(k *kube.Cluster, d *kube.Deployment, spec rollout.Spec, ready int, leave Leave) string {
	name := ""
	switch {
	case spec.BlueGreen != nil:
		name = spec.BlueGreen.ActiveService
	case spec.Canary != nil:
		name = spec.Canary.StableService
	}
	if ready == 0 || g.Floor == 0 || leave.Broken && spec.BlueGreen != nil {
		return ""
	}
	if spec.Canary != nil && spec.Canary.Traffic != nil {
		return g.misrouted(k, d, spec)
	}
	if pin := pinOf(k, d, name); name != "" && !d.Serves(pin) {
		return fmt.Sprintf("%s: Service %s selects version %s, which has no ready pod, while %d other pods are ready",
			d.Workload, name, pin, ready)
	}
	return ""
}

// misrouted describes a route that names a Service without ready pods. For such a route, some routers drop
// all requests, even if the Service has a weight of 0.
func (g *Guard) misrouted(k *kube.Cluster, d *kube.Deployment, spec rollout.Spec) string {
	mine := ours(spec)
	for ref, route := range k.Routes {
		for _, b := range slices.Concat(kube.Backends(route)...) {
			if slices.Contains(mine, b.Service) && !d.Serves(pinOf(k, d, b.Service)) {
				return fmt.Sprintf("%s: HTTPRoute %s sends %d to Service %s, which selects %q and has no ready pod",
					d.Workload, ref.Name, b.Weight, b.Service, pinOf(k, d, b.Service))
			}
		}
	}
	return ""
}

// pinOf returns the version that a Service in the workload's namespace selects.
func pinOf(k *kube.Cluster, d *kube.Deployment, service string) string {
	return k.Pins[rollout.Ref{Kind: "Service", Namespace: d.Workload.Namespace, Name: service}]
}
