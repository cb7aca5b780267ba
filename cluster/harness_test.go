package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// timeout is so long that no test fails on a busy machine.
const timeout = 5 * time.Minute

// world is a namespace of the test cluster, with the client under test.
type world struct {
	*cluster.Client
	t          *testing.T
	cluster    *testcluster.Cluster
	ns         string
	changes    *changes
	wanted     map[string][]rollout.Object // the objects in Git's newest commit, by app
	unknown    error                       // the error of Wants while the newest commit is unknown; otherwise nil
	namespaces []string                    // cluster.Options.Namespaces
	taken      []string                    // the fields passed to cluster.Options.Taken
	kinds      string                      // the only cluster-scoped kind that apps may have; "" for any
}

// changes counts the calls of OnChange.
type changes struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *changes) note(app string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[app]++
}

func (c *changes) of(app string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[app]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	tc := testcluster.Shared(t)
	w := &world{t: t, cluster: tc, ns: tc.Namespace(t)}
	w.restart()
	return w
}

// restart replaces the client by a new client, as a restart of the process does.
func (w *world) restart() {
	w.t.Helper()
	w.connect(w.cluster.Config)
}

func (w *world) connect(config *rest.Config) {
	w.t.Helper()
	w.changes = &changes{seen: map[string]int{}}
	if w.wanted == nil {
		w.wanted = map[string][]rollout.Object{}
	}
	c, err := cluster.New(config, cluster.Options{Cluster: "test", OnChange: w.changes.note, Wants: w.ask, Namespaces: w.namespaces,
		MayHave: func(_, kind string) *rollout.InvalidError {
			if w.kinds == "" || w.kinds == kind {
				return nil
			}
			return &rollout.InvalidError{Reason: rollout.HeldPolicy, Msg: "may have no " + kind}
		}, Taken: func(_ rollout.Ref, fields string) { w.taken = append(w.taken, fields) }})
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(func() {
		cancel()
		c.Wait()
	})
	must(w.t, c.Start(ctx))
	w.Client = c
}

// ask implements cluster.Options.Wants.
func (w *world) ask(app string, ref rollout.Ref) (rollout.Object, error) {
	for _, o := range w.wanted[app] {
		if o.Ref() == ref {
			return o, nil
		}
	}
	return nil, w.unknown
}

// objects parses manifests, in which NS stands for the test's namespace.
func (w *world) objects(manifests string) []rollout.Object {
	w.t.Helper()
	var out []rollout.Object
	for _, doc := range strings.Split(strings.ReplaceAll(manifests, "NS", w.ns), "\n---\n") {
		o := rollout.Object{}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			w.t.Fatalf("%v in:\n%s", err, doc)
		}
		if len(o) > 0 {
			out = append(out, o)
		}
	}
	return out
}

// apply applies manifests and fails the test on an error.
func (w *world) apply(app, manifests string) cluster.Result {
	w.t.Helper()
	result, err := w.Apply(context.Background(), app, w.objects(manifests))
	must(w.t, err)
	return result
}

// requests calls f and returns the numbers of requests that f has sent.
func (w *world) requests(f func()) (made cluster.Stats) {
	w.t.Helper()
	before := w.Stats()
	f()
	after := w.Stats()
	return cluster.Stats{Writes: after.Writes - before.Writes, DryRuns: after.DryRuns - before.DryRuns, Reads: after.Reads - before.Reads}
}

// wantWrites checks how many writing requests f sends.
func (w *world) wantWrites(want int, what string, f func()) {
	w.t.Helper()
	if got := w.requests(f).Writes; got != want {
		w.t.Errorf("%s made %d writes, want %d", what, got, want)
	}
}

// wantRefusal checks that an error is an *Error with the given reason, and that its text contains the given parts.
func wantRefusal(t testing.TB, what string, err error, reason cluster.Reason, says ...string) *cluster.Error {
	t.Helper()
	var refusal *cluster.Error
	if !errors.As(err, &refusal) || refusal.Reason != reason {
		t.Fatalf("%s: %v, want a refusal because of %s", what, err, reason)
	}
	compare.Contains(t, err.Error(), says...)
	return refusal
}

// until repeats a check until it succeeds. After the timeout, it fails the test with the check's last text.
func (w *world) until(what string, look func() (bool, string)) {
	w.t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		ok, told := look()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s did not happen within %s: %s", what, timeout, told)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// healed applies the manifests until an Apply writes an object, because the watch may lag behind another writer's change.
func (w *world) healed(app, manifests string) cluster.Result {
	w.t.Helper()
	var result cluster.Result
	w.until("a write after the drift", func() (bool, string) {
		result = w.apply(app, manifests)
		return result.Changed() > 0, fmt.Sprint(result)
	})
	return result
}

// await repeats an observation until the workload satisfies the condition.
func (w *world) await(what string, look func() rollout.ObservedWorkload, is func(rollout.ObservedWorkload) bool) rollout.ObservedWorkload {
	w.t.Helper()
	var seen rollout.ObservedWorkload
	w.until(what, func() (bool, string) {
		seen = look()
		return is(seen), fmt.Sprintf("%+v", seen)
	})
	return seen
}

func (w *world) deployment(name string) *appsv1.Deployment {
	w.t.Helper()
	d, err := w.cluster.Kube.AppsV1().Deployments(w.ns).Get(context.Background(), name, metav1.GetOptions{})
	must(w.t, err)
	return d
}

func (w *world) service(name string) *corev1.Service {
	w.t.Helper()
	s, err := w.cluster.Kube.CoreV1().Services(w.ns).Get(context.Background(), name, metav1.GetOptions{})
	must(w.t, err)
	return s
}

// edit patches a Deployment with the field manager of kubectl edit.
func (w *world) edit(name, patch string) {
	w.t.Helper()
	_, err := w.cluster.Kube.AppsV1().Deployments(w.ns).Patch(context.Background(), name,
		types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	must(w.t, err)
}

// observe returns the observed state of a workload in the test's namespace.
func (w *world) observe(app, name string) rollout.ObservedWorkload {
	at := rollout.Workload{Namespace: w.ns, Name: name}
	return w.Observe(app, []rollout.Workload{at}, nil).Workloads[at]
}

// complete waits until the watches show that the rollout is complete and all pods have the newest template.
func (w *world) complete(app, name string) rollout.ObservedWorkload {
	w.t.Helper()
	look := func() rollout.ObservedWorkload { return w.observe(app, name) }
	return w.await(name+" being complete", look, func(seen rollout.ObservedWorkload) bool { return seen.Complete && allCurrent(seen) })
}

func allCurrent(seen rollout.ObservedWorkload) bool {
	return len(seen.Revisions) > 0 && !slices.ContainsFunc(seen.Revisions, func(r rollout.Revision) bool {
		return r.Current && r.Ready() != seen.Replicas || !r.Current && len(r.Members) > 0
	})
}

func (w *world) ref(group, kind, name string) rollout.Ref {
	return rollout.Ref{Group: group, Kind: kind, Namespace: w.ns, Name: name}
}

// coreManifest returns the manifest of an object in the core group. The additional YAML follows the metadata.
func coreManifest(kind, name, more string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s, namespace: NS}\n%s\n", kind, name, more)
}

func serviceManifest(name string) string {
	return coreManifest("Service", name, "spec: {ports: [{port: 80}]}")
}

func documents(manifests ...string) string { return strings.Join(manifests, "\n---\n") }

// definition returns the CRD of a namespaced kind with one version.
func definition(group, version, kind, plural, schema string) string {
	return strings.NewReplacer("GROUP", group, "VERSION", version, "KIND", kind, "SINGULAR", strings.ToLower(kind), "PLURAL", plural,
		"SCHEMA", schema).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.GROUP}
spec:
  group: GROUP
  names: {kind: KIND, listKind: KINDList, plural: PLURAL, singular: SINGULAR}
  scope: Namespaced
  versions: [{name: VERSION, served: true, storage: true, schema: {openAPIV3Schema: SCHEMA}}]
`)
}

// deleteDefinition deletes a CRD, which deletes all objects of the CRD's kind.
func (w *world) deleteDefinition(name string) error {
	crds := w.cluster.Kube.Discovery().RESTClient().Delete().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", name)
	return crds.Do(context.Background()).Error()
}

// shop has the manifests of a typical app. The API server converts quantities, drops fields, and adds defaults to lists in these objects.
const shop = `
apiVersion: v1
kind: ConfigMap
metadata: {name: shop-config, namespace: NS}
data: {LOG: debug}
---
apiVersion: v1
kind: Secret
metadata: {name: shop-key, namespace: NS}
stringData: {key: topsecret}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: NS}
spec:
  selector: {app: shop}
  ports:
  - {port: 80, targetPort: 8080, name: http}
  - {port: 53, protocol: UDP, name: dns, targetPort: dns}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: NS, labels: {team: a}, creationTimestamp: null}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  strategy: {}
  template:
    metadata: {labels: {app: shop}}
    spec:
      hostNetwork: false
      securityContext: {}
      tolerations:
      - {key: dedicated, operator: Exists}
      containers:
      - name: shop
        image: shop:v1
        args: ["--verbose", "2"]
        ports:
        - {containerPort: 8080}
        - {containerPort: 53, protocol: UDP, name: dns}
        env:
        - {name: EMPTY, value: ""}
        - {name: LOG, valueFrom: {configMapKeyRef: {name: shop-config, key: LOG}}}
        resources:
          requests: {cpu: 0.5, memory: 1024Mi}
          limits: {cpu: 1000m}
        volumeMounts:
        - {name: tmp, mountPath: /tmp}
      volumes:
      - {name: tmp, emptyDir: {}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: shop, namespace: NS}
spec: {minAvailable: 1, selector: {matchLabels: {app: shop}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: shop, namespace: NS}
spec:
  podSelector: {matchLabels: {app: shop}}
  ingress:
  - ports: [{port: 8080}]
    from: [{podSelector: {}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: shop, namespace: NS}
spec:
  minReplicas: 1
  maxReplicas: 5
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: NS}
spec:
  rules:
  - host: shop.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}
`
