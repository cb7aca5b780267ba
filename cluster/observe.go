package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// Observe returns an app's workloads and routes from the watch caches, which include the Client's earlier writes. The
// result omits missing objects and unwatched kinds. If a watch fails, the result has the last known state, and Unseen
// has the reason.
func (c *Client) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	observed := rollout.Observed{
		Workloads: make(map[rollout.Workload]rollout.ObservedWorkload, len(workloads)),
		Routes:    c.observeRoutes(app, routes),
		Unseen:    c.workloads.unseen(workloads),
	}
	c.workloads.mu.Lock()
	for _, w := range workloads {
		c.workloads.owners[w] = app
	}
	c.workloads.mu.Unlock()
	c.mu.Lock()
	observed.Troubled = c.troubles.of(app)
	c.mu.Unlock()
	for _, w := range workloads {
		k, l := c.workloads.get(w)
		if l == nil {
			continue
		}
		live := c.workloads.observe(k, l)
		if l.app != app {
			live.Serial, live.BreakGlass = 0, "" // these values belong to another app
		}
		observed.Workloads[w] = live
	}
	return observed
}

// Applied is a workload that gitrollout applied, with its labels and annotations.
type Applied struct {
	App       string // rollout.LabelApp
	Cluster   string // rollout.AnnotationCluster
	Workload  rollout.Workload
	Commit    string // rollout.AnnotationCommit
	Status    string // rollout.AnnotationStatus; "" unless a release waits at a step
	Live      rollout.ObservedWorkload
	Generated bool // part of an experiment; deleted at the end of the step
}

// Applied lists the applied workloads in the cache, sorted by app and name. A workload that is watched in two API
// versions is listed once.
func (c *Client) Applied() []Applied {
	var all []Applied
	for _, k := range c.workloads.all() {
		objects := k.objects.Load()
		if objects == nil {
			continue
		}
		for _, l := range slices.Collect(objects.live.each) {
			if l.app == "" || l.cluster == "" || l.workload == nil {
				continue
			}
			workload, _ := rollout.WorkloadOf(l.ref)
			all = append(all, Applied{
				App: l.app, Cluster: l.cluster, Workload: workload, Generated: l.workload.generated,
				Commit: l.workload.commit, Status: l.workload.status, Live: c.workloads.observe(k, l),
			})
		}
	}
	slices.SortFunc(all, func(a, b Applied) int {
		return cmp.Or(cmp.Compare(a.App, b.App), a.Workload.Compare(b.Workload))
	})
	return slices.CompactFunc(all, func(a, b Applied) bool { return a.Workload == b.Workload })
}

// WatchRoutes watches the kinds of routes. Otherwise, Observe would not return routes that another process applied.
func (c *Client) WatchRoutes(ctx context.Context, routes []rollout.Ref) error {
	for _, ref := range routes {
		if _, err := c.kinds.ofRef(ctx, ref); err != nil && !errors.Is(err, errUnknownKind) {
			return explain(err, ref, "list and watch")
		}
	}
	return nil
}

func (c *Client) observeRoutes(app string, routes []rollout.Ref) map[rollout.Ref]rollout.ObservedRoute {
	if len(routes) == 0 {
		return nil
	}
	c.mu.Lock()
	for _, ref := range routes {
		c.routes[ref] = app
	}
	c.mu.Unlock()
	seen := make(map[rollout.Ref]rollout.ObservedRoute, len(routes))
	for _, ref := range routes {
		k, watched := c.kinds.watched(ref)
		if !watched {
			continue
		}
		l, exists := k.get(ref)
		if !exists {
			continue
		}
		route := rollout.ObservedRoute{Generation: l.generation}
		_ = json.Unmarshal([]byte(l.status), &route.Status) // an error means that no status is stored
		seen[ref] = route
	}
	return seen
}

func (c *Client) isRoute(ref rollout.Ref) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.routes[ref] != ""
}

// statusOf returns the status as JSON. If no router writes objects of this kind, or the JSON exceeds 64 KiB, it returns
// "". The status of an HTTPRoute with 32 parents has about 30 kB.
func statusOf(ref rollout.Ref, o rollout.Object) string {
	own := strings.HasSuffix(ref.Group, ".k8s.io") && ref.Group != "gateway.networking.k8s.io"
	if own || !strings.Contains(ref.Group, ".") || o["status"] == nil {
		return ""
	}
	raw, err := json.Marshal(o["status"])
	if err != nil || len(raw) > 64<<10 {
		return ""
	}
	return string(raw)
}

// Serves reports whether a Service has a ready endpoint whose pod has the given pod-template-hash. Like proxies, it
// reads EndpointSlices.
func (c *Client) Serves(ctx context.Context, service rollout.Ref, podHash string) (bool, error) {
	ctx, cancel := context.WithTimeout(As(ctx, ""), requestTimeout)
	defer cancel()
	slices, err := c.kube.discovery.EndpointSlices(service.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name,
	})
	if err != nil {
		service.Group, service.Kind = "discovery.k8s.io", "EndpointSlice"
		return false, explain(err, service, "list")
	}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready || e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
				continue
			}
			if p, known := c.workloads.pods.get(key{service.Namespace, e.TargetRef.Name}); known && p.pin == podHash {
				return true, nil
			}
		}
	}
	return false, nil
}

type node struct {
	stamp
	labels map[string]string
}

func readNode(n *corev1.Node) (*node, error) {
	return &node{stamp: stampOf(&n.ObjectMeta), labels: n.Labels}, nil
}

// Nodes returns the labels of each node. The first call starts the watch, because few apps need Nodes.
func (c *Client) Nodes(ctx context.Context) (map[string]map[string]string, error) {
	if c.kinds.context() == nil {
		return nil, errNotStarted
	}
	c.seesNodes.Do(func() {
		watchTyped(c.kinds.background, c.nodes, "nodes", &corev1.Node{}, func(string) coreclient.NodeInterface {
			return c.kube.core.Nodes()
		})
	})
	if err := c.nodes.await(ctx, listTimeout); err != nil {
		return nil, explain(err, rollout.Ref{Kind: "Node"}, "list and watch")
	}
	all := map[string]map[string]string{}
	for n := range c.nodes.each {
		all[n.name] = n.labels
	}
	return all, nil
}
