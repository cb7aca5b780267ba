// Package guard watches a modelled Deployment for tests: what its owner's fields
// promise to users holds in every state of a release. The tests of simulate and of
// strategies share it.
package guard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

// Guard holds a Deployment to what its owner's fields promise to users, while
// releases move its pods: as many pods serve as maxUnavailable asks for, at most
// two versions serve at once, and no Service selects a version without ready
// pods while the other one has some.
type Guard struct {
	Up       bool // it has served well: from now on the promises hold
	Replicas int
	Floor    int // ready pods that the user's maxUnavailable asks for
	Excused  int // of which the test itself took away so many

	seen []routing // what proxies may know, oldest first
}

// Leave says which promises do not hold at the moment, and why.
type Leave struct {
	Retreating bool // Kubernetes takes the canary's pods for unhealthy ones, and spares none that has served for long
	Lag        bool // controllers work with old numbers, and break maxUnavailable by themselves
	Overtaken  bool // somebody promoted a release fully while another one was on its way back
	Clock      bool // the clocks by which a release waits are wrong
	Lost       bool // people took the commits of what is in flight out of the history: nobody can read its routes
}

// needsRoom reports whether pods may go before proxies know that they get no requests: a dynamic stable on its way back
// needs the room.
func (l Leave) needsRoom(spec rollout.Spec) bool {
	return l.Retreating && spec.Canary != nil && spec.Canary.DynamicStableScale
}

// Trouble says which promise is broken now, "" if none is.
func (g *Guard) Trouble(k *kube.Cluster, d *kube.Deployment, spec rollout.Spec, leave Leave) string {
	if g.Replicas != d.Replicas {
		g.Scaled(k.Now, d, spec)
	}
	g.follow(k, d, spec)
	if n := len(g.seen); (leave.Overtaken || leave.Lost || leave.needsRoom(spec)) && n > 0 {
		g.seen = g.seen[n-1:] // what left meanwhile is forgiven when the leave ends, too
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
	if d.IsUnordered() { // Kubernetes' own rolling update of a StatefulSet
		g.Excused = max(g.Excused, g.Floor-serving)
	}
	switch {
	case !g.Up:
		return ""
	case serving+g.Excused < g.Floor && !leave.Lag && !leave.Overtaken:
		return fmt.Sprintf("%s: %d pods serve (%d are ready), the user allows no less than %d (%d taken by the test)",
			d.Workload, serving, ready, g.Floor, g.Excused)
	case len(versions) > 2 && !leave.Overtaken:
		return fmt.Sprintf("%s: three versions have ready pods: %v", d.Workload, versions)
	case g.Excused == 0 && !leave.Lag && !leave.Overtaken:
		return cmp.Or(g.misled(k, d, spec, ready), g.left(d, spec, leave))
	default:
		return ""
	}
}

// Scaled moves the floor. Pods that a scale-up asks for need time; a scale-down
// in flight is spread over the ReplicaSets by size, whether their pods are ready
// or not (sync.go, scale), so each pod that is not ready may cost one that is.
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
				g.Excused++ // each set's share is rounded
			}
		}
		g.Excused += d.Moved()
	}
	g.Replicas, g.Floor = d.Replicas, floor
}

// Settle forgives nothing from now on. What was missing until then is forgiven for as long as proxies remember it, too.
func (g *Guard) Settle() {
	if n := len(g.seen); g.Excused > 0 && n > 0 {
		g.seen = g.seen[n-1:]
	}
	g.Excused = 0
}

// misled finds a Service that sends users to a version without ready pods.
func (g *Guard) misled(k *kube.Cluster, d *kube.Deployment, spec rollout.Spec, ready int) string {
	name := ""
	switch {
	case spec.BlueGreen != nil:
		name = spec.BlueGreen.ActiveService
	case spec.Canary != nil:
		name = spec.Canary.StableService
	}
	if ready == 0 || g.Floor == 0 {
		return ""
	}
	if spec.Canary != nil && spec.Canary.Traffic != nil {
		return g.misrouted(k, d, spec)
	}
	if pin := pinOf(k, d, name); name != "" && !d.Serves(pin) {
		return fmt.Sprintf("%s: Service %s selects %s, which has no ready pod, and %d others have",
			d.Workload, name, pin, ready)
	}
	return ""
}

// misrouted finds a route that names a Service without ready pods. Whatever its
// weight is, there are routers that then drop the whole route.
func (g *Guard) misrouted(k *kube.Cluster, d *kube.Deployment, spec rollout.Spec) string {
	mine := ours(spec)
	for ref, route := range k.Routes {
		for _, rule := range kube.Backends(route) {
			for _, b := range rule {
				if slices.Contains(mine, b.Service) && !d.Serves(pinOf(k, d, b.Service)) {
					return fmt.Sprintf("%s: HTTPRoute %s sends %d to Service %s, which selects %q and has no ready pod",
						d.Workload, ref.Name, b.Weight, b.Service, pinOf(k, d, b.Service))
				}
			}
		}
	}
	return ""
}

// pinOf is what a Service of a workload's namespace selects.
func pinOf(k *kube.Cluster, d *kube.Deployment, service string) string {
	return k.Pins[rollout.Ref{Kind: "Service", Namespace: d.Workload.Namespace, Name: service}]
}
