package render

import "gitrollout.dev/gitrollout/rollout"

// inPlace says why pods of a kind of workload can be replaced only where they are: none of the new version is beside
// the stable ones.
type inPlace struct {
	second     string // why there is no second set of pods
	beside     string // what pods it does not have
	experiment string // what those of an experiment would be
	replaced   string // how many pods are replaced at once
	change     string // what to do about that
}

// refuse refuses what a document asks for that cannot be done in place.
func (p inPlace) refuse(d *document, own *rollout.Reader) {
	kind, c := d.workload.Kind, d.spec.Canary
	if c == nil {
		own.Fail("spec.strategy.blueGreen", "use canary", "is given, and a %s has no second set of pods: %s", kind,
			p.second)
		return
	}
	switch {
	case c.Traffic != nil:
		own.Fail(canaryPath+".trafficRouting", "leave it out: a weight is a share of the pods",
			"is given, and requests cannot be routed to the new pods of a %s yet", kind)
	case d.spec.Scaling != rollout.InPlace:
		own.Fail(canaryPath+".scaling", "leave it out, or use inPlace", "is %q, and a %s has no pods %s",
			d.spec.Scaling, kind, p.beside)
	case c.DynamicStableScale:
		own.Fail(canaryPath+".dynamicStableScale", "leave it out",
			"is true, and the pods of a %s are replaced in place", kind)
	}
	for field, amount := range map[string]*rollout.Amount{
		"maxSurge": d.form.Strategy.Canary.MaxSurge, "maxUnavailable": d.form.Strategy.Canary.MaxUnavailable,
	} {
		if amount != nil {
			own.Fail(canaryPath+"."+field, p.change, "is given, and a %s's pods are replaced %s", kind, p.replaced)
		}
	}
	for i, step := range c.Steps {
		if step.Experiment != nil {
			own.Fail(stepPath(i)+".experiment", "leave it out, or measure at a step",
				"is given, and its pods would be those of a %s %s", kind, p.experiment)
		}
	}
}
