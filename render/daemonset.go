package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"gitrollout.dev/gitrollout/rollout"
)

// mergeDaemonSet reads maxUnavailable, the number of nodes that may lack a ready pod. The default is 1, even if
// maxSurge is set.
func (d *document) mergeDaemonSet(o rollout.Object, _ *deploymentForm, own, other *rollout.Reader) {
	d.mergeNodes(o, own, other)
	if d.spec.Canary != nil {
		for i, s := range d.spec.Canary.NodeOrder {
			for _, wrong := range validation.ValidateLabels(s.MatchLabels, nil) {
				own.Fail(fmt.Sprintf("%s.nodeOrder[%d].matchLabels", canaryPath, i), "write the labels that the nodes have",
					"no node can have %q: %s", wrong.BadValue, wrong.Detail)
			}
		}
	}
	refuseType(o, other)
}

const rollingUpdate = "spec.updateStrategy.rollingUpdate"

const nodesElsewhere = "nodes can be chosen only for a DaemonSet of apps/v1"

func (d *document) mergeNodes(o rollout.Object, own, other *rollout.Reader) {
	inPlace{
		second: "a node has only one pod of a DaemonSet", beside: "beside the pod on each node",
		experiment: "share nodes with its pods", replaced: "as its own rolling update says",
		change:   "set it in spec.updateStrategy.rollingUpdate of the DaemonSet",
		unrouted: "the node determines which pod of a DaemonSet gets a request",
	}.refuse(d, own)
	if d.form.Replicas != nil {
		own.Fail("spec.replicas", "leave it out", "is %d, but a DaemonSet has a pod on each node", *d.form.Replicas)
	}
	if d.spec.Canary != nil {
		for _, s := range d.services() {
			own.Fail(s.field, "leave it out", "is %q, but the node determines which pod of a DaemonSet gets a request", *s.name)
		}
	}
	if d.mergeUnavailable(o, rollingUpdate, other); d.spec.MaxUnavailable.Value == 0 {
		d.spec.MaxUnavailable = rollout.Amount{Value: 1}
	}
}
