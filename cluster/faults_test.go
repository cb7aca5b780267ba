package cluster_test

import (
	"context"
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

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
)

// faulty is a proxy of the real API server that breaks chosen requests.
type faulty struct {
	*httptest.Server
	spoil atomic.Pointer[func(w http.ResponseWriter, r *http.Request, next http.Handler) bool]
}

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
		if spoil := f.spoil.Load(); spoil != nil && (*spoil)(rw, r, proxy) {
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

// once breaks the first request with a method and a part of its path.
func (f *faulty) once(method, path string, how func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	var done atomic.Bool
	spoil := func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if r.Method != method || !strings.Contains(r.URL.Path, path) || !done.CompareAndSwap(false, true) {
			return false
		}
		how(w, r, next)
		return true
	}
	f.spoil.Store(&spoil)
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
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusInternalServerError)
		rw.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcdserver: ` +
			`request timed out"}`))
	})
	result, refusal := w.wantError(shop, "Service", cluster.Unavailable, "etcdserver: request timed out")
	if len(result.Written) != 2 || !refusal.Temporary() {
		t.Errorf("created %v before the error %v", result.Written, refusal)
	}
	if got := w.apply("shop", shop); len(got.Unchanged) != 2 || len(got.Written) != 6 {
		t.Errorf("the next apply: %+v", got)
	}
}

// TestDryRunIsTriedAgain checks that a temporary error of a request does not end a dry run. A permanent error is
// reported.
func TestDryRunIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	fails := func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
		rw.WriteHeader(http.StatusInternalServerError)
	}
	f := w.faulty()
	w.wantWrites(0, "a question", func() {
		f.once(http.MethodPatch, "/services/shop", fails)
		if err := w.Check(t.Context(), "shop", w.objects(shop)); err != nil {
			t.Error(err)
		}
	})
	asked := 0
	never := func(rw http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		asked++
		fails(rw, r, next)
		return true
	}
	f.spoil.Store(&never)
	var refusal *cluster.Error
	if err := w.Check(t.Context(), "shop", w.objects(shop)); !errors.As(err, &refusal) || !refusal.Temporary() || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

func TestLostAnswerIsNoDrift(t *testing.T) {
	w := newWorld(t)
	w.faulty().once(http.MethodPatch, "/deployments/shop", func(_ http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler) // the write succeeds, the connection breaks
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

// TestLostAnswerIsDoubted loses the answer of a successful write while the watch lags behind. The earlier content is
// written again on request, although the watch shows it, because later objects depend on it.
func TestLostAnswerIsDoubted(t *testing.T) {
	w := newWorld(t)
	f := w.faulty()
	var lagging sync.RWMutex
	var lose atomic.Bool
	spoil := func(rw http.ResponseWriter, r *http.Request, next http.Handler) bool {
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
	}
	f.spoil.Store(&spoil)
	service := func(version string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: shop, namespace: NS}\n" +
			"spec: {selector: {app: shop, version: " + version + "}, ports: [{port: 80}]}\n"
	}
	w.apply("shop", service("v1"))
	w.apply("shop", service("v1"))
	lagging.Lock()
	lose.Store(true)
	w.wantError(service("v2"), "Service", cluster.Unavailable)
	w.apply("shop", service("v1"))
	lagging.Unlock()
	live, err := w.cluster.Kube.CoreV1().Services(w.ns).Get(t.Context(), "shop", metav1.GetOptions{})
	if err != nil || live.Spec.Selector["version"] != "v1" {
		t.Errorf("the Service selects %v (%v), want v1", live.Spec.Selector, err)
	}
	w.until("it is at rest", func() (bool, string) {
		got := w.apply("shop", service("v1"))
		return got.Changed() == 0, ""
	})
}

// late answers when nothing holds the lock.
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
	_, err := w.Apply(ctx, "shop", w.objects(withoutReplicas)) // the server answers after the test
	var refusal *cluster.Error
	if !errors.As(err, &refusal) || !refusal.Temporary() || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	w.apply("shop", withoutReplicas)
}

func TestAdoptionThatLosesARaceTriesAgain(t *testing.T) {
	w := newWorld(t)
	w.kubectl(adopted, "apply", "-f", "-")
	var seen atomic.Int64
	spoil := func(rw http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if r.Header.Get("Content-Type") == "application/json-patch+json" && seen.Add(1) == 1 {
			w.edit("shop", `{"metadata":{"annotations":{"example.com/by":"hand"}}}`)
		}
		return false
	}
	w.faulty().spoil.Store(&spoil)
	w.apply("shop", adopted)
	d := w.deployment("shop")
	// The Deployment controller writes too, so there may be several conflicts.
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

func TestMissingRightToWatchIsNamed(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.apply("shop", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: poor, namespace: NS}")
	roles := w.cluster.Kube.RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "pods"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list"}},
	}}
	_, err := roles.ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	must(t, err)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.ns},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.ns, Name: "poor"}},
	}
	_, err = roles.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		_ = roles.ClusterRoleBindings().Delete(ctx, w.ns, metav1.DeleteOptions{})
		_ = roles.ClusterRoles().Delete(ctx, w.ns, metav1.DeleteOptions{})
	})
	poor := rest.CopyConfig(w.cluster.Config)
	poor.Impersonate.UserName = "system:serviceaccount:" + w.ns + ":poor"
	var told string
	w.until("an error that names the right", func() (bool, string) {
		client, err := cluster.New(poor, cluster.Options{})
		must(t, err)
		ctx, cancel := context.WithCancel(ctx)
		defer client.Wait()
		defer cancel()
		if err := client.Start(ctx); err != nil {
			told = err.Error()
		}
		return strings.Contains(told, `cannot watch resource "deployments" in API group "apps"`), told
	})
}

func TestNothingIsLeftRunning(t *testing.T) {
	w := newWorld(t) // from here on, connections of the test itself are open
	time.Sleep(100 * time.Millisecond)
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	config := rest.CopyConfig(w.cluster.Config)
	config.UserAgent = "leaks" // a separate transport, whose connections are counted
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
		all.Add(1)
		go func() {
			defer all.Done()
			manifests := strings.ReplaceAll(shop, "shop", app)
			for i := range 3 {
				result, err := w.Apply(context.Background(), app, w.objects(manifests))
				if err != nil || i > 0 && result.Changed() > 0 {
					t.Errorf("%s, pass %d: %+v, %v", app, i, result, err)
				}
				w.observe(app, app)
			}
		}()
	}
	all.Wait()
}
