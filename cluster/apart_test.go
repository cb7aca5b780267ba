package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
)

// apart is the maximum duration of a call for a healthy app, while each call for another app takes 30 s.
const apart = 15 * time.Second

// small returns the two objects of a small app: a ConfigMap and a Deployment.
func (w *world) small(name, text string) []rollout.Object {
	deployment := strings.NewReplacer("shop:v1", name+":"+text, "shop", name).Replace(withoutReplicas)
	return w.objects(documents(coreManifest("ConfigMap", name, "data: {text: "+text+"}"), deployment))
}

// life makes each call of an app's reconciliation five times, each time with new content. It returns the duration and the name of the
// longest call.
func (w *world) life(app string) (longest time.Duration, what string) {
	w.t.Helper()
	ctx := context.Background()
	timed := func(name string, call func() error) {
		began := time.Now()
		if err := call(); err != nil {
			w.t.Errorf("%s of %s: %v", name, app, err)
		}
		if took := time.Since(began); took > longest {
			longest, what = took, name
		}
	}
	extra := w.ref("policy", "PodDisruptionBudget", app+"-old")
	for i := range 5 {
		objects := w.small(app, fmt.Sprint("v", i))
		timed("Check", func() error { return w.Check(ctx, app, objects) })
		timed("Apply", func() error { _, err := w.Apply(ctx, app, objects); return err })
		timed("Observe", func() error {
			at := rollout.Workload{Namespace: w.ns, Name: app}
			if _, ok := w.Observe(app, []rollout.Workload{at}, nil).Workloads[at]; !ok {
				return errors.New("is not observed")
			}
			return nil
		})
		timed("Prune", func() error {
			_, _, err := w.Prune(ctx, app, []rollout.Ref{extra, {Kind: "ConfigMap", Namespace: w.ns, Name: app + "-old"}})
			return err
		})
	}
	return longest, what
}

// wantApart checks that no call for three healthy apps takes longer than apart while calls for another app are slow. One of three rounds
// must be fast enough. The machine may be busy, but a wait for the other app would slow each round.
func (w *world) wantApart(trouble string, apart time.Duration) {
	w.t.Helper()
	var told string
	for round := range 3 {
		var all sync.WaitGroup
		var mu sync.Mutex
		told = ""
		for i := range 3 {
			all.Go(func() {
				app := fmt.Sprintf("calm-%d-%d", round, i)
				longest, what := w.life(app)
				mu.Lock()
				defer mu.Unlock()
				if longest > apart {
					told = fmt.Sprintf("%s of %s took %s beside %s", what, app, longest, trouble)
				}
			})
		}
		if all.Wait(); told == "" {
			return
		}
	}
	w.t.Error(told)
}

// deaf returns the address of a server that accepts connections and never answers a request.
func deaf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		var open []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				for _, c := range open {
					c.Close()
				}
				return
			}
			open = append(open, conn)
		}
	}()
	return l.Addr().String()
}

// slowWebhook installs a webhook that delays each write of an app's objects by 30 s, the maximum timeout. slowWebhook returns after the
// first delayed write.
func (w *world) slowWebhook(app string) {
	w.t.Helper()
	w.kubectl(strings.NewReplacer("DEAF", deaf(w.t), "APP", app).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS}
webhooks:
- name: slow.example.com
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 30
  admissionReviewVersions: [v1]
  clientConfig: {url: "https://DEAF/"}
  objectSelector: {matchLabels: {gitrollout.dev/app: APP}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]}]
`), "create", "-f", "-")
	w.t.Cleanup(func() { w.kubectl("", "delete", "validatingwebhookconfiguration", w.ns) })
	w.until("the webhook being called", func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), apart)
		defer cancel()
		err := w.Check(ctx, app, w.small(app, "v0"))
		return errors.Is(err, context.DeadlineExceeded), fmt.Sprint(err)
	})
}

// inBackground calls f repeatedly until the end of the test.
func (w *world) inBackground(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			f(ctx)
		}
	})
	w.t.Cleanup(func() { cancel(); running.Wait() })
}

func TestSlowWebhookHoldsItsOwnAppOnly(t *testing.T) {
	w := newWorld(t)
	w.slowWebhook("slow")
	for i := range 8 {
		w.inBackground(func(ctx context.Context) {
			if i%2 == 0 {
				_ = w.Check(ctx, "slow", w.small("slow", fmt.Sprint("v", i)))
			} else {
				_, _ = w.Apply(ctx, "slow", w.small("slow", fmt.Sprint("v", i)))
			}
		})
	}
	w.wantApart("an app whose webhook does not answer", apart)
}

func TestAppOfManyObjectsHoldsNoOther(t *testing.T) {
	w := newWorld(t)
	var many strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: many-%d, namespace: NS}\ndata: {text: ROUND}", i)
	}
	round := 0
	took := make(chan time.Duration, 1) // the duration of the first round
	w.inBackground(func(ctx context.Context) {
		began := time.Now()
		round++
		objects := w.objects(strings.ReplaceAll(many.String(), "ROUND", fmt.Sprint("v", round)))
		if _, err := w.Apply(ctx, "many", objects); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		var refs []rollout.Ref
		for _, o := range objects[:100] {
			refs = append(refs, o.Ref())
		}
		if _, _, err := w.Prune(ctx, "many", refs); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		if round == 1 {
			took <- time.Since(began)
		}
	})
	w.wantApart("an app of 500 objects", <-took/2)
}

// converted is a CRD with two versions. Tests select the stored version. While the conversion webhook does not answer,
// objects that are stored as v1 cannot be read as v2.
const converted = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  conversion: CONVERSION
  versions:
  - {name: v1, served: true, storage: V1, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: V2, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func (w *world) deadConversion() (group string) {
	w.t.Helper()
	group = w.ns + ".example.com"
	crd := func(conversion, v1, v2 string) string {
		return strings.NewReplacer("GROUP", group, "CONVERSION", conversion, "V1", v1, "V2", v2).Replace(converted)
	}
	w.kubectl(crd("{strategy: None}", "true", "false"), "apply", "-f", "-")
	w.kubectl("", "wait", "--for=condition=Established", "crd/things."+group)
	w.kubectl(fmt.Sprintf("apiVersion: %s/v1\nkind: Thing\nmetadata: {name: old, labels: {%s: dead}}", group, rollout.LabelApp),
		"apply", "-f", "-")
	w.kubectl(crd(`{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://`+deaf(w.t)+`/"}}}`, "false",
		"true"), "apply", "-f", "-")
	w.t.Cleanup(func() { w.kubectl("", "delete", "crd/things."+group, "--wait=false") })
	return group
}

func TestDeadConversionWebhookHoldsItsOwnKindOnly(t *testing.T) {
	w := newWorld(t)
	group := w.deadConversion()
	thing := w.objects(fmt.Sprintf("apiVersion: %s/v2\nkind: Thing\nmetadata: {name: new, namespace: NS}", group))
	ctx := context.Background()
	began := time.Now()
	_, err := w.Apply(ctx, "dead", append(w.small("dead", "v0"), thing...))
	if refused := wantRefusal(t, "Apply", err, cluster.Unavailable); refused.Ref.Kind != "Thing" || !refused.Temporary() {
		t.Errorf("the app of the kind is told %v", err)
	}
	if took := time.Since(began); took > apart {
		t.Errorf("the app of the kind was told after %s", took)
	}
	began = time.Now()
	if _, err := w.Apply(ctx, "dead", thing); err == nil || time.Since(began) > apart {
		t.Errorf("the second time it was told %v after %s", err, time.Since(began))
	}
	w.inBackground(func(ctx context.Context) {
		_, _ = w.Apply(ctx, "dead", thing)
		_, _, _ = w.Prune(ctx, "dead", []rollout.Ref{{Group: group, Kind: "Thing", Namespace: w.ns, Name: "old"}})
		_ = w.WatchRoutes(ctx, []rollout.Ref{{Group: group, Kind: "Thing", Namespace: w.ns, Name: "old"}})
	})
	w.wantApart("a kind whose conversion webhook is dead", apart)
}

func TestSlowDiscoveryHoldsOnlyWhoAsksForANewKind(t *testing.T) {
	w := newWorld(t)
	f := w.faulty()
	asked := make(chan struct{}, 100)
	f.spoil(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path != "/apis" && r.URL.Path != "/api" {
			return false
		}
		asked <- struct{}{}
		<-r.Context().Done()
		return true
	})
	unknown := w.objects("apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: a, namespace: NS}")
	w.inBackground(func(ctx context.Context) { _, _ = w.Apply(ctx, "lost", unknown) })
	<-asked
	w.wantApart("an app that waits for discovery", apart)
}
