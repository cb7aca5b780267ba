package cluster

import (
	"cmp"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Applied is one Deployment that gitrollout has applied, and what is written on it.
type Applied struct {
	App      string // rollout.LabelApp
	Cluster  string // rollout.AnnotationCluster
	Workload rollout.Workload
	Commit   string // rollout.AnnotationCommit
	Status   string // rollout.AnnotationStatus, "" unless it is held at a step
	Live     rollout.ObservedWorkload
}

// Applied lists the Deployments that gitrollout has applied, by app and name. It
// reads what the watches brought, and sends no request. It is for those who
// cannot read Git.
func (c *Client) Applied() []Applied {
	k := c.deployments()
	if k == nil {
		return nil
	}
	var found []*live
	k.live.each(func(l *live) bool {
		if l.app != "" && l.cluster != "" && l.deployment != nil {
			found = append(found, l)
		}
		return true
	})
	all := make([]Applied, 0, len(found))
	for _, l := range found {
		all = append(all, Applied{
			App: l.app, Cluster: l.cluster, Workload: rollout.Workload{Namespace: l.namespace, Name: l.name},
			Commit: l.deployment.commit, Status: l.deployment.status, Live: c.observeWorkload(l),
		})
	}
	slices.SortFunc(all, func(a, b Applied) int {
		return cmp.Or(cmp.Compare(a.App, b.App), cmp.Compare(a.Workload.String(), b.Workload.String()))
	})
	return all
}
