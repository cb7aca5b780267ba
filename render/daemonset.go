package render

import "gitrollout.dev/gitrollout/rollout"

// mergeDaemonSet reads the strategy of a DaemonSet: at its steps so many nodes may be without a pod that serves as in
// its own rolling update, one where that lets pods of both versions be on a node instead. Kubernetes' default is 1.
func (d *document) mergeDaemonSet(o rollout.Object, _ *deploymentForm, own, other *rollout.Reader) {
	d.mergeNodes(o, own, other)
	if kind := o.Map("spec", "updateStrategy")["type"]; kind != nil && kind != "RollingUpdate" {
		other.Fail("spec.updateStrategy.type", "use RollingUpdate, or remove the Rollout",
			"is %v: Kubernetes would replace a pod when somebody deletes it, and not before", kind)
	}
}

// nodesElsewhere is what a document is told that orders the nodes of a workload which does not let it.
const nodesElsewhere = "only a DaemonSet of apps/v1 has its nodes chosen"

// mergeNodes reads the strategy of what has a pod on each node, whoever moves them: nobody else says how many, and none
// is asked for by its version.
func (d *document) mergeNodes(o rollout.Object, own, other *rollout.Reader) {
	inPlace{
		second: "a node has one of them", beside: "beside the one on each node",
		experiment: "on nodes that have one", replaced: "as its own rolling update says",
		change:   "set it in spec.updateStrategy.rollingUpdate of the DaemonSet",
		unrouted: "which pod of a DaemonSet is asked is said by the node",
	}.refuse(d, own)
	if d.form.Replicas != nil {
		own.Fail("spec.replicas", "leave it out", "is %d, and a DaemonSet has a pod on each node", *d.form.Replicas)
	}
	if c := d.spec.Canary; c != nil {
		for field, name := range map[string]string{"stableService": c.StableService, "canaryService": c.CanaryService} {
			if name != "" {
				own.Fail(canaryPath+"."+field, "leave it out",
					"is %q, and which pod of a DaemonSet is asked is said by the node", name)
			}
		}
	}
	form := struct {
		MaxUnavailable *podAmount     `json:"maxUnavailable"`
		Rest           map[string]any `json:"*"`
	}{}
	other.Read("spec.updateStrategy.rollingUpdate", o.Map("spec", "updateStrategy", "rollingUpdate"), &form)
	if form.MaxUnavailable != nil {
		d.spec.MaxUnavailable = form.MaxUnavailable.Amount
	}
	if d.spec.MaxUnavailable.Value == 0 {
		d.spec.MaxUnavailable = rollout.Amount{Value: 1}
	}
}
