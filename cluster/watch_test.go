package cluster_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
)

// wire forwards TCP connections to the API server. Tests can break the connections.
type wire struct {
	net.Listener
	to string

	mu   sync.Mutex
	down bool
	open []net.Conn
}

func newWire(t *testing.T, host string) *wire {
	t.Helper()
	u, err := url.Parse(host)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &wire{Listener: l, to: u.Host}
	t.Cleanup(func() { l.Close(); w.cut(true) })
	go w.serve()
	return w
}

func (w *wire) serve() {
	for {
		near, err := w.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		far, err := net.Dial("tcp", w.to)
		if w.down || err != nil {
			near.Close()
			if err == nil {
				far.Close()
			}
		} else {
			w.open = append(w.open, near, far)
			go func() { io.Copy(near, far); near.Close() }()
			go func() { io.Copy(far, near); far.Close() }()
		}
		w.mu.Unlock()
	}
}

// cut closes all connections. If down is true, cut also refuses new connections.
func (w *wire) cut(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	for _, c := range w.open {
		c.Close()
	}
	w.open = nil
}

func (w *world) through(wire *wire) {
	config := rest.CopyConfig(w.cluster.Config)
	config.Host = "https://" + wire.Addr().String()
	w.connect(config)
}

func TestDroppedWatchesCatchUp(t *testing.T) {
	w := newWorld(t)
	wire := newWire(t, w.cluster.Config.Host)
	w.through(wire)
	w.apply("shop", shop)
	w.complete("shop", "shop")
	wire.cut(true)
	// During the outage, a label is edited, an object is deleted, and pods are replaced.
	w.edit("shop", `{"metadata":{"labels":{"team":"b"}}}`)
	core := w.cluster.Kube.CoreV1()
	must(t, core.Services(w.ns).Delete(context.Background(), "shop", metav1.DeleteOptions{}))
	must(t, core.Pods(w.ns).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	wire.cut(false)
	healed := map[rollout.Ref]bool{}
	w.until("both objects healed", func() (bool, string) {
		result, err := w.Apply(context.Background(), "shop", w.objects(shop))
		if err != nil {
			return false, err.Error()
		}
		for _, ref := range result.Written {
			healed[ref] = true
		}
		return len(healed) == 2, ""
	})
	w.complete("shop", "shop")
	w.wantWrites(0, "the apply after it", func() { w.apply("shop", shop) })
}

func TestEventsTellWhatHappened(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	w.apply("shop", withoutReplicas)
	w.Record(ctx, w.ref("apps", "Deployment", "shop"), cluster.Warning, "Aborted", "Abort", "error rate is 7 %")
	w.kubectl("", "wait", "--for=jsonpath={.metadata.name}=shop", "deployment/shop")
	list, err := w.cluster.Kube.EventsV1().Events(w.ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=Aborted"})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("events: %v, %v (%+v)", list, err, w.Stats())
	}
	e := list.Items[0]
	if e.Note != "error rate is 7 %" || e.Type != "Warning" || e.Regarding.UID != w.deployment("shop").UID ||
		e.ReportingController != "gitrollout.dev/reconciler" {
		t.Errorf("event %+v", e)
	}
	w.Record(ctx, rollout.Ref{Kind: "Service", Namespace: "nowhere", Name: "x"}, cluster.Normal, "Lost", "Lose", "nobody hears it")
	if got := w.Stats().LostEvents; got != 1 {
		t.Errorf("%d lost events, want 1", got)
	}
}

func TestUIDIsTheClusters(t *testing.T) {
	w := newWorld(t)
	a, err := w.UID(context.Background())
	if err != nil || len(a) < 30 {
		t.Fatalf("uid %q, %v", a, err)
	}
	w.restart()
	if b, err := w.UID(context.Background()); a != b || err != nil {
		t.Errorf("uid %q became %q (%v)", a, b, err)
	}
}

func TestUnadoptedWorkloadsTellWhoeverObservesThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kubectl(withoutReplicas, "create", "-f", "-")
	w.complete("mine", "shop")
	before := w.changes.of("mine")
	w.scale("shop", 2)
	w.until("OnChange", func() (bool, string) { return w.changes.of("mine") > before, "" })
}
