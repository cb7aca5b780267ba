package render

import "gitrollout.dev/gitrollout/rollout"

// merger reads what a kind of workload says in its own manifest of how its pods are replaced, and refuses what of a
// document it cannot do. A kind is one line of this table and a file of its own.
type merger struct {
	merge    func(d *document, o rollout.Object, from *deploymentForm, own, other *rollout.Reader)
	ordinals bool // its pods have them, so that those above a partition can be taken back
	nodes    bool // who releases it chooses the nodes
}

var mergers = map[string]merger{
	"":            {merge: (*document).mergeStrategy},
	"StatefulSet": {merge: (*document).mergeStatefulSet, ordinals: true},
	"DaemonSet":   {merge: (*document).mergeDaemonSet, nodes: true},
}

// merger is that of a document's workload.
func (d *document) merger() merger {
	if d.spec.Partition != nil {
		return merger{merge: (*document).mergePartitioned}
	}
	return mergers[d.workload.Kind]
}
