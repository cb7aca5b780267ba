// Command localcluster runs a real Kubernetes control plane in one process. It has etcd, kube-apiserver and the
// workload controllers of kube-controller-manager as libraries, and a node agent that replaces scheduler, kubelets and
// containers. Tests, the demo and the benchmarks run against it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// kubernetesVersion is the release that go.mod pins. A linker flag in .ci/skew sets another release.
var kubernetesVersion = "v1.36.3"

// startWithin limits the duration of a start. It is far longer than an ordinary start, because machines may be busy.
const startWithin = 2 * time.Minute

// settings are the command's flags.
type settings struct {
	dir            string
	kubeconfig     string
	nodes          int
	auditLog       string
	fsync          bool
	bindPodIPs     bool
	defaultLimits  bool
	exitWithParent bool
}

const help = `Run a Kubernetes control plane with simulated nodes in one process.

localcluster prints one line when the cluster can be used:

    ready kubeconfig=/tmp/localcluster-123/kubeconfig in 3.2s

and runs until SIGINT or SIGTERM. Then it stops within seconds and exits 0.
Logs are in the state folder under log/, never on the terminal.

Everything is on 127.0.0.1, on ports that are free. Pods do not run: an agent
binds them, makes them Ready and answers HTTP in their name at the address in
the state folder's file pods-url:

    curl $(cat DIR/pods-url)/namespaces/default/pods/web-0/
    curl -H 'Host: 10.244.0.7' $(cat DIR/pods-url)/

What a pod does is asked for in the tag of its first image or in a variable:

    shop:v2-slow5s       LOCALCLUSTER_READY_AFTER=5s     ready after 5s
    shop:v2-neverready   LOCALCLUSTER_READY=never        runs, never ready
    shop:v2-unready30s   LOCALCLUSTER_UNREADY_AFTER=30s  unready after 30s
    shop:v2-crash        LOCALCLUSTER_CRASH=1            crash loop
    shop:v2-crash3s      LOCALCLUSTER_CRASH_AFTER=3s     crashes every 3s
    shop:v2-badimage     LOCALCLUSTER_IMAGE=missing      image pull error
    shop:v2-fail0.05     LOCALCLUSTER_FAIL_RATE=0.05     5% of requests fail
    shop:v2-latency200ms LOCALCLUSTER_LATENCY=200ms      slow answers
    shop:v2-stop2s       LOCALCLUSTER_STOP_AFTER=2s      slow to stop
    job:v1-run1s         LOCALCLUSTER_RUN_FOR=1s         a Job's pod takes 1s

A pod without any of these is ready at once.`

func main() {
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "localcluster:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o settings
	command := &cobra.Command{
		Use:   "localcluster",
		Short: "Run a Kubernetes control plane with simulated nodes in one process",
		Long:  help,
		Example: `  localcluster                                  # a throw-away cluster
  localcluster --dir ~/.cache/demo              # one that is still there tomorrow
  localcluster --kubeconfig /tmp/kc --nodes 3
  localcluster --exit-with-parent               # in a test`,
		Version:       "with Kubernetes " + kubernetesVersion,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return runCluster(cmd, o) },
	}
	flags := command.Flags()
	flags.StringVar(&o.dir, "dir", "", "state `folder`, kept and resumed (default: a temporary one, removed on exit)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "write the kubeconfig to this `file` too")
	flags.IntVar(&o.nodes, "nodes", 10, "how many nodes to register")
	flags.StringVar(&o.auditLog, "audit-log", "", "have the API server write each request's metadata to this `file`")
	flags.BoolVar(&o.fsync, "fsync", false, "let etcd wait for the disk, so that state survives a crash of the machine")
	flags.BoolVar(&o.defaultLimits, "default-limits", false,
		"keep the limits of kube-controller-manager: 20 requests a second for each controller, and five Deployments at a time")
	flags.BoolVar(&o.bindPodIPs, "bind-pod-ips", false,
		"listen on every pod's own address and ports too; needs a network namespace with 'ip route add local 10.244.0.0/16 dev lo'")
	// This bool replaces the global flag "version" of Kubernetes' libraries.
	flags.Bool("version", false, "print the version")
	flags.BoolVar(&o.exitWithParent, "exit-with-parent", false, "stop when the parent process ends, however it ends")
	return command
}

func runCluster(cmd *cobra.Command, o settings) (err error) {
	began := time.Now()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.exitWithParent {
		var cancel context.CancelFunc
		ctx, cancel = withParent(ctx)
		defer cancel()
	}
	if o.nodes < 1 {
		return fmt.Errorf("--nodes=%d: at least one node is needed", o.nodes)
	}
	dir, err := openStateDir(o.dir)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := dir.close(); err == nil {
			err = closeErr
		}
	}()
	starting, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	c, err := startCluster(starting, dir, o)
	if ctx.Err() != nil && err != nil {
		return nil // the program was told to stop while it started
	}
	if err != nil {
		return err
	}
	defer c.stop()
	fmt.Fprintf(cmd.OutOrStdout(), "ready kubeconfig=%s in %.1fs\n", dir.file("kubeconfig"), time.Since(began).Seconds())
	select {
	case err := <-c.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}
