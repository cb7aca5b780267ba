package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// gate is a proxy before the API server and the Git server. It numbers the effects (requests that change the cluster
// or the repository), and kills gitrollout before chosen effects.
type gate struct {
	mu     sync.Mutex
	names  []string     // names of the effects that reached a server
	at     map[int]bool // gitrollout is killed before the effects with these numbers, which start at 1
	struck []string     // names of the effects at which gitrollout was killed, as nth formats them
	kill   func()

	kube, git *httptest.Server
}

func newGate(t *testing.T, w *world) *gate {
	t.Helper()
	g := &gate{at: map[int]bool{}}
	g.kube = httptest.NewServer(g.handler(proxyOf(t, w), changesCluster))
	g.git = httptest.NewServer(g.handler(proxyTo(t, w.server.URL, http.DefaultTransport), changesGit))
	t.Cleanup(g.kube.Close)
	t.Cleanup(g.git.Close)
	return g
}

// startGated starts gitrollout behind a gate, which kills and restarts gitrollout before the effects with the given numbers.
func (w *world) startGated(at ...int) *gate {
	w.t.Helper()
	g := newGate(w.t, w)
	g.kill = w.restartAfterKill
	for _, n := range at {
		g.at[n] = true
	}
	w.startBehind(g)
	return g
}

// startBehind starts gitrollout with a gate before the API server and the Git server.
func (w *world) startBehind(g *gate, flags ...string) *world {
	w.t.Helper()
	remote, err := url.Parse(w.server.URL)
	must(w.t, err)
	return w.start(append(flags, "--repo", g.git.URL+remote.Path, "--kubeconfig", kubeconfigOf(w.t, g.kube.URL))...)
}

func changesCluster(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead &&
		r.URL.Query().Get("dryRun") == "" && !strings.HasSuffix(r.URL.Path, "/events")
}

func changesGit(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
}

func (g *gate) handler(proxy http.Handler, changes func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if changes(r) && g.strike(r.Method+" "+r.URL.Path) {
			g.kill()
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	})
}

// strike returns true if gitrollout must be killed before an effect. This effect does not reach the server, and the next effect gets the
// same number. Otherwise, strike records the effect.
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

// nth returns an effect's name and ordinal, such as "PATCH /a, the 2." after one earlier effect "PATCH /a".
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
	return writeKubeconfig(t, clientcmdapi.Cluster{Server: server}, "")
}

func (g *gate) effects() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.names)
}

var commitID = regexp.MustCompile(`\b[0-9a-f]{7}\b`)

// outcome is a scenario's result. It must not depend on the kills.
type outcome struct {
	phase   rollout.Phase
	stable  rollout.Hash
	started map[string]int
	log     []string
}

// life runs a scenario: the first deployment, a promoted release, and a release that is reverted at its pause. It returns the outcome, and
// the gate with the recorded effects.
func life(t *testing.T, app shop, at ...int) (outcome, *gate) {
	t.Helper()
	w := newKruise(t, app)
	g := w.startGated(at...)
	w.awaitHealthy(w.repo.Head())
	w.release("v2", app.at("v2").files())
	w.awaitUnlisted()
	w.revert(w.stage("v3", app.at("v3").files()))
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
	w.awaitUnpinned()
	w.awaitRestart(g)
	g.forget(w.app)
	return o, g
}

// awaitUnpinned waits until the Services have the selectors in Git. gitrollout restores these selectors after it has recorded the end of a
// release.
func (w *world) awaitUnpinned() {
	w.t.Helper()
	for _, name := range []string{"shop", "shop-preview"} {
		awaitEqual(w.t, "the selector of Service "+name, map[string]string{"app": "shop"}, func() map[string]string { return w.selector(name) })
	}
}

func (w *world) selector(service string) map[string]string {
	w.t.Helper()
	s, err := w.cluster.Kube.CoreV1().Services(w.ns).Get(context.Background(), service, metav1.GetOptions{})
	must(w.t, err)
	return s.Spec.Selector
}

// forget replaces the app's name in the effects by APP, because each run has another name.
func (g *gate) forget(app string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, names := range [][]string{g.names, g.struck} {
		for i := range names {
			names[i] = strings.ReplaceAll(names[i], app, "APP")
		}
	}
}

func (g *gate) kills() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.struck)
}

// awaitRestart waits until gitrollout reconciles again after the last kill. This kill may come after the end of the scenario.
func (w *world) awaitRestart(g *gate) {
	w.t.Helper()
	w.until("killed and back", func() bool {
		lives, kills := strings.Split(w.log.String(), killedMark), g.kills()
		return len(lives) == kills+1 && (kills == 0 || strings.Contains(lives[kills], "msg=reconciling"))
	})
}

// killsInALife is the number of kills per scenario. A scenario has some forty effects, so its kills are far apart.
const killsInALife = 3

// killsApart returns, for each scenario, the numbers of the effects before which gitrollout is killed. Together, the scenarios have a kill
// before each of n effects.
func killsApart(n int) (lives [][]int) {
	distance := (n + killsInALife - 1) / killsInALife
	for first := 1; first <= distance; first++ {
		lives = append(lives, []int{first, first + distance, first + 2*distance})
	}
	return lives
}

// TestKilledAtEveryEffect kills gitrollout with SIGKILL before each effect of the scenario reaches its server, and
// restarts gitrollout. State, commits and pods must be the same as without kills. A kill between an effect and its
// response is equivalent to a kill before the next effect.
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
				compare.CheckNamed(t, "the outcome", want, got)
				mu.Lock()
				defer mu.Unlock()
				for _, effect := range g.struck {
					struck[effect] = true
				}
			}
			t.Run("several", func(t *testing.T) {
				for i, at := range killsApart(len(effects)) {
					if !testing.Short() || i%4 == 0 {
						t.Run(fmt.Sprint(at[0]), func(t *testing.T) {
							t.Parallel()
							kill(t, at...)
						})
					}
				}
			})
			// An earlier kill can change the order of effects. Kill separately at effects that the runs above missed.
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
