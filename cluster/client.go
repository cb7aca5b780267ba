package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	leasesclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/rollout"
)

// requestTimeout limits requests, except for logs and caches. The API server's limit is 60 s.
const requestTimeout = 30 * time.Second

// syncWithin limits how long Start waits for each first list. A starting API server refuses some requests.
const syncWithin = time.Minute

const manager = "gitrollout"

// Options configure a Client.
type Options struct {
	Cluster string // the cluster's name in Git, for rollout.AnnotationCluster
	// OnChange is called after changes that matter to an app's Observe or Apply. It must not block, and may be nil.
	OnChange func(app string)
	// Wants returns an object of the app's newest commit. If it returns nil, another app may take over the object. An
	// error means that the commit is unknown. If Wants itself is nil, any app may take over any object.
	Wants func(app string, ref rollout.Ref) (rollout.Object, error)
	// Namespaces limits watches and writes. If empty, they cover the whole cluster.
	Namespaces []string
	// UID is an earlier result of Client.UID, or "". If set, Client.UID returns the uid of the same namespace.
	UID string
	// MayHave returns an error if an app may not have a cluster-scoped kind. If MayHave is nil, all kinds are allowed.
	MayHave func(app, kind string) *rollout.InvalidError
	// Taken, if set, is called when gitrollout takes over other managers' fields in order to remove the fields. The
	// text also names the managers.
	Taken func(ref rollout.Ref, fields string)
}

// Client talks to one cluster. It is safe for concurrent use, but calls for the same app must not overlap.
type Client struct {
	opts   Options
	counts *counters

	kube      typed
	server    *server
	kinds     *kinds
	workloads *workloads
	applied   appliedCache
	nodes     *table[*node]
	seesNodes sync.Once

	mu       sync.Mutex
	routes   map[rollout.Ref]string // by route: the app that last observed it
	troubles troubles
}

// New sends no request. The client ignores warnings. It has no rate limit, because the API server has one.
func New(config *rest.Config, opts Options) (*Client, error) {
	if opts.OnChange == nil {
		opts.OnChange = func(string) {}
	}
	c := &Client{
		opts:      opts,
		counts:    &counters{},
		workloads: newWorkloads(opts.OnChange, opts.Namespaces...),
		applied:   appliedCache{known: map[rollout.Ref]known{}},
		nodes:     newTable(reading(readNode), func(_, _ *node) {}),
		routes:    map[rollout.Ref]string{},
		troubles:  troubles{},
	}
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter = -1, nil
	own.UserAgent = manager
	own.WarningHandler, own.WarningHandlerWithContext = rest.NoWarnings{}, nil
	own.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return fenced{impersonating{countingTransport{c.counts, next}}}
	})
	if err := c.connect(own); err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	return c, nil
}

func (c *Client) connect(config *rest.Config) error {
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	if c.kube, err = newTyped(config, shared); err != nil {
		return err
	}
	requests, err := dynamic.NewForConfigAndClient(config, shared)
	if err != nil {
		return err
	}
	c.server = &server{dynamic: requests, taken: c.opts.Taken}
	finder, err := discovery.NewDiscoveryClientForConfigAndClient(config, &http.Client{
		Transport: shared.Transport, Timeout: requestTimeout, // discovery takes no context
	})
	c.kinds = &kinds{
		background: &background{}, anyKind: anyKind{&resources{server: finder}, requests}, namespaces: c.opts.Namespaces,
		read: c.readLive, changed: c.liveChanged, runsPods: func(gvk schema.GroupVersionKind) bool {
			return c.workloads.kindOf(gvk) != nil
		}, all: map[schema.GroupVersionKind]*kind{},
	}
	return err
}

// Start watches workloads, revisions and pods until ctx ends. It returns after the first lists. Its error names an
// unreachable server, or a forbidden verb and resource.
func (c *Client) Start(ctx context.Context) error {
	if err := c.kinds.start(ctx); err != nil {
		return err
	}
	// Check first, because a watch retries silently while the server is unreachable.
	if _, err := c.UID(ctx); err != nil && !IsForbidden(err) {
		return err
	}
	return c.workloads.start(ctx, c.kinds, c.kube)
}

// Readable returns the namespaces in which the user may list pods.
func Readable(ctx context.Context, config *rest.Config, namespaces []string) []string {
	c, err := New(config, Options{})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(namespaces), func(name string) bool {
		_, err := c.kube.core.Pods(name).List(ctx, metav1.ListOptions{Limit: 1})
		return err != nil
	})
}

// Wait waits for all background work.
func (c *Client) Wait() { c.kinds.running.Wait() }

// UID returns the cluster's identity: the uid of kube-system, or NAMESPACE/UID of another namespace (IdentifiedBy).
func (c *Client) UID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	namespace, prefix := c.opts.IdentifiedBy(), ""
	if namespace != metav1.NamespaceSystem {
		prefix = namespace + "/"
	}
	ns, err := c.kube.core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return "", explain(err, rollout.Ref{Kind: "Namespace", Name: namespace}, "get")
	}
	return prefix + string(ns.UID), nil
}

// IdentifiedBy returns the namespace whose uid identifies the cluster.
func (o Options) IdentifiedBy() string {
	namespace, _, is := strings.Cut(o.UID, "/")
	switch {
	case is:
		return namespace
	case o.UID == "" && len(o.Namespaces) > 0:
		return o.Namespaces[0]
	}
	return metav1.NamespaceSystem
}

// typed has only the needed clients, because kubernetes.Clientset would make the program 10 % larger.
type typed struct {
	apps      *appsclient.AppsV1Client
	batch     *batchclient.BatchV1Client
	core      *coreclient.CoreV1Client
	discovery *discoveryclient.DiscoveryV1Client
	events    *eventsclient.EventsV1Client
	leases    *leasesclient.CoordinationV1Client
}

// newTyped uses protobuf, which halves the CPU time for decoding pods.
func newTyped(config *rest.Config, shared *http.Client) (t typed, err error) {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	var errs [6]error
	t.apps, errs[0] = appsclient.NewForConfigAndClient(config, shared)
	t.batch, errs[1] = batchclient.NewForConfigAndClient(config, shared)
	t.core, errs[2] = coreclient.NewForConfigAndClient(config, shared)
	t.discovery, errs[3] = discoveryclient.NewForConfigAndClient(config, shared)
	t.events, errs[4] = eventsclient.NewForConfigAndClient(config, shared)
	t.leases, errs[5] = leasesclient.NewForConfigAndClient(config, shared)
	return t, cmp.Or(errs[:]...)
}

// Stats counts requests since New, and cached records.
type Stats struct {
	Writes     int // POST, PUT, PATCH and DELETE without dryRun, including events
	DryRuns    int // the same verbs with dryRun
	Reads      int // GET: objects, lists, watches and discovery
	LostEvents int // events that were not written
	Known      int // objects that this process applied, or found already applied
}

// Stats returns the current counts.
func (c *Client) Stats() Stats {
	c.applied.mu.Lock()
	defer c.applied.mu.Unlock()
	return Stats{
		Known:      len(c.applied.known),
		Writes:     int(c.counts.writes.Load()),
		DryRuns:    int(c.counts.dryRuns.Load()),
		Reads:      int(c.counts.reads.Load()),
		LostEvents: int(c.counts.lostEvents.Load()),
	}
}

type counters struct{ writes, dryRuns, reads, lostEvents atomic.Int64 }

type countingTransport struct {
	counts *counters
	next   http.RoundTripper
}

func (t countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method == http.MethodGet:
		t.counts.reads.Add(1)
	case r.URL.Query().Has("dryRun"):
		t.counts.dryRuns.Add(1)
	default:
		t.counts.writes.Add(1)
	}
	return t.next.RoundTrip(r)
}
