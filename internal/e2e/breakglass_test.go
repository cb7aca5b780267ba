package e2e

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestBreakGlassNow aborts releases by "abort --break-glass --now" in a clone, after the reconciler is killed. First, two users abort while
// Git is unreachable. When Git is reachable again, a new reconciler releases a newer version. Then a user aborts this version, and a
// reconciler starts during the command. The test is not parallel: the Leases of TestReplicas and TestAReplicaWakesUp would stop the
// command.
func TestBreakGlassNow(t *testing.T) {
	app := newShop(4, "scaling: surge", "setWeight: 50", "pause: {}")
	w := running(t, app.files())
	old := w.userClone()
	w.stage("v2", app.at("v2").files())
	clone := w.userClone()
	refs := w.repo.Git("-C", clone, "for-each-ref")
	recorded := w.repo.Ref(w.stateBranch())
	w.kill()
	w.server.Fault(gittest.Faults{Status: http.StatusServiceUnavailable})

	for name, c := range map[string]struct{ dir, want string }{
		"an old clone":    {old, "is too old: its record has serial"},
		"a shallow clone": {w.userClone("--depth", "1", "--no-single-branch"), "the clone has no commit"},
		"no clone":        {t.TempDir(), "--now needs a clone of the repository on this machine"},
	} {
		out, err := w.breakGlass(c.dir, w.cluster.Kubeconfig, name)
		if err == nil || !strings.Contains(oneLine(out), c.want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	release := w.holdLease()
	out, err := w.breakGlass(clone, w.cluster.Kubeconfig, "held")
	if err == nil || !strings.Contains(oneLine(out), "leader-1 holds the Lease") {
		t.Errorf("while a reconciler holds the Lease: %v\n%s", err, out)
	}
	release()
	compare.CheckNamed(t, "annotation after refusals", "", w.deployment().Annotations[rollout.AnnotationBreakGlass])

	var users sync.WaitGroup
	for _, reason := range []string{"ann sees errors", "bob sees errors"} {
		users.Go(func() {
			out, err := w.breakGlass(clone, w.cluster.Kubeconfig, reason)
			if err != nil || !strings.Contains(out, "all pods have the stable version") {
				t.Errorf("%s: %v\n%s", reason, err, out)
			}
		})
	}
	users.Wait()
	w.pods.awaitReady(t, map[string]int{"v1": 4})
	compare.CheckNamed(t, "record while Git is away", recorded, w.repo.Ref(w.stateBranch()))
	compare.CheckNamed(t, "branches of the clone", refs, w.repo.Git("-C", clone, "for-each-ref"))
	compare.Contains(t, w.deployment().Annotations[rollout.AnnotationBreakGlass], " sees errors")
	compare.Contains(t, oneLine(w.ran("get", w.app, "--cluster-only")), "aborted by break glass of ")

	third := w.push("v3", app.at("v3").files())
	w.server.Fault(gittest.Faults{})
	w.startExactly(w.flags...)
	w.await("v3 at its gate", func(s rollout.State) bool {
		return s.Phase == rollout.Paused && s.Release != nil && s.Release.Commit == third
	})
	compare.Contains(t, strings.Join(w.log0(), "\n"), "aborted by break glass of ")
	w.until("the annotation is removed", func() bool { return w.deployment().Annotations[rollout.AnnotationBreakGlass] == "" })

	clone = w.userClone()
	w.kill()
	var writes atomic.Int32
	proxy := proxyOf(t, w)
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if changesCluster(r) && writes.Add(1) == 3 { // the first two requests ask for the user's name and set the annotation
			w.startExactly(w.flags...)
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(api.Close)
	if out, err := w.breakGlass(clone, kubeconfigOf(t, api.URL), "v3 burns"); err != nil {
		t.Errorf("beside a reconciler: %v\n%s", err, out)
	}
	s := w.await("rolled back", func(s rollout.State) bool { return s.Phase == rollout.Degraded && s.Release == nil })
	compare.Contains(t, s.Rejected[0].Reason, "v3 burns")
	w.pods.awaitReady(t, map[string]int{"v1": 4})
}

// TestBreakGlassNowIsRefused aborts a release by "abort --break-glass --now" while the API server refuses writes of the app's ConfigMap.
// All pods get the stable version. Then the command fails, and names the ConfigMap. Like TestBreakGlassNow, the test
// is not parallel.
func TestBreakGlassNowIsRefused(t *testing.T) {
	files := func(version string) map[string]string {
		app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {}").at(version)
		app.more = map[string]string{"config.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop}, data: {of: " + version + "}}\n"}
		return app.files()
	}
	w := running(t, files("v1"))
	w.stage("v2", files("v2"))
	clone := w.userClone()
	w.kill()
	proxy := proxyOf(t, w)
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if changesCluster(r) && strings.Contains(r.URL.Path, "/configmaps/") {
			http.Error(rw, "no", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(api.Close)
	out, err := w.breakGlass(clone, kubeconfigOf(t, api.URL), "v2 burns")
	want := "all pods have the stable version, but the cluster refuses ConfigMap " + w.ns + "/shop: "
	if err == nil || !strings.Contains(oneLine(out), want) {
		t.Errorf("%v, want %q in\n%s", err, want, out)
	}
	w.pods.awaitReady(t, map[string]int{"v1": 2})
}

// userClone runs git clone with the given flags, and returns the folder of the clone.
func (w *world) userClone(flags ...string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	w.repo.Git(slices.Concat([]string{"clone", "-q"}, flags, []string{"file://" + w.repo.Bare, dir})...)
	return dir
}

// breakGlass runs "abort --break-glass --now" in a folder.
func (w *world) breakGlass(dir, kubeconfig, reason string) (string, error) {
	path, err := binary()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(path, "abort", w.app, "--break-glass", "--now", "--reason", reason, "--cluster", "test", "--namespaces", w.ns)
	cmd.Dir = dir
	cmd.Env = append(gittest.Env(), "HOME="+w.t.TempDir(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// holdLease creates the Lease of a reconciler with --leader-elect. The Lease's renewTime is now. The returned function deletes the Lease.
func (w *world) holdLease() (release func()) {
	w.t.Helper()
	ctx, leases := w.t.Context(), w.cluster.Kube.CoordinationV1().Leases(w.ns) // the command looks in all namespaces
	now := metav1.NewMicroTime(time.Now())
	_, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "gitrollout-test"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("leader-1"), LeaseDurationSeconds: new(int32(3600)), RenewTime: &now,
	}}, metav1.CreateOptions{})
	must(w.t, err)
	return func() { must(w.t, leases.Delete(ctx, "gitrollout-test", metav1.DeleteOptions{})) }
}
