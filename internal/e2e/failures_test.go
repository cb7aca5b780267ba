package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// Each test below checks a row of docs/failures.md.

// TestGoneForGood checks a release while gitrollout does not run. The Deployment stays at its step, deleted pods are
// recreated in their version, and scaling the Deployment scales both versions.
func TestGoneForGood(t *testing.T) {
	t.Parallel()
	app := shop{version: "v1", strategy: canary("scaling: surge", "setWeight: 20", "pause: {}")}
	w := running(t, app.files())
	w.kubectl("scale", "deployment/shop", "--replicas=10")
	w.pods.awaitReady(t, map[string]int{"v1": 10})
	commit := w.stage("v2", app.at("v2").files())
	at := func(v1, v2 int) map[string]int { return map[string]int{"v1": v1, "v2": v2} }
	w.pods.awaitReady(t, at(10, 2))
	w.kill()
	for _, version := range []string{"v1", "v2"} {
		before := w.pods.count(version)
		w.kubectl("delete", "pod", "--wait=false", w.podOf(version))
		w.awaitPods("another pod of "+version, func(sample) bool { return w.pods.count(version) == before+1 })
		w.pods.awaitReady(t, at(10, 2))
	}
	w.kubectl("scale", "deployment/shop", "--replicas=20")
	w.pods.awaitReady(t, at(20, 4))
	w.pods.stays(t, time.Second)
	w.twin().start()
	w.promote().awaitHealthy(commit)
	w.pods.awaitReady(t, at(0, 20))
}

// TestDrained evicts, like kubectl drain, every pod of a release that waits at a step. Each pod is recreated in its version. The app's
// disruption budget is kept.
func TestDrained(t *testing.T) {
	t.Parallel()
	app := newShop(4, "scaling: surge", "setWeight: 50", "pause: {}")
	app.more = map[string]string{"budget.yaml": "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: shop}\n" +
		"spec: {maxUnavailable: 1, selector: {matchLabels: {app: shop}}}\n"}
	w := running(t, app.files())
	w.stage("v2", app.at("v2").files())
	want := map[string]int{"v1": 4, "v2": 2}
	w.pods.awaitReady(t, want)
	mark := w.pods.mark()
	pods := w.cluster.Kube.CoreV1().Pods(w.ns)
	all, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) != 6 {
		t.Fatalf("%d pods, %v", len(all.Items), err)
	}
	for _, pod := range all.Items {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}}
		w.until("room in the budget for "+pod.Name, func() bool {
			err = pods.EvictV1(t.Context(), eviction)
			return !apierrors.IsTooManyRequests(err)
		})
		must(t, err)
	}
	for _, pod := range all.Items {
		w.awaitPods(pod.Name+" gone", func(s sample) bool { return s.pods[pod.Name] == "" })
	}
	w.pods.awaitReady(t, want)
	w.awaitPause(1)
	w.pods.wantReady(t, mark, 3) // the budget is relative to spec.replicas, which is 4, and not to the 6 pods
}

// TestAReplicaWakesUp suspends the leader's process during its push of a record. Another replica starts the next release. When the
// suspended process resumes, it does not apply the pushed record, sends no write to the API server or to Git, and exits.
func TestAReplicaWakesUp(t *testing.T) {
	t.Parallel()
	app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {}")
	w := newWorld(t, app.files())
	flags := []string{"--leader-elect", "--leader-elect-namespace", w.ns}
	started, stopped := make(chan []*world, 1), make(chan *world, 1)
	w.server.Fault(gittest.Faults{BeforePush: func(n int) {
		if n != 2 { // the second push records Healthy, and the process then applies this record
			return
		}
		replicas := <-started
		old := replicas[slices.IndexFunc(replicas, func(r *world) bool { return strings.Contains(r.log.String(), "msg=leading") })]
		if err := old.process.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
		stopped <- old
	}})
	first, second := newGate(t, w), newGate(t, w)
	replicas := []*world{w.startBehind(first, flags...), w.twin().startBehind(second, flags...)}
	started <- replicas
	w.awaitHealthy(w.repo.Head())
	old := <-stopped
	sent := first
	if old == replicas[1] {
		sent = second
	}
	was := len(old.log.String())
	commit := w.stage("v2", app.at("v2").files())
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 1})
	recorded := w.repo.Ref(w.stateBranch())
	written := len(sent.effects()) // includes requests that the process sent before the stop and that arrived later
	must(t, old.process.Process.Signal(syscall.SIGCONT))
	select {
	case <-old.exited:
	case <-time.After(timeout):
		t.Fatalf("the one that woke up goes on:\n%s", old.log.String())
	}
	old.mu.Lock()
	old.stopped = true
	old.mu.Unlock()
	log := old.log.String()[was:]
	isTold := strings.Contains(log, "another gitrollout has taken over") || strings.Contains(log, "another replica continues")
	if strings.Contains(log, "commit="+commit) || !isTold {
		t.Errorf("its log after it woke up:\n%s", log)
	}
	if written < 3 { // two pushes and the Deployment
		t.Errorf("the gate has seen only %q", sent.effects())
	}
	writes := slices.DeleteFunc(sent.effects()[written:], func(name string) bool { return strings.Contains(name, "/leases") })
	compare.CheckNamed(t, "writes after it woke up", []string{}, writes)
	compare.CheckNamed(t, "the state branch after it woke up", recorded, w.repo.Ref(w.stateBranch()))
	w.pods.stays(t, time.Second)
	w.promote().awaitHealthy(commit)
	w.pods.wantStarted(t, map[string]int{"v2": 2})
}

// TestTheClustersRefusalHolds checks that, if a quota or a webhook refuses an object, the app is held (State.Held) with the server's
// message. Nothing of the commit is applied. The app continues as soon as the object is allowed.
func TestTheClustersRefusalHolds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refuse func(w *world) (allow func())
		words  []string
	}{
		"quota":   {(*world).refuseByQuota, []string{"ConfigMap", "settings", "exceeded quota", "count/configmaps"}},
		"webhook": {(*world).refuseByWebhook, []string{"ConfigMap", "settings", "no settings on Fridays"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {}")
			w := running(t, app.files())
			allow := tc.refuse(w)
			app.more = map[string]string{"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"}
			commit := w.push("v2", app.at("v2").files())
			held := w.await("held", func(s rollout.State) bool { return s.Held != nil }).Held
			compare.Contains(t, held.Message, tc.words...)
			compare.Contains(t, oneLine(w.ran("get", w.app)), tc.words[2])
			w.pods.stays(t, time.Second)
			w.pods.wantStarted(t, map[string]int{"v2": 0}) // no pod of the refused version
			allow()
			w.awaitPause(1)
			w.promote().awaitHealthy(commit)
		})
	}
}

// refuseByQuota allows no ConfigMap besides the namespace's default ConfigMap.
func (w *world) refuseByQuota() (allow func()) {
	w.t.Helper()
	w.kubectl("create", "quota", "few", "--hard=count/configmaps=1")
	awaitEqual(w.t, "the counted ConfigMaps", "1", func() string {
		return w.kubectl("get", "quota", "few", "-o", `jsonpath={.status.used.count/configmaps}`)
	})
	return func() { w.kubectl("delete", "quota", "few") }
}

// refuseByWebhook adds a webhook that refuses the namespace's ConfigMaps.
func (w *world) refuseByWebhook() (allow func()) {
	w.t.Helper()
	asked, open := atomic.Int32{}, atomic.Bool{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &review)
		asked.Add(1)
		_ = json.NewEncoder(rw).Encode(map[string]any{
			"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": map[string]any{
				"uid": review.Request.UID, "allowed": open.Load(), "status": map[string]any{"message": "no settings on Fridays"},
			},
		})
	}))
	w.t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	w.applyForTest(fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: fridays.example.com
  sideEffects: None
  failurePolicy: Fail
  admissionReviewVersions: [v1]
  clientConfig: {url: %[2]q, caBundle: %[3]s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
`, w.ns, server.URL, base64.StdEncoding.EncodeToString(authority)))
	w.until("the webhook is called", func() bool {
		_, _ = w.tryKubectl("create", "configmap", "probe", "--dry-run=server")
		return asked.Load() > 0
	})
	return func() { open.Store(true) }
}

// TestTheAPIServerIsAway checks that, while the API server is unreachable, gitrollout logs one error and advances no
// release. Afterwards the release continues.
func TestTheAPIServerIsAway(t *testing.T) {
	t.Parallel()
	app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {duration: 6}")
	w := newWorld(t, app.files())
	proxy := proxyOf(t, w)
	var away atomic.Bool
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler) // closes the connection without a response
		}
		ctx, cut := context.WithCancel(r.Context())
		defer cut()
		if r.URL.Query().Get("watch") != "" {
			go func() {
				for ctx.Err() == nil && !away.Load() {
					time.Sleep(glance)
				}
				cut()
			}()
		}
		proxy.ServeHTTP(rw, r.WithContext(ctx))
	}))
	t.Cleanup(api.Close)
	w.startThrough(kubeconfigOf(t, api.URL))
	w.awaitHealthy(w.repo.Head())
	commit := w.stage("v2", app.at("v2").files())
	away.Store(true)
	recorded := w.repo.Ref(w.stateBranch())
	w.pods.stays(t, 12*time.Second) // longer than the pause and several retries
	compare.CheckNamed(t, "the state branch without the cluster", recorded, w.repo.Ref(w.stateBranch()))
	compare.CheckNamed(t, "log lines of failed passes", 1, strings.Count(w.log.String(), `msg="pass failed"`))
	away.Store(false)
	w.awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"v2": 2})
}
