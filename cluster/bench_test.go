package cluster

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/rollout"
)

// liveDeployment returns a Deployment as the API server returns it after an apply.
func liveDeployment(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	return objectOf(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: shop
  uid: uid-%[1]s
  resourceVersion: "12345"
  generation: 3
  labels: {app: %[1]s, gitrollout.dev/app: %[1]s, gitrollout.dev/applied: 018271ff61a2730e4beb71e136a849a4}
  annotations:
    deployment.kubernetes.io/revision: "2"
    gitrollout.dev/cluster: prod
    gitrollout.dev/template-hash: h1-7b4e2a91d0
  managedFields:
  - manager: gitrollout
    operation: Apply
    apiVersion: apps/v1
    fieldsV1:
      f:metadata: {f:labels: {f:app: {}, f:gitrollout.dev/app: {}, f:gitrollout.dev/applied: {}},
          f:annotations: {f:gitrollout.dev/cluster: {}, f:gitrollout.dev/template-hash: {}}}
      f:spec:
        f:replicas: {}
        f:selector: {}
        f:template: {f:metadata: {f:labels: {f:app: {}}}, f:spec: {f:containers: {'k:{"name":"app"}': {.: {}, f:name: {}, f:image: {},
            f:resources: {f:requests: {f:cpu: {}}}, f:ports: {'k:{"containerPort":80,"protocol":"TCP"}': {.: {}, f:containerPort: {}}}}}}}
spec:
  replicas: 2
  progressDeadlineSeconds: 600
  revisionHistoryLimit: 10
  selector: {matchLabels: {app: %[1]s}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%%, maxUnavailable: 25%%}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      dnsPolicy: ClusterFirst
      restartPolicy: Always
      schedulerName: default-scheduler
      terminationGracePeriodSeconds: 30
      containers:
      - {name: app, image: "app:v1", imagePullPolicy: IfNotPresent, ports: [{containerPort: 80, protocol: TCP}],
          resources: {requests: {cpu: 100m}}, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}
status:
  observedGeneration: 3
  replicas: 2
  updatedReplicas: 2
  availableReplicas: 2
  readyReplicas: 2
  conditions:
  - {type: Available, status: "True", reason: MinimumReplicasAvailable, message: Deployment has minimum availability.}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable, message: ReplicaSet has successfully progressed.}
`, name))
}

func offline(t testing.TB) (*Client, *kind) {
	t.Helper()
	c, err := New(&rest.Config{Host: "https://127.0.0.1:1"}, Options{})
	must(t, err)
	k := &kind{gvk: deployments.gvk, namespaced: true}
	k.live = newTable(reading(func(u *unstructured.Unstructured) (*live, error) { return c.readLive(k, u) }), c.liveChanged)
	return c, k
}

// TestRecordsAreSmall checks that the cached record of a Deployment takes at most 2,500 bytes of heap. The whole object
// takes 10 kB, and 8 kB without managed fields.
func TestRecordsAreSmall(t *testing.T) {
	c, k := offline(t)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const n = 1000
	before := heap()
	for i := range n {
		u := liveDeployment(t, fmt.Sprintf("app-%d", i))
		c.applied.known[rollout.Object(u.Object).Ref()] = known{digest: "018271ff61a2730e4beb71e136a849a4"}
		must(t, k.live.feeds[0].Add(u))
	}
	each := (int64(heap()) - int64(before)) / n
	t.Logf("%d bytes for each Deployment", each)
	if each > 2500 {
		t.Errorf("%d bytes for each Deployment, want at most 2500", each)
	}
	runtime.KeepAlive(k)
	runtime.KeepAlive(c)
}

func BenchmarkReadDeployment(b *testing.B) {
	c, k := offline(b)
	u := liveDeployment(b, "app")
	c.applied.known[rollout.Object(u.Object).Ref()] = known{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.readLive(k, u); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrepare(b *testing.B) {
	c, _ := offline(b)
	o := rollout.Object(liveDeployment(b, "app").Object)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.prepare("app", o); err != nil {
			b.Fatal(err)
		}
	}
}
