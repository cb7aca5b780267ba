// Package nodeagent replaces the scheduler, the kubelets and the containers of a cluster without machines. It registers
// nodes, binds pods to them, reports the status that package podsim computes, serves HTTP for each pod, and terminates
// pods.
//
// Like a controller, it has watches that fill a queue of pod names. Each pass reconciles one pod with the current
// state, so repeated and late passes do no harm.
package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	nodeutil "k8s.io/kubernetes/pkg/util/node"
)

// workers is the number of pods that are handled in parallel. A pod that waits for the apiserver does not delay other pods.
const workers = 32

// Options configure the simulation.
type Options struct {
	Nodes          int
	KubeletVersion string
	BindPodIPs     bool // also listen on the pods' addresses
	Log            *slog.Logger
}

// Agent is the node agent of all nodes.
type Agent struct {
	client  kubernetes.Interface
	options Options
	pods    corelisters.PodLister
	nodes   corelisters.NodeLister
	queue   podQueue
	lives   *lives
	server  *server
	logs    *logServer
	clock   func() time.Time
}

// New opens the listeners for requests to pods and for logs. Run does everything else.
func New(client kubernetes.Interface, options Options) (*Agent, error) {
	server, err := newServer(options)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		client:  client,
		options: options,
		lives:   newLives(),
		server:  server,
		clock:   time.Now,
		queue:   newPodQueue(),
	}
	a.logs, err = newLogServer(func(namespace, name string) (*corev1.Pod, error) { return a.pods.Pods(namespace).Get(name) })
	return a, err
}

// PodsURL returns the URL at which all pods respond. A request selects a pod by the path or the Host header.
func (a *Agent) PodsURL() string { return a.server.url() }

// Run registers the nodes and serves pods until the context ends. It calls ready() when pods can run.
func (a *Agent) Run(ctx context.Context, ready func()) error {
	defer a.server.close()
	defer a.logs.http.Close()
	if err := registerNodes(ctx, a.client, a.options, a.logs.listener.Addr().(*net.TCPAddr).Port); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(a.client, 0)
	a.pods, a.nodes = factory.Core().V1().Pods().Lister(), factory.Core().V1().Nodes().Lister()
	podInformer, nodeInformer := factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer()
	if err := errors.Join(a.watchPods(podInformer), a.watchNodes(nodeInformer)); err != nil {
		return fmt.Errorf("watch pods and nodes: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if ctx.Err() != nil {
		return nil
	}
	// Pods of an earlier run keep their addresses, so these addresses are reserved before new pods get one.
	if err := a.resume(); err != nil {
		return err
	}
	go serve("pods", a.server.http, a.server.listener, a.options.Log)
	go serve("logs", a.logs.http, a.logs.listener, a.options.Log)
	var pool sync.WaitGroup
	for range workers {
		pool.Go(func() {
			for a.handleNext(ctx) {
			}
		})
	}
	ready()
	<-ctx.Done()
	a.queue.ShutDown()
	pool.Wait()
	factory.Shutdown()
	return nil
}

func (a *Agent) watchPods(informer cache.SharedIndexInformer) error {
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			a.queue.Add(types.NamespacedName(key.AsNamespacedName()))
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: enqueue,
	})
	return err
}

// watchNodes retries unschedulable pods when a node changes.
func (a *Agent) watchNodes(informer cache.SharedIndexInformer) error {
	retry := func(any) {
		pods, err := a.pods.List(labels.Everything())
		if err != nil {
			a.options.Log.Error("list pods after a node change", "error", err)
			return
		}
		for _, pod := range pods {
			if pod.Spec.NodeName == "" {
				a.queue.Add(keyOf(pod))
			}
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    retry,
		UpdateFunc: func(_, node any) { retry(node) },
	})
	return err
}

func (a *Agent) resume() error {
	pods, err := a.pods.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list the pods of an earlier run: %w", err)
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" && pod.Status.PodIP != "" {
			if _, err := a.lives.begin(pod, a.clock()); err != nil {
				return err
			}
		}
	}
	return nil
}

// handleNext handles the next pod in the queue. It returns false when the queue is closed.
func (a *Agent) handleNext(ctx context.Context) bool {
	key, closed := a.queue.Get()
	if closed {
		return false
	}
	defer a.queue.Done(key)
	again, err := a.handle(ctx, key)
	if err != nil {
		if ctx.Err() == nil {
			a.options.Log.Error("handle pod", "pod", key.String(), "error", err)
		}
		a.queue.AddRateLimited(key)
		return true
	}
	a.queue.Forget(key)
	if again > 0 {
		a.queue.AddAfter(key, again)
	}
	return true
}

// nodeAddress returns a node's internal IP, which is the hostIP of its pods.
func (a *Agent) nodeAddress(name string) string {
	node, err := a.nodes.Get(name)
	if err != nil {
		return ""
	}
	address, _ := nodeutil.GetPreferredNodeAddress(node, []corev1.NodeAddressType{corev1.NodeInternalIP})
	return address
}
