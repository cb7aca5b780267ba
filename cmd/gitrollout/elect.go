package main

import (
	"cmp"
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

// electOptions configure leader election. Election only saves work, because Git refuses a second writer's pushes.
type electOptions struct {
	elect     bool
	namespace string
	// These have the defaults of kube-controller-manager.
	lease, renew, retry time.Duration
}

func (o *electOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.elect, "leader-elect", false,
		"run only while holding a Lease, so that several replicas can be started")
	flags.StringVar(&o.namespace, "leader-elect-namespace", "",
		"namespace of the Lease (default: the pod's namespace or, outside a pod, default)")
	o.lease, o.renew, o.retry = 15*time.Second, 10*time.Second, 2*time.Second
}

// identity names this process after its host or pod. With leader election, the name gets a random suffix, because
// replicas may share a host.
func (o *electOptions) identity() writer {
	id := hostname()
	if o.elect {
		id += "_" + rand.Text()[:8]
	}
	return writer{id: id, exclusive: o.elect}
}

func hostname() string {
	name, _ := os.Hostname() // "" after an error
	return cmp.Or(name, "gitrollout")
}

func ownNamespace(otherwise string) string {
	own, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err == nil && len(own) > 0 {
		return strings.TrimSpace(string(own))
	}
	return otherwise
}

// protected returns the namespace where no app may have objects.
func protected() string { return ownNamespace(rollout.OwnNamespace) }

func (o *electOptions) lead(ctx context.Context, config *rest.Config, of, id string, log *slog.Logger,
	work func(context.Context) error) error {
	if !o.elect {
		return work(ctx)
	}
	e := cluster.Election{Namespace: cmp.Or(o.namespace, ownNamespace("default")), Name: "gitrollout-" + of, ID: id,
		Duration: o.lease, Renew: o.renew, Retry: o.retry}
	lease := e.Namespace + "/" + e.Name
	e.Leading = func() { log.Info("leading", "lease", lease, "id", id) }
	e.Waiting = func(leader string) { log.Info("waiting for the Lease", "lease", lease, "leader", leader) }
	return e.Lead(ctx, config, work)
}
