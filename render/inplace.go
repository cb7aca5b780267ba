package render

import (
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

type inPlace struct {
	second     string // why a second set of pods is impossible
	beside     string // the end of "cannot add pods …"
	experiment string // the end of "the experiment's pods for a <kind> would …"
	replaced   string // the end of "pods are replaced …"
	change     string // the fix for maxSurge or maxUnavailable in a Rollout
	unrouted   string // why routers cannot select new pods; "" if they can
}

func (p inPlace) refuse(d *document, own *rollout.Reader) {
	kind, c := d.workload.Ref().Kind, d.spec.Canary
	if c == nil {
		own.Fail("spec.strategy.blueGreen", "use canary", "is set, but a %s has no second set of pods: %s", kind, p.second)
		return
	}
	switch {
	case c.Traffic != nil && p.unrouted != "":
		own.Fail(trafficPath, "leave it out: a weight is a share of the pods", "is set, but %s", p.unrouted)
	case d.spec.Scaling != rollout.InPlace:
		own.Fail(canaryPath+".scaling", "leave it out, or use inPlace", "is %q, but a %s cannot add pods %s",
			d.spec.Scaling, kind, p.beside)
	case c.DynamicStableScale:
		own.Fail(canaryPath+".dynamicStableScale", "leave it out",
			"is true, but the pods of a %s are replaced in place", kind)
	}
	if c.Traffic != nil && p.unrouted == "" {
		const why = ", but if pods are replaced in place, a weight is a share of the pods"
		if c.PingPong != nil {
			own.Fail(canaryPath+".pingPong", "use stableService and canaryService", "is set"+why)
		}
		if most := c.Traffic.MaxWeight; most != 100 {
			own.Fail(trafficPath+".maxTrafficWeight", "leave it out: weights are percentages", "is %d"+why, most)
		}
		if c.Traffic.Sticky != nil {
			own.Fail(trafficPath+".sticky", "leave it out", "is set"+why)
		}
	}
	form := d.form.Strategy.Canary
	amounts := map[string]*rollout.Amount{"maxSurge": form.MaxSurge, "maxUnavailable": form.MaxUnavailable}
	for _, field := range slices.Sorted(maps.Keys(amounts)) {
		if amounts[field] != nil {
			own.Fail(canaryPath+"."+field, p.change, "is set, but a %s's pods are replaced %s", kind, p.replaced)
		}
	}
	for i, step := range c.Steps {
		if step.Experiment != nil {
			own.Fail(stepPath(i)+".experiment", "leave it out, or measure at a step",
				"is set, but the experiment's pods for a %s would %s", kind, p.experiment)
		}
	}
}

// mergeUnavailable reads maxUnavailable. For kinds with ordinals, the default is 0: all pods must be available.
func (d *document) mergeUnavailable(o rollout.Object, at string, other *rollout.Reader) {
	if p := d.spec.Partition; p != nil && !p.Ordered {
		_ = d.spec.MaxUnavailable.ReadValue(p.Unavailable)
	}
	form := deployStrategy{}.RollingUpdate
	other.Read(at, rollout.In(o, at), &form)
	switch m := form.MaxUnavailable; {
	case m == nil:
	case m.Percent && m.Value > 100:
		other.Fail(at+".maxUnavailable", "write 100% or less", "is %s, which is more than all pods", m)
	case m.Value == 0 && (form.MaxSurge == nil || form.MaxSurge.Value == 0):
		other.Fail(at+".maxUnavailable", "write 1 or more", "is %s, without a maxSurge, so no pod could be replaced", m)
	default:
		d.spec.MaxUnavailable = m.Amount
	}
}
