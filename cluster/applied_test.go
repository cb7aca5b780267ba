package cluster

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestForgetAnApp checks that Forget drops all records of a removed app, but keeps the records of objects that another app has taken over.
func TestForgetAnApp(t *testing.T) {
	c := &Client{workloads: newWorkloads(func(string) {}), routes: map[rollout.Ref]string{}}
	c.applied.known = map[rollout.Ref]known{}
	c.kinds = &kinds{}
	workload := func(name string) rollout.Workload { return rollout.Workload{Namespace: "shop", Name: name} }
	route := func(name string) rollout.Ref {
		return rollout.Ref{Group: "example.com", Kind: "Route", Namespace: "shop", Name: name}
	}
	for _, app := range []string{"gone", "stays"} {
		c.Observe(app, []rollout.Workload{workload("moved"), workload(app)}, []rollout.Ref{route("moved"), route(app)})
		for _, name := range []string{"moved", app} {
			d, err := c.prepare(app, rollout.Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}})
			must(t, err)
			c.applied.note(d, &live{}, "", c.applied.known[d.ref].repaired)
		}
	}
	c.Forget("gone")
	if len(c.applied.known) != 2 || len(c.workloads.owners) != 2 || len(c.routes) != 2 {
		t.Errorf("known %v, owners %v, routes %v: want only moved and stays", c.applied.known, c.workloads.owners, c.routes)
	}
	if app := c.workloads.owners[workload("moved")]; app != "stays" || !c.isRoute(route("moved")) || c.isRoute(route("gone")) {
		t.Errorf("the workload that moved is %q's; routes %v", app, c.routes)
	}
}
