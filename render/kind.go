package render

import "gitrollout.dev/gitrollout/rollout"

type merger struct {
	merge    func(d *document, o rollout.Object, from *deploymentForm, own, other *rollout.Reader)
	ordinals bool // pods above a partition can be rolled back
	nodes    bool // a release can select nodes
}

var mergers = map[string]merger{
	"":            {merge: (*document).mergeStrategy},
	"StatefulSet": {merge: (*document).mergeStatefulSet, ordinals: true},
	"DaemonSet":   {merge: (*document).mergeDaemonSet, nodes: true},
}
