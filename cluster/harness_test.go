package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// timeout is a long timeout, so that a busy machine fails no test.
const timeout = 5 * time.Minute

// world is a namespace of the test cluster and a client under test.
type world struct {
	*cluster.Client
	t          *testing.T
	cluster    *testcluster.Cluster
	ns         string
	changes    *changes
	wanted     map[string][]rollout.Object // Git's objects, by app
	unknown    error                       // why those are unknown
	namespaces []string                    // cluster.Options.Namespaces
	taken      []string                    // the calls of cluster.Options.Taken
	kinds      string                      // the cluster-scoped kinds permitted to apps; "" for any
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

// must ends the test at an error.
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

// restart replaces the client by a new one, as a new process does.
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
	if err := c.Start(ctx); err != nil {
		cancel()
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		cancel()
		c.Wait()
	})
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

// objects reads manifests; NS is the namespace of the test.
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

// apply applies and expects success.
func (w *world) apply(app, manifests string) cluster.Result {
	w.t.Helper()
	result, err := w.Apply(context.Background(), app, w.objects(manifests))
	if err != nil {
		w.t.Fatalf("apply: %v", err)
	}
	return result
}

// wantWrites checks that f makes that many writing requests.
func (w *world) wantWrites(want int, what string, f func()) {
	w.t.Helper()
	before := w.Stats().Writes
	f()
	if got := w.Stats().Writes - before; got != want {
		w.t.Errorf("%s made %d writes, want %d", what, got, want)
	}
}

// until waits for a condition, or fails with the text of the last look.
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

// healed waits until an Apply of the manifests would write, and applies.
func (w *world) healed(app, manifests string) cluster.Result {
	w.t.Helper()
	var result cluster.Result
	w.until("a write after the drift", func() (bool, string) {
		result = w.apply(app, manifests)
		return result.Changed() > 0, fmt.Sprint(result)
	})
	return result
}

func (w *world) deployment(name string) *appsv1.Deployment {
	w.t.Helper()
	d, err := w.cluster.Kube.AppsV1().Deployments(w.ns).Get(context.Background(), name, metav1.GetOptions{})
	must(w.t, err)
	return d
}

// edit changes a Deployment as kubectl edit does.
func (w *world) edit(name, patch string) {
	w.t.Helper()
	_, err := w.cluster.Kube.AppsV1().Deployments(w.ns).Patch(context.Background(), name,
		types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	must(w.t, err)
}

// observe returns one workload of the test's namespace.
func (w *world) observe(app, name string) rollout.ObservedWorkload {
	at := rollout.Workload{Namespace: w.ns, Name: name}
	return w.Observe(app, []rollout.Workload{at}, nil).Workloads[at]
}

// complete waits until the watches of Deployments, ReplicaSets and pods all show the newest template for every pod.
func (w *world) complete(app, name string) rollout.ObservedWorkload {
	w.t.Helper()
	var seen rollout.ObservedWorkload
	w.until(name+" being complete", func() (bool, string) {
		seen = w.observe(app, name)
		return seen.Complete && allCurrent(seen), fmt.Sprintf("%+v", seen)
	})
	return seen
}

func allCurrent(seen rollout.ObservedWorkload) bool {
	return len(seen.Revisions) > 0 && !slices.ContainsFunc(seen.Revisions, func(r rollout.Revision) bool {
		return r.Current && r.Ready() != seen.Replicas || !r.Current && len(r.Members) > 0
	})
}

func (w *world) ref(group, kind, name string) rollout.Ref {
	return rollout.Ref{Group: group, Kind: kind, Namespace: w.ns, Name: name}
}

// shop is a typical app: the API server changes the form of its amounts, drops fields, and completes lists.
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
