package render

import "gitrollout.dev/gitrollout/rollout"

// mergeStatefulSet reads the strategy of a StatefulSet. It replaces one pod at a time, so that none is in addition and
// none but that one is missing.
func (d *document) mergeStatefulSet(o rollout.Object, _ *deploymentForm, own, other *rollout.Reader) {
	inPlace{
		second: "each has a name that only one can have", beside: "beside those that have a name",
		experiment: "without their names and volumes", replaced: "one at a time", change: "leave it out",
	}.refuse(d, own)
	strategy := o.Map("spec", "updateStrategy")
	if kind := strategy["type"]; kind != nil && kind != "RollingUpdate" {
		other.Fail("spec.updateStrategy.type", "use RollingUpdate, or remove the Rollout",
			"is %v: Kubernetes would replace a pod when somebody deletes it, and not before", kind)
	}
	if partition := asMap(strategy["rollingUpdate"])["partition"]; partition != nil {
		other.Fail("spec.updateStrategy.rollingUpdate.partition", "leave it out: the steps of the Rollout say how many pods",
			"is %v, and the Rollout sets it at each step", partition)
	}
}
