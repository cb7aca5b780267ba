package cluster

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/rollout"
)

// requestTimeout bounds every request but watches. The API server itself gives
// up after 60 seconds; an apply takes milliseconds.
const requestTimeout = 30 * time.Second

// syncWithin bounds how long Start waits for the first lists. A server that is
// just coming up refuses a few before it answers.
const syncWithin = time.Minute

// Options configure a Client.
type Options struct {
	Manager   string // field manager and user agent; default "gitrollout"
	Component string // what events name as their reporter; default "gitrollout.dev/reconciler"
	Instance  string // which replica of it; default Manager
	Cluster   string // the cluster's name in Git, for rollout.AnnotationCluster

	// OnChange is called when a live object of an app changed in a way that
	// Observe or the next Apply can notice. It is called from the
	// watches, often several times for one change, and must return at once. It
	// may be nil.
	OnChange func(app string)
}

// Client speaks to one cluster. It is safe for concurrent use by several
// goroutines; calls for the same app must not overlap, because two appliers of
// one object would undo each other.
type Client struct {
	opts   Options
	counts *counters

	kube    kubernetes.Interface
	dynamic dynamic.Interface
	raw     rest.Interface

	resources *resources

	sets *table[*replicaSet]
	pods *table[*pod]

	mu      sync.Mutex
	root    context.Context // of all watches, nil before Start
	running sync.WaitGroup
	kinds   map[schema.GroupVersionKind]*kind
	known   map[rollout.Ref]known       // what this process applied or found applied
	owners  map[rollout.Workload]string // the app that observes a workload, for those without label
	routes  map[rollout.Ref]bool        // whose status somebody observes
	deploys *kind                       // apps/v1 Deployments, watched without selector
	_       struct{}                    // fields by name only
}

// New returns a client for the cluster of a kubeconfig. It sends no request.
// The copy of config that it uses has no client-side rate limit, because the
// API server's own priority and fairness is the better judge, and reports no
// warnings to the log.
func New(config *rest.Config, opts Options) (*Client, error) {
	if opts.Manager == "" {
		opts.Manager = "gitrollout"
	}
	if opts.Component == "" {
		opts.Component = "gitrollout.dev/reconciler"
	}
	if opts.Instance == "" {
		opts.Instance = opts.Manager
	}
	if opts.OnChange == nil {
		opts.OnChange = func(string) {}
	}
	c := &Client{
		opts:   opts,
		counts: &counters{},
		kinds:  map[schema.GroupVersionKind]*kind{},
		known:  map[rollout.Ref]known{},
		owners: map[rollout.Workload]string{},
		routes: map[rollout.Ref]bool{},
	}
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter = -1, nil
	own.UserAgent = opts.Manager
	own.WarningHandler, own.WarningHandlerWithContext = rest.NoWarnings{}, nil
	own.Wrap(c.counts.wrap)
	if err := c.connect(own); err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	c.sets = newTable(c.readReplicaSet, c.replicaSetChanged)
	c.pods = newTable(c.readPod, c.podChanged)
	return c, nil
}

func (c *Client) connect(config *rest.Config) error {
	// All clients share one transport, so that its connections and the counters
	// are shared too.
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	// Protobuf halves the CPU of decoding pods; only built-in types speak it.
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	if c.kube, err = kubernetes.NewForConfigAndClient(typed, shared); err != nil {
		return err
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, shared); err != nil {
		return err
	}
	if c.raw, err = rawClient(config, shared); err != nil {
		return err
	}
	finder, err := discovery.NewDiscoveryClientForConfigAndClient(config, &http.Client{
		Transport: shared.Transport, Timeout: requestTimeout, // it takes no context
	})
	c.resources = &resources{server: finder}
	return err
}

// rawClient sends bodies as they are. Unlike the dynamic client it tells
// whether an apply created the object.
func rawClient(config *rest.Config, shared *http.Client) (rest.Interface, error) {
	raw := dynamic.ConfigFor(config)
	raw.APIPath, raw.GroupVersion = "/", &schema.GroupVersion{}
	return rest.RESTClientForConfigAndClient(raw, shared)
}

// Start watches Deployments, ReplicaSets and Pods, and returns when it has seen
// all of them. Everything that the client runs in the background ends with ctx;
// Wait tells when. The error is one sentence: the server that does not answer,
// or the verb and resource that the client's user may not use.
func (c *Client) Start(ctx context.Context) error {
	c.mu.Lock()
	if c.root != nil {
		c.mu.Unlock()
		return fmt.Errorf("cluster client is already started")
	}
	c.root = ctx
	c.mu.Unlock()

	// The first request tells an unreachable server from a slow one at once,
	// where a watch would try again and again.
	if _, err := c.UID(ctx); err != nil {
		return err
	}
	watchTyped(c, c.sets, "replicasets.apps", &appsv1.ReplicaSet{}, c.kube.AppsV1().ReplicaSets(metav1.NamespaceAll))
	watchTyped(c, c.pods, "pods", &corev1.Pod{}, c.kube.CoreV1().Pods(metav1.NamespaceAll))
	deploys, err := c.watching(ctx, deploymentKind())
	if err != nil {
		return err
	}
	if err := deploys.live.await(ctx, syncWithin); err != nil {
		return fmt.Errorf("watch deployments.apps: %w", err)
	}
	if err := c.sets.await(ctx, syncWithin); err != nil {
		return fmt.Errorf("watch replicasets.apps: %w", err)
	}
	if err := c.pods.await(ctx, syncWithin); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	c.mu.Lock()
	c.deploys = deploys
	c.mu.Unlock()
	return nil
}

// Wait returns when everything in the background has ended, which it does after
// the context of Start.
func (c *Client) Wait() { c.running.Wait() }

// UID returns what identifies the cluster itself: the uid of the kube-system
// namespace, which no cluster shares with another and none outlives.
func (c *Client) UID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ns, err := c.kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", explain(err, rollout.Ref{Kind: "Namespace", Name: metav1.NamespaceSystem}, "get")
	}
	return string(ns.UID), nil
}

func deploymentKind() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("Deployment")
}
