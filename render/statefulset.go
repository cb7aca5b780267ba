package render

import "gitrollout.dev/gitrollout/rollout"

func (d *document) mergeStatefulSet(o rollout.Object, _ *deploymentForm, own, other *rollout.Reader) {
	inPlace{
		second: "each pod has a name that no second pod can have", beside: "beside its named pods",
		experiment: "lack its pod names and volumes", replaced: "one at a time", change: "leave it out",
	}.refuse(d, own)
	refuseType(o, other)
	d.mergeUnavailable(o, rollingUpdate, other)
	if partition := rollout.In(o, rollingUpdate+".partition"); partition != nil {
		other.Fail(rollingUpdate+".partition", "leave it out: the steps of the Rollout set the number of pods",
			"is %v, but the Rollout sets it at each step", partition)
	}
}

func refuseType(o rollout.Object, other *rollout.Reader) {
	const at, fix = "spec.updateStrategy.type", "use RollingUpdate, or remove the Rollout"
	switch kind := o.Map("spec", "updateStrategy")["type"]; kind {
	case nil, "RollingUpdate":
	case "OnDelete":
		other.Fail(at, fix, "is %v: Kubernetes would replace a pod only after its deletion", kind)
	default:
		other.Fail(at, fix, "is %v, which Kubernetes does not know", kind)
	}
}
