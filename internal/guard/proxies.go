package guard

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/traffic"
)

// routing is the proxies' configuration at one time: the Services to which routes send requests, and each Service's version.
type routing struct {
	at     time.Time
	routed []string
	pins   map[string]string
}

// ours returns the two Services between which the requests to a workload are split.
func ours(spec rollout.Spec) []string {
	if p := spec.Canary.PingPong; p != nil {
		return []string{p.PingService, p.PongService}
	}
	return []string{spec.Canary.StableService, spec.Canary.CanaryService}
}

// Follow records the current configuration of the proxies. It forgets configurations that were replaced longer than the
// settle time ago. If the Rollout document is missing or has no router, Follow forgets all configurations.
func (g *Guard) Follow(k *kube.Cluster, d *kube.Deployment, spec rollout.Spec) {
	if spec.Canary == nil || spec.Canary.Traffic == nil {
		g.seen = nil
		return
	}
	now := routing{at: k.Now, pins: map[string]string{}}
	for _, name := range ours(spec) {
		now.pins[name] = pinOf(k, d, name)
	}
	its := traffic.Watched(spec.Canary.Traffic.Routers, d.Workload.Namespace)
	for ref, route := range k.Routes {
		if !slices.Contains(its, ref) {
			continue // the document's routers do not watch this route; it may belong to a removed app
		}
		for _, b := range slices.Concat(kube.Backends(route)...) {
			if b.Weight > 0 && ref.Namespace == d.Workload.Namespace && now.pins[b.Service] != "" {
				now.routed = append(now.routed, b.Service)
			}
		}
	}
	slices.Sort(now.routed)
	now.routed = slices.Compact(now.routed)
	n := len(g.seen)
	if n == 0 || !reflect.DeepEqual(g.seen[n-1].routed, now.routed) || !reflect.DeepEqual(g.seen[n-1].pins, now.pins) {
		g.seen = append(g.seen, now)
	}
	for len(g.seen) > 1 && !g.seen[1].at.Add(spec.Canary.Traffic.Settle).After(k.Now) {
		g.seen = g.seen[1:]
	}
}

// left describes a version without ready pods to which a proxy with an old route or selector may still send requests.
// In-place releases are not checked, because their Services select pods of both versions, as in an ordinary rolling
// update.
func (g *Guard) left(d *kube.Deployment, spec rollout.Spec, leave Leave) string {
	if spec.Canary == nil || spec.Canary.Traffic == nil || g.Floor == 0 || leave.Clock || leave.needsRoom(spec) ||
		spec.Scaling == rollout.InPlace {
		return ""
	}
	now := g.seen[len(g.seen)-1]
	for _, was := range g.seen {
		for _, name := range was.routed {
			if now.pins[name] == "" {
				continue // the Service selects pods of all versions, as in an ordinary rolling update
			}
			for _, and := range g.seen {
				if pin := and.pins[name]; pin != "" && !d.Serves(pin) {
					return fmt.Sprintf("%s: no pod of %s is ready, and a proxy may still send it requests by Service %s",
						d.Workload, pin, name)
				}
			}
		}
	}
	return ""
}
