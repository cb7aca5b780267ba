package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/internal/kruisetest"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// gate is a proxy between gitrollout and both the API server and the Git server. It numbers the effects (requests that
// change anything), and kills gitrollout at chosen effects.
type gate struct {
	mu     sync.Mutex
	names  []string     // of the effects that reached a server
	at     map[int]bool // numbers, from 1, of the effects to kill at before a server gets them
	struck []string     // the effects at which it killed: their names, and how many with the name came before
	kill   func()

	kube, git *httptest.Server
}

func newGate(t *testing.T, w *world) *gate {
	t.Helper()
	g := &gate{at: map[int]bool{}}
	transport, err := rest.TransportFor(w.cluster.Config)
	must(t, err)
	g.kube = httptest.NewServer(g.handler(t, w.cluster.Config.Host, transport, changesCluster))
	g.git = httptest.NewServer(g.handler(t, w.server.URL, http.DefaultTransport, changesGit))
	t.Cleanup(g.kube.Close)
	t.Cleanup(g.git.Close)
	return g
}

func changesCluster(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead &&
		r.URL.Query().Get("dryRun") == "" && !strings.HasSuffix(r.URL.Path, "/events")
}

func changesGit(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
}

func (g *gate) handler(t *testing.T, target string, transport http.RoundTripper, changes func(*http.Request) bool) http.Handler {
	t.Helper()
	to, err := url.Parse(target)
	must(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host}) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !changes(r) {
			proxy.ServeHTTP(w, r)
			return
		}
		if g.strike(r.Method + " " + r.URL.Path) {
			g.kill()
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	})
}

// strike records an effect, unless gitrollout is killed at it: it is not forwarded, and has the same number when it
// comes again.
func (g *gate) strike(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.names) + 1; g.at[n] {
		delete(g.at, n)
		g.struck = append(g.struck, nth(g.names, name))
		return true
	}
	g.names = append(g.names, name)
	return false
}

// nth names an effect with the number of earlier ones with that name.
func nth(before []string, name string) string {
	n := 1
	for _, b := range before {
		if b == name {
			n++
		}
	}
	return fmt.Sprintf("%s, the %d.", name, n)
}

// kubeconfigOf writes a kubeconfig for a server without authentication.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: gate, cluster: {server: %q}}]
users: [{name: nobody, user: {}}]
contexts: [{name: gate, context: {cluster: gate, user: nobody}}]
current-context: gate
`, server)
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func (g *gate) effects() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.names)
}

var commitID = regexp.MustCompile(`\b[0-9a-f]{7}\b`)

// outcome is the result, which must not depend on the kills.
type outcome struct {
	phase   rollout.Phase
	stable  rollout.Hash
	started map[string]int
	log     []string
}

// life runs a whole scenario: first deployment, a promoted release, one reverted in flight, and a blue-green switch if
// the strategy has one. It returns the outcome and the effects.
func life(t *testing.T, app shop, at ...int) (outcome, *gate) {
	t.Helper()
	w := newWorld(t, app.files())
	if app.kind == "CloneSet" {
		kruisetest.Start(t, w.cluster, w.ns)
	}
	g := newGate(t, w)
	for _, n := range at {
		g.at[n] = true
	}
	kubeconfig := kubeconfigOf(t, g.kube.URL)
	remote, err := url.Parse(w.server.URL)
	must(t, err)
	g.kill = w.restartAfterKill
	w.start("--repo", g.git.URL+remote.Path, "--kubeconfig", kubeconfig)
	w.awaitHealthy(w.repo.Head())
	second := w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.promote()
	w.awaitHealthy(second)
	w.awaitUnlisted()
	third := w.push("v3", app.at("v3").files())
	w.awaitStep(1, rollout.Paused)
	w.repo.Revert(third)
	w.await("back at v2", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	w.awaitUnlisted()
	w.pods.awaitReady(t, map[string]int{"v2": 2})
	s := w.state()
	o := outcome{phase: s.Phase, stable: s.Stable.Hash, started: map[string]int{}}
	for _, v := range []string{"v1", "v2", "v3"} {
		o.started[v] = w.pods.count(v)
	}
	for _, line := range w.log0() {
		o.log = append(o.log, commitID.ReplaceAllString(strings.ReplaceAll(line, w.app, "APP"), "COMMIT"))
	}
	w.repo.Fsck()
	w.awaitUnpinned("shop", "shop-preview")
	w.awaitRestart(g)
	g.forget(w.app)
	return o, g
}

// awaitUnpinned waits until the Services have the selectors in Git, which happens only after the last commit of a
// release.
func (w *world) awaitUnpinned(services ...string) {
	w.t.Helper()
	for _, name := range services {
		for deadline := time.Now().Add(timeout); ; time.Sleep(glance) {
			s, err := w.cluster.Kube.CoreV1().Services(w.ns).Get(w.t.Context(), name, metav1.GetOptions{})
			must(w.t, err)
			if len(s.Spec.Selector) == 1 {
				break
			}
			if time.Now().After(deadline) {
				w.t.Fatalf("Service %s still selects %v after %s", name, s.Spec.Selector, timeout)
			}
		}
	}
}

// forget replaces the app's name in the effects, which differs in each scenario.
func (g *gate) forget(app string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, names := range [][]string{g.names, g.struck} {
		for i := range names {
			names[i] = strings.ReplaceAll(names[i], app, "APP")
		}
	}
}

// kills returns the number of kills.
func (g *gate) kills() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.struck)
}

// awaitRestart waits until the process has been killed and the next one works: the last effects may come after the
// outcome.
func (w *world) awaitRestart(g *gate) {
	w.t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(glance) {
		lives := strings.Split(w.log.String(), killedMark)
		if kills := g.kills(); len(lives) == kills+1 && (kills == 0 || strings.Contains(lives[kills], "msg=reconciling")) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("killed %d times, gitrollout did not come back within %s", g.kills(), timeout)
		}
	}
}

// killsInALife is the number of kills per scenario. There are some forty effects, so kills are far apart.
const killsInALife = 3

// TestKilledAtEveryEffect kills gitrollout with SIGKILL before each effect of the scenario reaches its server, and
// restarts it: state, commits and pods are the same. A kill after an effect, before its answer, is equivalent to a kill
// before the next one.
func TestKilledAtEveryEffect(t *testing.T) {
	t.Parallel()
	for name, app := range map[string]shop{
		"canary": {version: "v1", replicas: "replicas: 2", strategy: canary("scaling: surge\nstableService: shop\n"+
			"canaryService: shop-preview\nscaleDownDelaySeconds: 1", "setWeight: 50", "pause: {}")},
		"experiment": {version: "v1", replicas: "replicas: 2", strategy: canary("scaling: surge",
			"experiment: {duration: 1s, templates: [{name: canary, specRef: canary, service: {}}]}", "pause: {}")},
		"statefulSet": {kind: "StatefulSet", version: "v1", replicas: "replicas: 2", extra: "  serviceName: shop\n",
			strategy: canary("canaryService: shop-preview", "setWeight: 50", "pause: {}")},
		"cloneSet": clones("replicas: 2", "setWeight: 50", "pause: {}"),
		"blueGreen": {version: "v1", replicas: "replicas: 2",
			strategy: strings.ReplaceAll(blueGreen, "scaleDownDelaySeconds: 2", "scaleDownDelaySeconds: 1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tier.Rows(t, "canary")
			want, g := life(t, app)
			effects := g.effects()
			t.Logf("undisturbed: %d effects, %d commits:\n%s\n%s", len(effects), len(want.log), strings.Join(effects, "\n"),
				strings.Join(want.log, "\n"))
			if len(effects) < 10 {
				t.Fatalf("only %d effects were seen: the gate does not see gitrollout's requests", len(effects))
			}
			var mu sync.Mutex
			struck := map[string]bool{}
			kill := func(t *testing.T, at ...int) {
				got, g := life(t, app, at...)
				got.check(t, want)
				mu.Lock()
				defer mu.Unlock()
				for _, effect := range g.struck {
					struck[effect] = true
				}
			}
			distance := (len(effects) + killsInALife - 1) / killsInALife
			every := 1
			if testing.Short() {
				every = 4
			}
			t.Run("several", func(t *testing.T) {
				for first := 1; first <= distance; first += every {
					t.Run(fmt.Sprint(first), func(t *testing.T) {
						t.Parallel()
						kill(t, first, first+distance, first+2*distance)
					})
				}
			})
			// Kill separately at effects that the runs above missed, because an earlier kill changed the order.
			for i, effect := range effects {
				if !testing.Short() && !struck[nth(effects[:i], effect)] {
					t.Run(fmt.Sprint(i+1), func(t *testing.T) {
						t.Parallel()
						kill(t, i+1)
					})
				}
			}
		})
	}
}

// check compares an outcome with an undisturbed one.
func (o outcome) check(t *testing.T, want outcome) {
	t.Helper()
	if o.phase != want.phase || o.stable != want.stable {
		t.Errorf("ended %s at %s, want %s at %s", o.phase, o.stable, want.phase, want.stable)
	}
	if fmt.Sprint(o.started) != fmt.Sprint(want.started) {
		t.Errorf("started pods %v, want %v", o.started, want.started)
	}
	if !slices.Equal(o.log, want.log) {
		t.Errorf("commits differ:\n%s\nwant\n%s", strings.Join(o.log, "\n"), strings.Join(want.log, "\n"))
	}
}
