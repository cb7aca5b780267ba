package render

import "gitrollout.dev/gitrollout/rollout"

// merger reads a workload kind's update strategy and refuses unsupported settings. A kind is one line and one file.
type merger struct {
	merge    func(d *document, o rollout.Object, from *deploymentForm, own, other *rollout.Reader)
	ordinals bool // its pods have ordinals, so those above a partition can be rolled back
	nodes    bool // a release can choose the nodes
}

var mergers = map[string]merger{
	"":            {merge: (*document).mergeStrategy},
	"StatefulSet": {merge: (*document).mergeStatefulSet, ordinals: true},
	"DaemonSet":   {merge: (*document).mergeDaemonSet, nodes: true},
}

func (d *document) merger() merger {
	if d.spec.Partition != nil {
		return merger{merge: (*document).mergePartitioned}
	}
	return mergers[d.workload.Kind]
}
