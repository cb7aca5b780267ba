package render

import "gitrollout.dev/gitrollout/rollout"

// merger reads the update strategy of one workload kind, and refuses settings that do not work with this kind.
type merger struct {
	merge    func(d *document, o rollout.Object, from *deploymentForm, own, other *rollout.Reader)
	ordinals bool // the pods have ordinals, so pods above a partition can be rolled back
	nodes    bool // a release can select nodes
}

var mergers = map[string]merger{
	"":            {merge: (*document).mergeStrategy},
	"StatefulSet": {merge: (*document).mergeStatefulSet, ordinals: true},
	"DaemonSet":   {merge: (*document).mergeDaemonSet, nodes: true},
}
