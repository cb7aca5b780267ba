package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc/grpclog"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"gitrollout.dev/gitrollout/internal/localcluster/nodeagent"
)

// stopWithin limits the wait for a stopped part to end. A slower part ends with the process. For example, the apiserver
// would wait two seconds for open watches.
const stopWithin = 500 * time.Millisecond

// adminUser is the user in the cluster's kubeconfig.
const adminUser = "local-admin"

// cluster is a control plane and its nodes inside this process. Parts start in the order of their dependencies, and
// stop in the opposite order.
type cluster struct {
	dir    stateDir
	certs  certificates
	admin  *rest.Config // has the apiserver's URL
	client kubernetes.Interface
	etcd   *embed.Etcd
	parts  []*part
	failed chan error // gets the error of the first part that ended unexpectedly

	published []string // files with the address of the cluster
}

// part is a server or a set of controllers that runs until it is stopped.
type part struct {
	name   string
	cancel context.CancelFunc
	ended  chan struct{}
}

// startCluster returns when the cluster is usable: nodes are Ready and pods can be created in the default namespace.
func startCluster(ctx context.Context, dir stateDir, o settings) (_ *cluster, err error) {
	c := &cluster{dir: dir, failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	if err := sendLogsTo(dir); err != nil {
		return nil, err
	}
	if c.certs, err = ensureCertificates(dir.file("pki")); err != nil {
		return nil, err
	}
	if c.etcd, err = startEtcd(ctx, dir, o.fsync); err != nil {
		return nil, err
	}
	if err := c.startAPIServer(ctx, o.auditLog); err != nil {
		return nil, err
	}
	if err := c.startControllers(ctx, o.defaultLimits); err != nil {
		return nil, err
	}
	if err := c.startNodes(ctx, o); err != nil {
		return nil, err
	}
	if err := c.awaitUsable(ctx); err != nil {
		return nil, err
	}
	return c, c.publish(o)
}

func (c *cluster) startAPIServer(ctx context.Context, auditLog string) error {
	// The apiserver gets the open listener, so that no other process can take the port before the apiserver starts.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen on a free loopback port: %w", err)
	}
	if c.admin, err = c.certs.identify("https://"+listener.Addr().String(), adminUser); err != nil {
		return err
	}
	c.admin.UserAgent = "localcluster"
	flags := apiServerFlags("http://"+c.etcd.Clients[0].Addr().String(), c.certs)
	if auditLog != "" {
		policy := c.certs.path("audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			return fmt.Errorf("write the audit policy: %w", err)
		}
		flags = append(flags, "--audit-log-path="+auditLog, "--audit-policy-file="+policy)
	}
	run, err := newAPIServer(ctx, listener, flags)
	if err != nil {
		return err
	}
	c.run("kube-apiserver", run)
	if c.client, err = kubernetes.NewForConfig(c.admin); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return c.awaitAPI(ctx)
}

func (c *cluster) startControllers(ctx context.Context, defaultLimits bool) error {
	const user = "system:kube-controller-manager"
	client, err := c.certs.identify(c.admin.Host, user)
	if err != nil {
		return err
	}
	kubeconfig := c.certs.path("controller-manager.kubeconfig")
	if err := writeKubeconfig(kubeconfig, user, client); err != nil {
		return err
	}
	run, err := newControllerManager(ctx, controllerManagerFlags(kubeconfig, c.certs, defaultLimits))
	if err != nil {
		return err
	}
	c.run("kube-controller-manager", run)
	return nil
}

func (c *cluster) startNodes(ctx context.Context, o settings) error {
	const user = "localcluster-node-agent"
	config, err := c.certs.identify(c.admin.Host, user)
	if err != nil {
		return err
	}
	config.UserAgent = user
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("node agent's client: %w", err)
	}
	log, err := c.dir.openLog("node-agent")
	if err != nil {
		return err
	}
	agent, err := nodeagent.New(client, nodeagent.Options{
		Nodes: o.nodes, KubeletVersion: kubernetesVersion, BindPodIPs: o.bindPodIPs,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return err
	}
	ready := make(chan struct{})
	c.run("node agent", func(ctx context.Context) error { return agent.Run(ctx, func() { close(ready) }) })
	if err := c.await(ctx, "the node agent", ready); err != nil {
		return err
	}
	path := c.dir.file("pods-url")
	if err := os.WriteFile(path, []byte(agent.PodsURL()+"\n"), 0o600); err != nil {
		return fmt.Errorf("publish the pods' address: %w", err)
	}
	c.published = append(c.published, path)
	return nil
}

// publish writes the kubeconfig. It runs last, because readers of the file may use the cluster immediately.
func (c *cluster) publish(o settings) error {
	paths := []string{c.dir.file("kubeconfig")}
	if o.kubeconfig != "" {
		paths = append(paths, o.kubeconfig)
	}
	for _, path := range paths {
		if err := writeKubeconfig(path+".new", adminUser, c.admin); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fmt.Errorf("publish kubeconfig: %w", err)
		}
		c.published = append(c.published, path)
	}
	return nil
}

// run starts a part in the background.
func (c *cluster) run(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &part{name: name, cancel: cancel, ended: make(chan struct{})}
	c.parts = append(c.parts, p)
	go func() {
		defer close(p.ended)
		err := run(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		select {
		case c.failed <- fmt.Errorf("%s: %w", name, err):
		default:
		}
	}()
}

// await waits until the channel is closed, a part fails, or the context ends.
func (c *cluster) await(ctx context.Context, what string, signal <-chan struct{}) error {
	select {
	case <-signal:
		return nil
	case err := <-c.failed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", what, ctx.Err())
	}
}

func (c *cluster) stop() {
	for _, path := range c.published {
		os.Remove(path)
	}
	for i := len(c.parts) - 1; i >= 0; i-- {
		c.parts[i].stop()
	}
	if c.etcd != nil {
		c.etcd.Close()
	}
	klog.Flush()
}

func (p *part) stop() {
	p.cancel()
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
	}
}

// sendLogsTo writes the logs of the apiserver and the controllers to one file, because both use Kubernetes' global logger.
func sendLogsTo(dir stateDir) error {
	file, err := dir.openLog("kubernetes")
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for _, setting := range [][2]string{{"logtostderr", "false"}, {"alsologtostderr", "false"}, {"stderrthreshold", "FATAL"}, {"one_output", "true"}} {
		if err := flags.Set(setting[0], setting[1]); err != nil {
			return fmt.Errorf("set log flag %s: %w", setting[0], err)
		}
	}
	klog.SetOutput(file)
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, file, file))
	return nil
}
