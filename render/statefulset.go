package render

import "gitrollout.dev/gitrollout/rollout"

// refuseForStatefulSet refuses what a document asks for that a StatefulSet cannot do: its pods have names, so that no
// pod of the new version is beside the stable one.
func (d *document) refuseForStatefulSet(own *rollout.Reader) {
	c := d.spec.Canary
	if c == nil {
		own.Fail("spec.strategy.blueGreen", "use canary",
			"is given, and a StatefulSet has no second set of pods: each has a name that only one can have")
		return
	}
	switch {
	case c.Traffic != nil:
		own.Fail(canaryPath+".trafficRouting", "leave it out: a weight is a share of the pods",
			"is given, and requests cannot be routed to the new pods of a StatefulSet yet")
	case d.spec.Scaling != rollout.InPlace:
		own.Fail(canaryPath+".scaling", "leave it out, or use inPlace",
			"is %q, and a StatefulSet has no pods beside those that have a name", d.spec.Scaling)
	case c.DynamicStableScale:
		own.Fail(canaryPath+".dynamicStableScale", "leave it out",
			"is true, and the pods of a StatefulSet are replaced in place")
	}
	for field, amount := range map[string]*rollout.Amount{
		"maxSurge": d.form.Strategy.Canary.MaxSurge, "maxUnavailable": d.form.Strategy.Canary.MaxUnavailable,
	} {
		if amount != nil {
			own.Fail(canaryPath+"."+field, "leave it out", "is given, and a StatefulSet's pods are replaced one at a time")
		}
	}
	for i, step := range c.Steps {
		if step.Experiment != nil {
			own.Fail(stepPath(i)+".experiment", "leave it out, or measure at a step",
				"is given, and its pods would be those of a StatefulSet without their names and volumes")
		}
	}
}

// mergeStatefulSet reads the strategy of a StatefulSet. It replaces one pod at a time, so that none is in addition and
// none but that one is missing.
func (d *document) mergeStatefulSet(spec map[string]any, own, other *rollout.Reader) {
	d.refuseForStatefulSet(own)
	strategy := asMap(spec["updateStrategy"])
	if kind := strategy["type"]; kind != nil && kind != "RollingUpdate" {
		other.Fail("spec.updateStrategy.type", "use RollingUpdate, or remove the Rollout",
			"is %v: Kubernetes would replace a pod when somebody deletes it, and not before", kind)
	}
	if partition := asMap(strategy["rollingUpdate"])["partition"]; partition != nil {
		other.Fail("spec.updateStrategy.rollingUpdate.partition", "leave it out: the steps of the Rollout say how many pods",
			"is %v, and the Rollout sets it at each step", partition)
	}
}
