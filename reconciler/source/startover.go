package source

import (
	"cmp"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// StartOver returns the edits that let another cluster use a state branch: a new UID and epoch in cluster.yaml.
func StartOver(
	tree rollout.Tree, at rollout.Cluster, apps []string, now time.Time, tell func(app, what string),
) (map[string][]byte, error) {
	of, err := ReadCluster(tree)
	if err != nil {
		return nil, err
	}
	of = cmp.Or(of, &at)
	of.UID = at.UID
	of.Writer.Epoch++
	edits := map[string][]byte{}
	if edits[rollout.ClusterPath], err = of.Encode(); err != nil {
		return nil, err
	}
	for _, app := range apps {
		path := rollout.StatePath(app)
		data, found, err := ReadFile(tree, path)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		state, err := rollout.ParseState(path, data)
		if err != nil {
			tell(app, "left as it is: "+err.Error())
			continue
		}
		next, ok := strategies.StartOver(*state, now)
		if !ok {
			edits[path] = nil
			tell(app, "starts as a first deployment: nothing was stable yet")
			continue
		}
		if edits[path], err = next.Encode(); err != nil {
			return nil, err
		}
		tell(app, "first goes to stable "+string(next.Stable.Hash)+" of "+rollout.ShortID(next.Stable.Commit))
	}
	return edits, nil
}
