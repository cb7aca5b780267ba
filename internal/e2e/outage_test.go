package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// weather is a faulty proxy before the API server. It answers some requests with errors. For some other requests, the API server serves the
// request, but weather drops the response. weather cuts each watch within three seconds.
type weather struct {
	*httptest.Server
	mu       sync.Mutex
	rng      *rand.Rand
	turn     int  // index of the next fault
	conflict bool // the next write gets a conflict
	stats    map[string]int
}

func newWeather(t *testing.T, w *world, seed uint64) *weather {
	t.Helper()
	proxy := proxyOf(t, w)
	s := &weather{rng: rand.New(rand.NewPCG(seed, 1)), stats: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { s.serve(proxy, rw, r) }))
	t.Cleanup(s.Close)
	return s
}

// proxyOf returns a proxy before the API server, with the credentials of w.
func proxyOf(t *testing.T, w *world) *httputil.ReverseProxy {
	t.Helper()
	transport, err := rest.TransportFor(w.cluster.Config)
	must(t, err)
	return proxyTo(t, w.cluster.Config.Host, transport)
}

func proxyTo(t *testing.T, target string, transport http.RoundTripper) *httputil.ReverseProxy {
	t.Helper()
	to, err := url.Parse(target)
	must(t, err)
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host}) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

func (s *weather) serve(proxy http.Handler, rw http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		ctx, cut := context.WithTimeout(r.Context(), s.life())
		defer cut()
		proxy.ServeHTTP(rw, r.WithContext(ctx))
		return
	}
	switch kind := s.next(r.Method != http.MethodGet); kind {
	case "":
		proxy.ServeHTTP(rw, r)
	case "lost": // the API server has served the request, but the response is dropped
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		a := answers[kind]
		rw.Header().Set("Content-Type", "application/json")
		if a.code == http.StatusTooManyRequests {
			rw.Header().Set("Retry-After", "1")
		}
		rw.WriteHeader(a.code)
		_, _ = fmt.Fprintf(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"bad weather","reason":%q,"code":%d}`,
			a.reason, a.code)
	}
}

// answers maps each kind of fault to the API server's error.
var answers = map[string]struct {
	code   int
	reason string
}{
	"409": {http.StatusConflict, "Conflict"},
	"429": {http.StatusTooManyRequests, "TooManyRequests"},
	"500": {http.StatusInternalServerError, "InternalError"},
	"504": {http.StatusGatewayTimeout, "Timeout"},
}

// next returns the fault for the next request, or "" for most requests. The kinds of faults take turns. Only a write can have a conflict.
func (s *weather) next(write bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := ""
	switch {
	case s.conflict && write:
		kind, s.conflict = "409", false
	// Once each kind of fault has occurred, faults become rarer.
	case s.rng.IntN(4) == 0 && (len(s.stats) < 5 || s.rng.IntN(4) == 0):
		kinds := []string{"500", "409", "lost", "429", "504"}
		kind = kinds[s.turn%len(kinds)]
		s.turn++
		if kind == "409" && !write {
			kind, s.conflict = "", true
		}
	}
	if kind != "" {
		s.stats[kind]++
	}
	return kind
}

// life returns the duration of the next watch.
func (s *weather) life() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(500+s.rng.IntN(2000)) * time.Millisecond
}

// TestBadWeather releases with faulty servers. Up to a quarter of the requests to the API server fail, and every watch is cut. The Git
// server is slow, returns 503, refuses pushes, and drops connections, in turn. The release must succeed.
func TestBadWeather(t *testing.T) {
	t.Parallel()
	app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {}")
	w := newWorld(t, app.files())
	api := newWeather(t, w, 7)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			faults := []gittest.Faults{{Delay: 300 * time.Millisecond}, {Status: 503}, {RejectPushes: 1}, {DropAfter: 1}, {DropBefore: 1}}
			w.server.Fault(gittest.Faults{})
			if i%2 == 0 {
				w.server.Fault(faults[i/2%len(faults)])
			}
			select {
			case <-stop:
				w.server.Fault(gittest.Faults{})
				return
			// gitrollout retries after whole seconds. Faults at whole seconds would hit each retry.
			case <-time.After(time.Duration(300+137*(i%5)) * time.Millisecond):
			}
		}
	})
	calm := sync.OnceFunc(func() { close(stop); wg.Wait() })
	defer calm()

	w.startThrough(kubeconfigOf(t, api.URL))
	w.awaitHealthy(w.repo.Head())
	second := w.stage("v2", app.at("v2").files())
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 1})
	w.promote().awaitHealthy(second)
	w.revert(w.stage("v3", app.at("v3").files()))
	w.pods.awaitReady(t, map[string]int{"v2": 2})
	calm()

	w.pods.wantStarted(t, map[string]int{"v1": 2, "v2": 2, "v3": 1})
	got := w.log0()
	slices.Reverse(got)
	want := []string{
		"first deployment", "healthy at", "release", "step 2/2 pause", "through its steps", "healthy at",
		"release", "step 2/2 pause", "back to", "healthy: Git agrees",
	}
	if !slices.EqualFunc(got, want, strings.Contains) {
		t.Errorf("recorded:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	for _, kind := range []string{"409", "429", "500", "504", "lost"} {
		if api.stats[kind] == 0 {
			t.Errorf("the weather was too good: no %s in %v", kind, api.stats)
		}
	}
	w.repo.Fsck()
}

// TestServersDiskIsFull checks a Git server whose disk is full. The release stops, the log has the reason, and the
// release continues when there is space.
func TestServersDiskIsFull(t *testing.T) {
	t.Parallel()
	app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {duration: 1}", "pause: {}")
	w := newWorld(t, app.files())
	fill := smallDisk(t, filepath.Join(w.repo.Bare, "objects"))
	w.start().awaitHealthy(w.repo.Head())
	w.stage("v2", app.at("v2").files())
	room := fill()
	recorded := w.repo.Ref(w.stateBranch())
	w.pods.stays(t, 3*time.Second)
	compare.CheckNamed(t, "the state branch with a full disk", recorded, w.repo.Ref(w.stateBranch()))
	compare.Contains(t, w.log.String(), "record in Git") // the log says that no transition can be recorded
	room()
	w.awaitPause(2)
	w.repo.Fsck()
}

// smallDisk puts a folder on a file system of two megabytes. fill fills the file system and returns a function that
// frees space. If the test may not mount file systems, fill instead configures git to refuse every push.
func smallDisk(t *testing.T, dir string) (fill func() (room func())) {
	t.Helper()
	aside := dir + ".aside"
	must(t, os.Rename(dir, aside))
	must(t, os.Mkdir(dir, 0o755))
	mounted := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", dir).Run() == nil
	if mounted {
		t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	}
	output(t, exec.Command("cp", "-a", aside+"/.", dir))
	ballast := filepath.Join(dir, "ballast")
	if !mounted {
		config := func(args ...string) {
			output(t, exec.Command("git", append([]string{"-C", dir + "/..", "config"}, args...)...))
		}
		return func() func() {
			config("receive.maxInputSize", "1")
			return func() { config("--unset", "receive.maxInputSize") }
		}
	}
	return func() func() {
		f, err := os.Create(ballast)
		must(t, err)
		if _, err := io.Copy(f, zeros{}); err == nil {
			t.Fatal("the disk does not fill up")
		}
		_ = f.Close()
		return func() { must(t, os.Remove(ballast)) }
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// startThrough runs gitrollout with a kubeconfig. If the API server is unreachable and gitrollout therefore exits,
// startThrough restarts gitrollout, as Kubernetes would do.
func (w *world) startThrough(kubeconfig string) {
	w.t.Helper()
	for range 20 {
		from := len(w.log.String())
		w.start("--kubeconfig", kubeconfig)
		for !strings.Contains(w.log.String()[from:], "msg=reconciling") {
			select {
			case <-w.exited:
			case <-time.After(glance):
				continue
			}
			break
		}
		if strings.Contains(w.log.String()[from:], "msg=reconciling") {
			return
		}
	}
	w.t.Fatalf("it does not start:\n%s", w.log.String())
}
