package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"gitrollout.dev/gitrollout/rollout"
)

type node struct {
	stamp
	labels map[string]string
}

func readNode(n *corev1.Node) (*node, error) {
	return &node{stamp: stampOf(&n.ObjectMeta), labels: n.Labels}, nil
}

// Nodes returns labels by node name. The first call starts the watch, which few apps need.
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
