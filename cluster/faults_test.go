package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
)

// faulty is a proxy in front of the real API server. It breaks the requests that its spoiler selects.
type faulty struct {
	*httptest.Server
	spoiler atomic.Pointer[spoiler]
}

// spoiler may answer a request. If the spoiler returns false, the API server answers.
type spoiler func(w http.ResponseWriter, r *http.Request, next http.Handler) bool

func (f *faulty) spoil(by spoiler) { f.spoiler.Store(&by) }

func (w *world) faulty() *faulty {
	w.t.Helper()
	target, err := url.Parse(w.cluster.Config.Host)
	must(w.t, err)
	transport, err := rest.TransportFor(w.cluster.Config)
	must(w.t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorHandler = func(rw http.ResponseWriter, _ *http.Request, _ error) { rw.WriteHeader(http.StatusBadGateway) }
	f := &faulty{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if spoil := f.spoiler.Load(); spoil != nil && (*spoil)(rw, r, proxy) {
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	w.connect(&rest.Config{Host: f.URL})
	return f
}

// once breaks the first request with the given method whose path contains the given text.
func (f *faulty) once(method, path string, how func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	var done atomic.Bool
	f.spoil(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if r.Method != method || !strings.Contains(r.URL.Path, path) || !done.CompareAndSwap(false, true) {
			return false
		}
		how(w, r, next)
		return true
	})
}

// fail answers with a Status, as the API server does when a request fails.
func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Reason: reason, Code: int32(code), Message: message})
}

func TestTooManyRequestsIsWaitedOut(t *testing.T) {
	w := newWorld(t)
	w.faulty().once(http.MethodPatch, "/deployments/shop", func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
		rw.Header().Set("Retry-After", "1")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	w.wantWrites(2, "an apply that was told to wait", func() { w.apply("shop", withoutReplicas) })
}

func TestServerErrorIsReportedAndTheNextApplyGoesOn(t *testing.T) {
	w := newWorld(t)
	w.faulty().once(http.MethodPatch, "/services/shop", func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
		fail(rw, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: request timed out")
	})
	result, refusal := w.wantError(shop, "Service", cluster.Unavailable, "etcdserver: request timed out")
	if len(result.Written) != 2 || !refusal.Temporary() {
		t.Errorf("created %v before the error %v", result.Written, refusal)
	}
	if got := w.apply("shop", shop); len(got.Unchanged) != 2 || len(got.Written) != 6 {
		t.Errorf("the next apply: %+v", got)
	}
}

// TestDryRunIsTriedAgain checks that a dry run is repeated after a temporary error. If all three tries fail, the error is reported.
func TestDryRunIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	fails := func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
		rw.WriteHeader(http.StatusInternalServerError)
	}
	f := w.faulty()
	w.wantWrites(0, "a question", func() {
		f.once(http.MethodPatch, "/services/shop", fails)
		must(t, w.Check(t.Context(), "shop", w.objects(shop)))
	})
	asked := 0
	f.spoil(func(rw http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		asked++
		fails(rw, r, next)
		return true
	})
	err := w.Check(t.Context(), "shop", w.objects(shop))
	if !wantRefusal(t, "Check", err, cluster.Unavailable).Temporary() || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

func TestLostAnswerIsNoDrift(t *testing.T) {
	w := newWorld(t)
	w.faulty().once(http.MethodPatch, "/deployments/shop", func(_ http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler) // the write succeeds, but the connection breaks before the client gets the response
	})
	w.wantError(withoutReplicas, "Deployment", cluster.Unavailable)
	generation := w.deployment("shop").Generation
	w.apply("shop", withoutReplicas)
	w.complete("shop", "shop")
	w.wantWrites(0, "the third apply", func() { w.apply("shop", withoutReplicas) })
	if got := w.deployment("shop").Generation; got != generation {
		t.Errorf("generation went from %d to %d", generation, got)
	}
}

// TestLostAnswerIsDoubted breaks the connection before the response to a successful write of v2. Meanwhile, the watch
// lags. The next apply of v1 must write, although the watch still shows v1.
func TestLostAnswerIsDoubted(t *testing.T) {
	w := newWorld(t)
	f := w.faulty()
	var lagging sync.RWMutex
	var lose atomic.Bool
	f.spoil(func(rw http.ResponseWriter, r *http.Request, next http.Handler) bool {
		switch isServices := strings.Contains(r.URL.Path, "/services"); {
		case isServices && r.URL.Query().Get("watch") != "":
			next.ServeHTTP(late{rw, &lagging}, r)
		case isServices && r.Method == http.MethodPatch && lose.CompareAndSwap(true, false):
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	})
	service := func(version string) string {
		return coreManifest("Service", "shop", "spec: {selector: {app: shop, version: "+version+"}, ports: [{port: 80}]}")
	}
	w.apply("shop", service("v1"))
	w.apply("shop", service("v1"))
	lagging.Lock()
	lose.Store(true)
	w.wantError(service("v2"), "Service", cluster.Unavailable)
	w.apply("shop", service("v1"))
	lagging.Unlock()
	if selector := w.service("shop").Spec.Selector; selector["version"] != "v1" {
		t.Errorf("the Service selects %v, want v1", selector)
	}
	w.until("it is at rest", func() (bool, string) {
		got := w.apply("shop", service("v1"))
		return got.Changed() == 0, ""
	})
}

// late is a ResponseWriter whose Write waits while a test holds the lock.
type late struct {
	http.ResponseWriter
	held *sync.RWMutex
}

func (l late) Write(p []byte) (int, error) {
	l.held.RLock()
	defer l.held.RUnlock()
	return l.ResponseWriter.Write(p)
}

func (l late) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func TestSilentServerIsNotWaitedForLongerThanTheCaller(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	defer close(release)
	w.faulty().once(http.MethodPatch, "/deployments/shop", func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := w.Apply(ctx, "shop", w.objects(withoutReplicas)) // the server does not answer until the test ends
	if !wantRefusal(t, "Apply", err, cluster.Unavailable).Temporary() || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	w.apply("shop", withoutReplicas)
}

func TestAdoptionThatLosesARaceTriesAgain(t *testing.T) {
	w := newWorld(t)
	w.kubectl(adopted, "apply", "-f", "-")
	var seen atomic.Int64
	w.faulty().spoil(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Header.Get("Content-Type") == "application/json-patch+json" && seen.Add(1) == 1 {
			w.edit("shop", `{"metadata":{"annotations":{"example.com/by":"hand"}}}`)
		}
		return false
	})
	w.apply("shop", adopted)
	d := w.deployment("shop")
	// Because the Deployment controller also writes, there may be several conflicts.
	if seen.Load() < 2 || d.Annotations["example.com/by"] != "hand" {
		t.Errorf("%d patches of the owners, annotations %v", seen.Load(), d.Annotations)
	}
	for _, e := range d.ManagedFields {
		if e.Manager == "kubectl-client-side-apply" {
			t.Error("kubectl still owns fields")
		}
	}
	w.wantWrites(0, "the next apply", func() { w.apply("shop", adopted) })
}

func TestNothingIsLeftRunning(t *testing.T) {
	w := newWorld(t) // the test's own connections must be open before the goroutines are counted
	time.Sleep(100 * time.Millisecond)
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	config := rest.CopyConfig(w.cluster.Config)
	config.UserAgent = "leaks" // another user agent gives the client its own transport, whose goroutines are counted
	client, err := cluster.New(config, cluster.Options{})
	must(t, err)
	must(t, client.Start(ctx))
	_, err = client.Apply(ctx, "shop", w.objects(shop))
	must(t, err)
	cancel()
	client.Wait()
	w.until("all goroutines being gone", func() (bool, string) {
		stacks := make([]byte, 1<<20)
		return runtime.NumGoroutine() <= before+4, string(stacks[:runtime.Stack(stacks, true)])
	})
}

func TestAppsAreAppliedSideBySide(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	for _, app := range []string{"a", "b", "c", "d", "e", "f"} {
		all.Go(func() {
			manifests := strings.ReplaceAll(shop, "shop", app)
			for i := range 3 {
				result, err := w.Apply(context.Background(), app, w.objects(manifests))
				if err != nil || i > 0 && result.Changed() > 0 {
					t.Errorf("%s, pass %d: %+v, %v", app, i, result, err)
				}
				w.observe(app, app)
			}
		})
	}
	all.Wait()
}
