package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
)

// electOptions say whether several replicas take turns. The Lease is for liveness alone: one replica works, and another
// one goes on when it is gone. What keeps two from both advancing is Git's compare-and-swap.
type electOptions struct {
	elect     bool
	namespace string
	// The times of kube-controller-manager; tests make them shorter.
	lease, renew, retry time.Duration
}

func (o *electOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.elect, "leader-elect", false,
		"run only while holding a Lease, so that several replicas can be started")
	flags.StringVar(&o.namespace, "leader-elect-namespace", "",
		"where the Lease is (default: the pod's own namespace, or default)")
	o.lease, o.renew, o.retry = 15*time.Second, 10*time.Second, 2*time.Second
}

// podNamespace is where Kubernetes tells a pod's programs their namespace.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// identity is the name under which this process commits, and whether it stands down for another one. A host's or pod's
// name is enough for a process that is alone; replicas need one each, also on the same host.
func (o *electOptions) identity() writer {
	id := hostname()
	if o.elect {
		id += "_" + rand.Text()[:8]
	}
	return writer{id: id, exclusive: o.elect}
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "gitrollout"
	}
	return name
}

func (o *electOptions) where() string {
	if o.namespace != "" {
		return o.namespace
	}
	return ownNamespace("default")
}

// ownNamespace is the pod's, or another one outside of a cluster.
func ownNamespace(otherwise string) string {
	if own, err := os.ReadFile(podNamespace); err == nil && len(own) > 0 {
		return strings.TrimSpace(string(own))
	}
	return otherwise
}

// protected is gitrollout's namespace, where no app may write.
func protected() string { return ownNamespace(rollout.OwnNamespace) }

// lead calls work while this process holds the Lease of a cluster, or at once if there is no election.
func (o *electOptions) lead(ctx context.Context, config *rest.Config, of, id string, log *slog.Logger,
	work func(context.Context) error) error {
	if !o.elect {
		return work(ctx)
	}
	e := cluster.Election{Namespace: o.where(), Name: "gitrollout-" + of, ID: id,
		Duration: o.lease, Renew: o.renew, Retry: o.retry}
	lease := e.Namespace + "/" + e.Name
	e.Leading = func() { log.Info("leading", "lease", lease, "id", id) }
	e.Waiting = func(leader string) { log.Info("waiting for the Lease", "lease", lease, "leader", leader) }
	return e.Lead(ctx, config, work)
}
