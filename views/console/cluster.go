package console

import (
	"context"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/views/status"
)

// ClusterView lists apps from the cluster alone.
type ClusterView struct {
	Client *cluster.Client
	Name   string // name in Git; "" for every name
	Why    string // why the view has no data from Git
}

// Refresh does nothing: watches keep Client current.
func (v *ClusterView) Refresh(context.Context) (bool, error) { return false, nil }

// Listing returns the app in args. Without args, it returns all apps.
func (v *ClusterView) Listing(_ context.Context, args []string, _ time.Time) (status.Listing, error) {
	type name struct{ cluster, app string }
	l := status.Listing{Cluster: v.Name}
	var order []name
	found := map[name][]status.Live{}
	for _, a := range v.Client.Applied() {
		if (v.Name != "" && a.Cluster != v.Name) || (len(args) > 0 && a.App != args[0]) {
			continue
		}
		n := name{a.Cluster, a.App}
		if found[n] == nil {
			order = append(order, n)
		}
		found[n] = append(found[n], status.Live{Workload: a.Workload, Observed: a.Live, Commit: a.Commit, Held: a.Status})
		l.Cluster = a.Cluster
	}
	for _, n := range order {
		l.Apps = append(l.Apps, status.OfCluster(n.app, n.cluster, found[n]))
	}
	if len(args) > 0 && len(l.Apps) == 0 {
		return l, NoAppError(fmt.Sprintf(
			"the cluster has no workload of an app %q; gitrollout list --cluster-only shows all", args[0]))
	}
	l.SetNote("shown from the cluster alone, without the data in Git (steps, verdicts, people, next commands): " + v.Why)
	return l, nil
}
