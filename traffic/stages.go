package traffic

import "gitrollout.dev/gitrollout/rollout"

// Stages returns a spec's Routes between releases and at each step, for an early check. The pod hashes are fake.
func Stages(spec rollout.Spec) []Route {
	c := spec.Canary
	t := c.Traffic
	pairs := [][2]string{{c.StableService, c.CanaryService}}
	if p := c.PingPong; p != nil {
		pairs = [][2]string{{p.PingService, p.PongService}, {p.PongService, p.PingService}}
	}
	var routes []Route
	for _, pair := range pairs {
		rest := Route{
			Name: spec.Name, Namespace: spec.Workload.Namespace, Stable: pair[0], Canary: pair[1],
			Max: t.MaxWeight, Sticky: t.Sticky,
		}
		full := rest
		full.Weight, full.Active, full.StablePods, full.CanaryPods = t.MaxWeight, true, "stable", "canary"
		routes = append(routes, rest, full)
		for i, step := range c.Steps {
			at := full
			if step.SetWeight != nil {
				at.Weight = *step.SetWeight
			}
			at.Managed = Managed(c.Steps[:i+1], t.ManagedRoutes)
			routes = append(routes, at)
		}
	}
	return routes
}
