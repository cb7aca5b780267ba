package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func podOf(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return p
}

// objectOf decodes an object as Kubernetes' dynamic client does.
func objectOf(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	must(t, err)
	u := &unstructured.Unstructured{}
	must(t, u.UnmarshalJSON(raw))
	return u
}

// TestPodsInWords checks two texts about a pod: the STATUS of kubectl get pods, and the reason why the pod is not Ready.
func TestPodsInWords(t *testing.T) {
	const since, going = `lastTransitionTime: "2026-01-01T00:00:00Z"`, `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}`
	const aReady, bReady = "{name: a, ready: true, state: {running: {}}}", "{name: b, ready: true, state: {running: {}}}"
	const aDone = "{name: a, state: {terminated: {exitCode: 0, reason: Completed}}}"
	for name, c := range map[string]struct{ pod, status, trouble string }{
		"running": {`status: {phase: Running, conditions: [{type: Ready, status: "True", ` + since + `}], containerStatuses: [` + aReady + `]}`,
			"Running", ""},
		"new": {`status: {phase: Pending}`, "Pending", ""},
		"one is done": {`status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [` + aDone +
			`, ` + bReady + `]}`,
			"Running", "runs but is not Ready"},
		"one is done, not Ready": {`status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [` + aDone +
			`, ` + bReady + `]}`,
			"NotReady", "runs but is not Ready"},
		"one is done, one starts": {`status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [` + aDone +
			`, {name: b, ready: true}]}`,
			"Completed", "runs but is not Ready"},
		"one is done, one failed": {`status: {phase: Running, containerStatuses: [` + aDone +
			`, {name: b, state: {terminated: {exitCode: 3, reason: Error}}}]}`,
			"Error", "container b: 0 restarts, last exit code 3"},
		"two are waited for": {`{spec: {readinessGates: [{conditionType: a.b/one}, {conditionType: a.b/two}]}, ` +
			`status: {phase: Running, conditions: [{type: a.b/one, status: "True"}, {type: a.b/two, status: "False"}]}}`,
			"Running", "runs but is not Ready: readiness gate a.b/two is not met"},
		"scheduled": {`status: {phase: Pending, conditions: [{type: PodScheduled, status: "True", reason: Fine, message: well}]}`,
			"Pending", ""},
		"done and going":   {"{" + going + `, status: {phase: Succeeded}}`, "Succeeded", ""},
		"failed and going": {"{" + going + `, status: {phase: Failed}}`, "Failed", ""},
		"the other sidecar": {`{spec: {initContainers: [{name: a}, {name: b, restartPolicy: Always}]}, ` +
			`status: {phase: Pending, initContainerStatuses: [{name: a, started: true, state: {running: {}}}]}}`,
			"Init:0/2", "container a: runs but is not Ready"},
		"a sidecar starts": {`{spec: {initContainers: [{name: b, restartPolicy: Always}]}, ` +
			`status: {phase: Pending, initContainerStatuses: [{name: b, state: {running: {}}}]}}`,
			"Init:0/1", "container b: runs but is not Ready"},
		"creating": {`status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: ContainerCreating}}}]}`,
			"ContainerCreating", "container a: is being created"},
		"no room": {`status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, ` +
			`message: "0/3 nodes are available:\n 3 Insufficient cpu."}]}`,
			"Pending", "Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."},
		"gated": {`status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated, message: "gated"}]}`,
			"SchedulingGated", "SchedulingGated: gated"},
		"no image": {`status: {phase: Pending, containerStatuses: [{name: a, image: "x:y", state: {waiting: {reason: ImagePullBackOff, ` +
			`message: "Back-off pulling"}}}]}`,
			"ImagePullBackOff", "container a: ImagePullBackOff: image x:y: Back-off pulling"},
		"no config": {`status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: CreateContainerConfigError, ` +
			`message: 'configmap "c" not found'}}}]}`,
			"CreateContainerConfigError", `container a: CreateContainerConfigError: configmap "c" not found`},
		"crash loop": {`status: {phase: Running, containerStatuses: [{name: a, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff, ` +
			`message: back-off}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}`,
			"CrashLoopBackOff", "container a: CrashLoopBackOff, 3 restarts, last exit code 137 (OOMKilled)"},
		"crashed": {`status: {phase: Running, containerStatuses: [{name: a, restartCount: 1, state: {terminated: {exitCode: 2, reason: Error, ` +
			`message: "start\npanic: no database\n"}}}]}`,
			"Error", "container a: 1 restart, last exit code 2: panic: no database"},
		"up again": {`status: {phase: Running, containerStatuses: [{name: a, restartCount: 1, state: {running: {}}, ` +
			`lastState: {terminated: {exitCode: 1}}}]}`,
			"Running", "container a: runs again but is not Ready, 1 restart, last exit code 1"},
		"one of two": {`status: {phase: Running, containerStatuses: [` + aReady + `, {name: b, state: {running: {}}}]}`,
			"Running", "container b: runs but is not Ready"},
		"worst wins": {`status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}, ` +
			`{name: b, image: "i", state: {waiting: {reason: ErrImagePull}}}]}`,
			"CrashLoopBackOff", "container b: ErrImagePull: image i"},
		"init": {"spec: {initContainers: [{name: i}, {name: j}]}\nstatus: {phase: Pending, initContainerStatuses: [{name: i, state: " +
			"{terminated: {exitCode: 0}}}, {name: j, state: {running: {}}}], containerStatuses: [{name: a, state: {waiting: {reason: " +
			"PodInitializing}}}]}",
			"Init:1/2", "container j: runs but is not Ready"},
		"init fails": {"spec: {initContainers: [{name: i}]}\nstatus: {phase: Pending, initContainerStatuses: [{name: i, restartCount: 2, " +
			"state: {terminated: {exitCode: 9}}}]}",
			"Init:ExitCode:9", "container i: 2 restarts, last exit code 9"},
		"init loops": {"spec: {initContainers: [{name: i}]}\nstatus: {phase: Pending, initContainerStatuses: [{name: i, restartCount: 2, " +
			"state: {waiting: {reason: CrashLoopBackOff}}}]}",
			"Init:CrashLoopBackOff", "container i: CrashLoopBackOff, 2 restarts"},
		"sidecar": {"spec: {initContainers: [{name: i, restartPolicy: Always}]}\nstatus: {phase: Running, conditions: [{type: Ready, status: " +
			"\"True\", " + since +
			"}], initContainerStatuses: [{name: i, started: true, ready: true, state: {running: {}}}], containerStatuses: [" + aReady + "]}",
			"Running", ""},
		"completed": {`status: {phase: Succeeded, containerStatuses: [` + aDone + `]}`, "Completed", ""},
		"evicted": {`status: {phase: Failed, reason: Evicted, message: "The node was low on memory."}`,
			"Evicted", "failed: Evicted: The node was low on memory."},
		"stopping":  {going + "\nstatus: {phase: Running, containerStatuses: [{name: a, state: {running: {}}}]}", "Terminating", ""},
		"node lost": {going + "\nstatus: {phase: Running, reason: NodeLost}", "Unknown", ""},
		"readiness gate": {"spec: {readinessGates: [{conditionType: lb.example.com/ready}]}\nstatus: {phase: Running, containerStatuses: [" +
			aReady + "]}",
			"Running", "runs but is not Ready: readiness gate lb.example.com/ready is not met"},
	} {
		p, err := readPod(podOf(t, c.pod))
		if err != nil || p.status != c.status || p.trouble.text != c.trouble {
			t.Errorf("%s: %q, %q, %v\n want %q, %q", name, p.status, p.trouble.text, err, c.status, c.trouble)
		}
	}
}

func TestTroubleStaysShort(t *testing.T) {
	long := joined("Unschedulable", strings.Repeat("größer ", 200))
	if n := len([]rune(long)); n != maxTrouble || !strings.HasSuffix(long, "…") || strings.ContainsRune(long, '\uFFFD') {
		t.Errorf("%d characters: %q", n, long)
	}
}

func TestConfigsOfFindsEveryReference(t *testing.T) {
	p := podOf(t, `
spec:
  imagePullSecrets: [{name: pull}]
  initContainers: [{name: i, envFrom: [{configMapRef: {name: init-env}}]}]
  containers:
  - name: a
    env:
    - {name: A, value: x}
    - {name: B, valueFrom: {configMapKeyRef: {name: key, key: k}}}
    - {name: E, valueFrom: {configMapKeyRef: {name: alone, key: k}}}
    - {name: C, valueFrom: {secretKeyRef: {name: key, key: k}}}
    - {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    envFrom: [{secretRef: {name: env}}, {configMapRef: {name: key}}]
  ephemeralContainers: [{name: e, envFrom: [{secretRef: {name: debug}}]}]
  volumes:
  - {name: a, configMap: {name: volume}}
  - {name: b, secret: {secretName: volume}}
  - {name: c, projected: {sources: [{configMap: {name: projected}}, {secret: {name: projected}}, {downwardAPI: {}}]}}
  - {name: d, csi: {driver: x, nodePublishSecretRef: {name: csi}}}
  - {name: e, azureFile: {secretName: azure, shareName: x}}
  - {name: f, emptyDir: {}}
  - {name: g, cephfs: {monitors: [x], secretRef: {name: ceph}}}
  - {name: h, rbd: {monitors: [x], image: x, secretRef: {name: rbd}}}
  - {name: i, iscsi: {targetPortal: x, iqn: x, lun: 0, secretRef: {name: iscsi}}}
  - {name: j, flexVolume: {driver: x, secretRef: {name: flex}}}
  - {name: k, scaleIO: {gateway: x, system: x, secretRef: {name: scale}}}
  - {name: l, storageos: {secretRef: {name: storage}}}
  - {name: m, cinder: {volumeID: x, secretRef: {name: cinder}}}
  - {name: n, cephfs: {monitors: [x]}}
`)
	want := []configRef{
		{"ConfigMap", "alone"}, {"ConfigMap", "init-env"}, {"ConfigMap", "key"}, {"ConfigMap", "projected"}, {"ConfigMap", "volume"},
		{"Secret", "azure"}, {"Secret", "ceph"}, {"Secret", "cinder"}, {"Secret", "csi"}, {"Secret", "debug"}, {"Secret", "env"},
		{"Secret", "flex"}, {"Secret", "iscsi"}, {"Secret", "key"}, {"Secret", "projected"}, {"Secret", "pull"}, {"Secret", "rbd"},
		{"Secret", "scale"}, {"Secret", "storage"}, {"Secret", "volume"},
	}
	compare.Check(t, want, configsOf(&p.Spec))
}

func TestCurrentReplicaSet(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	old := &revision{number: 1, template: "a", created: at(1)}
	next := &revision{number: 2, template: "b", created: at(2)}
	twin := &revision{number: 3, template: "a", created: at(3)}
	for name, c := range map[string]struct {
		d      workload
		synced bool
		sets   []*revision
		want   *revision
	}{
		"in step":                         {workload{number: 2, template: "b"}, true, []*revision{old, next}, next},
		"template written, not seen yet":  {workload{number: 2, template: "c"}, false, []*revision{old, next}, nil},
		"back, not seen yet":              {workload{number: 2, template: "a"}, false, []*revision{old, next}, old},
		"back, ReplicaSets lag":           {workload{number: 3, template: "a"}, true, []*revision{old, next}, old},
		"two equal ones, the older":       {workload{template: "a"}, false, []*revision{twin, next, old}, old},
		"two equal ones, the number":      {workload{number: 3, template: "a"}, true, []*revision{old, twin}, twin},
		"defaulted by an older API":       {workload{number: 2, template: "B"}, true, []*revision{old, next}, next},
		"nothing there":                   {workload{number: 1, template: "a"}, true, nil, nil},
		"the newest is not in view yet":   {workload{number: 3, template: "c"}, true, []*revision{old, next}, nil},
		"without numbers by its template": {workload{template: "b"}, true, []*revision{{template: "b"}, old}, nil},
	} {
		if name == "without numbers by its template" {
			c.want = c.sets[0]
		}
		if got := currentOf(&c.d, c.synced, c.sets); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestTableKeepsTheNewest(t *testing.T) {
	told := 0
	tab := newTable(reading(readPod), func(_, _ *pod) { told++ }).feeds[0]
	object := func(name, version, owner string) *corev1.Pod {
		yes := true
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: "uid-" + "x", ResourceVersion: version,
			OwnerReferences: []metav1.OwnerReference{{UID: "owner-" + "y", Name: owner, Controller: &yes}}}}
	}
	answer := func(version string) func() error { // the response to a write by gitrollout
		return func() error {
			r, err := readPod(object("p", version, "r"))
			tab.put(r)
			return err
		}
	}
	version := func() string {
		r, ok := tab.get(key{"a", "p"})
		if !ok {
			return "none"
		}
		return r.version
	}
	for _, s := range []struct {
		what string
		do   func() error
		want string
	}{
		{"our own write", answer("12"), "12"},
		{"an event from before it", func() error { return tab.Update(object("p", "9", "r")) }, "12"},
		{"a deletion from before it", func() error { return tab.Delete(object("p", "11", "r")) }, "12"},
		{"a list from before it", func() error { return tab.Replace(nil, "11") }, "12"},
		{"an older list that has it", func() error { return tab.Replace([]any{object("p", "8", "r")}, "11") }, "12"},
		{"a newer event", func() error { return tab.Update(object("p", "100", "r")) }, "100"},
		{"a newer list without it", func() error { return tab.Replace(nil, "101") }, "none"},
		{"a new object", func() error { return tab.Add(object("p", "102", "r")) }, "102"},
		{"its deletion", func() error { return tab.Delete(object("p", "103", "r")) }, "none"},
		{"an answer that comes after the deletion", answer("102"), "none"},
		{"the answer to a write after it", answer("104"), "104"},
		{"an event", func() error { return tab.Update(object("p", "105", "r")) }, "105"},
		{"a list of a server that was restored", func() error { tab.ask(); return tab.Replace([]any{object("p", "40", "r")}, "50") }, "40"},
		{"an event after that", func() error { return tab.Update(object("p", "51", "r")) }, "51"},
		{"a second restoration, to before it was made", func() error { tab.ask(); return tab.Replace(nil, "30") }, "none"},
		{"an object made after that", func() error { return tab.Add(object("p", "31", "r")) }, "31"},
		{"its end", func() error { return tab.Delete(object("p", "32", "r")) }, "none"},
	} {
		if err := s.do(); err != nil || version() != s.want {
			t.Fatalf("after %s: version %s, %v, want %s", s.what, version(), err, s.want)
		}
	}
	if len(tab.byUID) != 0 || len(tab.owned) != 0 {
		t.Errorf("indices keep %v %v", tab.byUID, tab.owned)
	}
	if told != 12 {
		t.Errorf("changes were told %d times, want 12", told)
	}
}

// TestTableOfTwoNamespaces checks that each feed changes only its namespace's objects. The table is in sync when all feeds are in sync.
// blind returns the error of the feed that failed first.
func TestTableOfTwoNamespaces(t *testing.T) {
	tab := newTable(reading(readPod), func(_, _ *pod) {}, "a", "b")
	a, b := tab.feedOf("a"), tab.feedOf("b")
	object := func(namespace, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", UID: types.UID(namespace), ResourceVersion: version}}
	}
	want := func(what string, namespaces string, isInSync bool) {
		t.Helper()
		has := ""
		for _, namespace := range []string{"a", "b", "c"} {
			if _, is := tab.get(key{namespace, "p"}); is {
				has += namespace
			}
		}
		if has != namespaces || tab.inSync() != isInSync {
			t.Errorf("after %s: pods in %q, in sync %v; want %q, %v", what, has, tab.inSync(), namespaces, isInSync)
		}
	}
	_ = a.Replace([]any{object("a", "10")}, "11")
	want("the first list of a", "a", false)
	_ = b.Replace([]any{object("b", "5")}, "7")
	want("the first list of b", "ab", true)
	_ = a.Replace(nil, "12")
	want("an empty list of a", "b", true)
	own, _ := readPod(object("b", "6"))
	tab.drop(own.key, "8")
	tab.put(own)
	want("the answer to a write that b's watch has overtaken", "", true)
	own, _ = readPod(object("c", "20"))
	tab.put(own)
	want("an object of another namespace", "", true)
	b.report(errors.New("first"))
	a.report(errors.New("second"))
	if _, err := tab.blind(); err == nil || err.Error() != "first" {
		t.Errorf("it is blind for %v", err)
	}
}

// TestRefusedWatchIsAList checks that the client lists the objects after a refused watch, unless the API server limits the rate. After a
// restore of etcd, a watch from the last known resource version would send no events, or wrong events.
func TestRefusedWatchIsAList(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		refusal error
		lists   int
	}{
		"no server listens":   {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, 2},
		"etcd was away":       {apierrors.NewTooManyRequests("storage is (re)initializing", 1), 2},
		"another error":       {apierrors.NewForbidden(resource, "", errors.New("no")), 2},
		"no response":         {errClosed, 2},
		"too many ask for it": {apierrors.NewTooManyRequests("too many requests, please try again later", 1), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			tab := newTable(reading(readPod), func(_, _ *pod) {}).feeds[0]
			lists, watches, open := 0, 0, make(chan struct{})
			var blind error // the error of tab.blind after the refusal
			b := &background{}
			runWatch(ctx, b, tab, "pods", &corev1.Pod{}, source{
				list: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					if lists++; lists == 2 {
						_, blind = tab.blind()
					}
					return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "100"}}, nil
				},
				watch: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
					if o.SendInitialEvents != nil {
						// Refuse the watch for the first list, so that the reflector requests a list.
						return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
					}
					switch watches++; {
					case watches == 1 && errors.Is(c.refusal, errClosed):
						return watch.NewEmptyWatch(), nil
					case watches == 1:
						return nil, c.refusal
					}
					if lists == 1 {
						_, blind = tab.blind()
					}
					close(open)
					return watch.NewFake(), nil
				},
			})
			<-open
			for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				if _, why := tab.blind(); why == nil { // the reflector reports success some time after the watch starts
					break
				}
			}
			cancel()
			b.running.Wait()
			if lists != c.lists {
				t.Errorf("%d lists, want %d", lists, c.lists)
			}
			if _, now := tab.blind(); !errors.Is(blind, c.refusal) || now != nil {
				t.Errorf("refused, it is blind for %v, and then for %v", blind, now)
			}
		})
	}
}

// TestBlind checks that blind returns the start of an outage and the outage's first error. While a watch works or is renewed, blind returns
// nil.
func TestBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(reading(readPod), func(_, _ *pod) {}).feeds[0]
		sees := func(want string) time.Time {
			t.Helper()
			since, err := tab.blind()
			if is := fmt.Sprint(err); is != want {
				t.Errorf("it says %s, want %s", is, want)
			}
			return since
		}
		sees("<nil>")
		began := time.Now()
		tab.begin()
		time.Sleep(time.Second)
		sees("<nil>")
		time.Sleep(2 * time.Second)
		if since := sees("the API server does not answer"); !since.Equal(began) {
			t.Errorf("blind since %s, and the server does not answer since %s", since, began)
		}
		tab.report(errors.New("connection refused")) // the same outage
		sees("the API server does not answer")
		tab.begin()
		tab.report(nil)
		time.Sleep(time.Hour) // while a watch works
		sees("<nil>")
		tab.begin()
		tab.report(errors.New("one"))
		tab.report(errors.New("another"))
		tab.begin()
		time.Sleep(time.Minute)
		sees("one")
	})
}

// TestRecordsOfAnyObject checks that an object of a custom kind can be read even if its spec.replicas is not a number.
func TestRecordsOfAnyObject(t *testing.T) {
	c, err := New(&rest.Config{Host: "http://localhost"}, Options{})
	must(t, err)
	read := func(replicas any) *live {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Pool", "metadata": map[string]any{"name": "p"},
			"spec": map[string]any{"replicas": replicas},
		}}
		l, err := c.readLive(&kind{gvk: u.GroupVersionKind()}, u)
		must(t, err)
		return l
	}
	for _, odd := range []any{nil, "many", []any{int64(1)}, map[string]any{"min": int64(1)}} {
		if a, b := read(odd), read(odd); !a.same(b) || a.replicas != -1 {
			t.Errorf("replicas %v: %+v is not %+v", odd, a, b)
		}
	}
	if a, b := read(int64(2)), read(int64(3)); a.same(b) || a.replicas != 2 {
		t.Errorf("%+v is as %+v", a, b)
	}
}

// TestHealth checks the health and the reason that healthOf returns for objects of several kinds.
func TestHealth(t *testing.T) {
	const thing = "{kind: Thing, apiVersion: a.b/v1, "
	for name, c := range map[string]struct{ object, want string }{
		"no status": {`{kind: ConfigMap}`, ""},
		"a failed Job": {`{kind: Job, apiVersion: batch/v1, status: {startTime: x, conditions: [{type: Failed, status: "True", ` +
			`message: many}]}}`, "Failed: Job Failed. failed: 0/1"},
		"a Job at work":  {`{kind: Job, apiVersion: batch/v1, status: {startTime: x, active: 1}}`, ""},
		"not looked at":  {thing + `metadata: {generation: 2}, status: {observedGeneration: 1}}`, "InProgress: "},
		"not ready":      {thing + `status: {conditions: [{type: Ready, status: "False", message: because}]}}`, "InProgress: because"},
		"stalled":        {thing + `status: {conditions: [{type: Stalled, status: "True", message: because}]}}`, "Failed: because"},
		"ready":          {thing + `status: {conditions: [{type: Ready, status: "True"}]}}`, ""},
		"of another age": {`{kind: Deployment, apiVersion: apps/v1, status: {conditions: many}}`, ""},
	} {
		health, why := healthOf(objectOf(t, c.object))
		got := string(health)
		if got != "" {
			got += ": " + why
		}
		if got != c.want && (c.want != "InProgress: " || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// answer returns an error as the API server sends it.
func answer(code int32, reason metav1.StatusReason, msg string, causes ...metav1.StatusCause) error {
	s := metav1.Status{Code: code, Reason: reason, Message: msg}
	if causes != nil {
		s.Details = &metav1.StatusDetails{Causes: causes}
	}
	return &apierrors.StatusError{ErrStatus: s}
}

// TestRefusalsAreSorted checks the Reason of each kind of error that the API server and its admission plugins send.
func TestRefusalsAreSorted(t *testing.T) {
	forbidden := func(msg string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "shop", errors.New(msg))
	}
	invalid := func(kind string, problem *field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, "shop", field.ErrorList{problem})
	}
	terminating := answer(403, metav1.StatusReasonForbidden, "unable to create new content in namespace a because it is being terminated",
		metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	cases := map[Reason][]error{
		Forbidden: {
			forbidden(`User "x" cannot patch resource "deployments" in API group "apps" in the namespace "a"`),
			answer(401, metav1.StatusReasonUnauthorized, "Unauthorized"),
		},
		Quota: {forbidden("exceeded quota: none, requested: services=1, used: services=0, limited: services=0")},
		Denied: {
			answer(403, "", `admission webhook "policy.example.com" denied the request: no :latest`),
			answer(400, metav1.StatusReasonBadRequest, `admission webhook "policy.example.com" denied the request: no`),
			forbidden("ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no"),
			forbidden(`violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`),
		},
		Immutable: {
			invalid("Service", field.Invalid(field.NewPath("spec", "clusterIPs"), "x", "may not change once set")),
			invalid("StatefulSet",
				field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas' are forbidden")),
			invalid("RoleBinding", field.Invalid(field.NewPath("roleRef"), "x", "cannot change roleRef")),
			invalid("Secret", field.Invalid(field.NewPath("type"), "x", "field is immutable")),
		},
		Invalid: {
			invalid("Service", field.Required(field.NewPath("spec", "ports"), "")),
			answer(500, "", "failed to create typed patch object (a/shop; apps/v1, Kind=Deployment): .spec.replica: field not declared in schema"),
			answer(413, metav1.StatusReasonRequestEntityTooLarge, "limit is 3145728"),
		},
		NamespaceGone: {terminating},
		Missing:       {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a")},
		Unavailable: {
			errors.New("dial tcp: connection refused"), context.DeadlineExceeded,
			answer(429, metav1.StatusReasonTooManyRequests, "too many requests"), answer(503, metav1.StatusReasonServiceUnavailable, "no"),
			answer(500, metav1.StatusReasonInternalError, "failed calling webhook: timeout"),
			answer(409, metav1.StatusReasonConflict, "the object has been modified"),
		},
		UnknownKind: {fmt.Errorf("x: %w", errUnknownKind)},
		Unexpected:  {answer(418, "", "I am a teapot")},
	}
	ref := rollout.Ref{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "shop"}
	for reason, errs := range cases {
		for _, err := range errs {
			var refusal *Error
			if got := explain(err, ref, "patch"); !errors.As(got, &refusal) || refusal.Reason != reason || !errors.Is(got, err) {
				t.Errorf("%v is %+v, want %s", err, refusal, reason)
			}
		}
	}
	first := explain(forbidden("no"), ref, "patch")
	if again := explain(first, rollout.Ref{Kind: "Other"}, "get"); again != first {
		t.Errorf("explained twice: %v", again)
	}
}

func TestCRDIsAwaited(t *testing.T) {
	crd := rollout.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "things.example.com"}
	condition := func(name, status, message string) any {
		return map[string]any{"type": name, "status": status, "message": message}
	}
	for name, c := range map[string]struct {
		ref        rollout.Ref
		conditions []any
		want       string
	}{
		"new":    {crd, nil, "the API server has not checked it yet"},
		"served": {crd, []any{condition("NamesAccepted", "True", ""), condition("Established", "True", "")}, ""},
		"name taken": {crd, []any{condition("NamesAccepted", "False", "thing is in use\n"), condition("Established", "False", "")},
			"thing is in use"},
		"another kind": {rollout.Ref{Kind: "Service"}, nil, ""},
	} {
		compare.CheckNamed(t, name, c.want, awaitedOf(c.ref, rollout.Object{"status": map[string]any{"conditions": c.conditions}}))
	}
}

func TestCutSplitsNoCharacter(t *testing.T) {
	for _, c := range []struct {
		text        string
		limit, want int
	}{{"größe", 3, 2}, {"größe", 4, 4}, {"größe", 7, 7}, {"größe", 6, 6}, {"größe", 9, 7}, {"ö", 1, 0},
		{"abc", 3, 3}, {"abc", 2, 2}} {
		if got := len(cut(c.text, c.limit)); got != c.want {
			t.Errorf("%s is cut at %d, want %d", c.text, got, c.want)
		}
	}
	if got := eventName(strings.Repeat("x", 300)); len(got) != 201 {
		t.Errorf("the name of an event is %d long", len(got))
	}
}

// TestRefusalsInWords checks the text that users see when the API server refuses an object.
func TestRefusalsInWords(t *testing.T) {
	service := rollout.Ref{Kind: "Service", Namespace: "a", Name: "web"}
	node := rollout.Ref{Group: "apps", Kind: "Thing", Name: "one"}
	secret := rollout.Ref{Kind: "Secret", Namespace: "a", Name: "key"}
	cause := func(field, message string) metav1.StatusCause {
		return metav1.StatusCause{Field: field, Message: message}
	}
	invalid := func(msg string, causes ...metav1.StatusCause) error {
		return answer(422, metav1.StatusReasonInvalid, msg, causes...)
	}
	forbidden := func(msg string) error { return answer(403, metav1.StatusReasonForbidden, msg) }
	const left = "the server's answer is left out, because it may quote the content; to see the answer, run: kubectl apply --dry-run=server"
	for name, c := range map[string]struct {
		err  error
		ref  rollout.Ref
		want string
	}{
		"one cause":    {invalid("all", cause("spec.ports", "is missing")), service, "Service a/web: spec.ports: is missing"},
		"three causes": {invalid("all", cause("", "one\ntwo"), cause("b", "c"), cause("d", "e")), service, "Service a/web: one two (and 2 more)"},
		"two causes":   {invalid("all", cause("<nil>", "one"), cause("b", "c")), service, "Service a/web: one (and 1 more)"},
		"two labels":   {invalid("all", cause("labels", "a"), cause("labels", "b")), service, "Service a/web: labels: a (and 1 more)"},
		"in another order": {invalid("all", cause("labels", "b"), cause("labels", "a")), service,
			"Service a/web: labels: a (and 1 more)"},
		"no details":   {invalid("all of it"), service, "Service a/web: all of it"},
		"no causes":    {invalid("all of it", []metav1.StatusCause{}...), service, "Service a/web: all of it"},
		"other reason": {answer(400, metav1.StatusReasonBadRequest, "all of it", cause("spec", "x")), service, "Service a/web: all of it"},
		"of no space":  {answer(404, metav1.StatusReasonNotFound, "it is not there"), node, "Thing one: it is not there"},
		"may not give": {forbidden("user x is attempting to grant RBAC permissions not currently held"), node,
			"Thing one: user x is attempting to grant RBAC permissions not currently held; a user can grant only its own rights: " +
				"give the reconciler's user the same rights, or the verbs escalate and bind for this kind"},
		"may not":    {forbidden("no"), node, "Thing one: no; allow the reconciler's user to patch this kind"},
		"no login":   {answer(401, metav1.StatusReasonUnauthorized, "no"), node, "Thing one: no; give the reconciler valid credentials"},
		"of no kind": {fmt.Errorf("x: %w", errUnknownKind), node, "Thing one: kind Thing.apps is not known to the cluster; install its CRD"},
		"of the core": {fmt.Errorf("x: %w", errUnknownKind), rollout.Ref{Kind: "Thing", Name: "one"},
			"Thing one: kind Thing is not known to the cluster; install its CRD"},
		"a wrong word": {errors.New("admission webhook x timed out"), service, "Service a/web: admission webhook x timed out"},
		"a Secret": {invalid("all", cause("data[s3cr3t]", "s3cr3t"), cause("data[other]", "x"), cause("type", "x"), cause("s3cr3t", "x")),
			secret, "Secret a/key: is not valid (data[…], type); " + left},
		"a bare Secret": {invalid("s3cr3t"), secret, "Secret a/key: is not valid; " + left},
		"no fields":     {invalid("all", cause("s3cr3t", "s3cr3t")), secret, "Secret a/key: is not valid; " + left},
		"it is fixed": {invalid("s3cr3t field is immutable"), secret, "Secret a/key: is immutable; " +
			"this field cannot change on a live object: revert the change, use a new name, or delete the object and let it be created anew"},
		"hooked": {forbidden(`admission webhook "p.x" denied the request: s3cr3t`), secret,
			`Secret a/key: admission webhook "p.x" denied the request; ` + left},
		"away":         {errors.New("dial tcp"), secret, "Secret a/key: dial tcp"},
		"another kind": {invalid("told"), rollout.Ref{Group: "x", Kind: "Secret", Name: "key"}, "Secret key: told"},
	} {
		if got := explain(c.err, c.ref, "patch"); got == nil || got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
	if err := explain(nil, service, "patch"); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	known := &Error{Ref: service, Reason: Contested}
	if err := explain(fmt.Errorf("x: %w", known), node, "patch"); !errors.Is(err, known) || isRefused(errors.New("x")) {
		t.Errorf("it is explained twice: %v", err)
	}
	for reason, is := range map[Reason][2]bool{ // is the error temporary, and is it a refusal
		Unavailable: {true, false}, NamespaceGone: {true, true}, Unexpected: {false, false}, Denied: {false, true},
	} {
		if e := (&Error{Reason: reason}); e.Temporary() != is[0] || isRefused(e) != is[1] {
			t.Errorf("%s: temporary %t, refused %t", reason, e.Temporary(), isRefused(e))
		}
	}
}

// TestTroublesAreNoted checks that an unhealthy object is recorded for its app until it is healthy or deleted. Objects
// of another cluster are ignored, even if the app's name is the same.
func TestTroublesAreNoted(t *testing.T) {
	at := func(name, app, cluster, health string) *live {
		l := &live{ref: rollout.Ref{Kind: "Job", Name: name}, app: app, cluster: cluster, why: "because"}
		l.health = status.Status(health)
		return l
	}
	all := troubles{}
	all.note(nil, at("a", "shop", "prod", "Failed"), "prod")
	all.note(nil, at("b", "shop", "prod", "InProgress"), "prod")
	all.note(nil, at("c", "shop", "other", "Failed"), "prod")
	all.note(nil, at("d", "", "prod", "Failed"), "prod")
	all.note(nil, at("e", "shop", "prod", ""), "prod")
	want := []rollout.Trouble{
		{Ref: rollout.Ref{Kind: "Job", Name: "a"}, Failed: true, Message: "because"},
		{Ref: rollout.Ref{Kind: "Job", Name: "b"}, Message: "because"},
	}
	if diff := compare.Diff(want, all.of("shop")); diff != "" || len(all) != 1 {
		t.Errorf("%d apps (-want +got):\n%s", len(all), diff)
	}
	all.note(at("a", "shop", "prod", "Failed"), nil, "prod")
	all.note(at("b", "shop", "prod", ""), at("b", "shop", "prod", "InProgress"), "prod")
	compare.Check(t, want[1:], all.of("shop"))
	all.note(at("b", "shop", "prod", "InProgress"), at("b", "shop", "prod", ""), "prod")
	if len(all) != 0 {
		t.Errorf("nothing is wrong any more: %v", all)
	}
}

// checkSame checks that the function same ignores the resource version, and returns false after each of the given changes.
func checkSame[T any](t *testing.T, was T, same func(a, b *T) bool, version func(*T), changes map[string]func(*T)) {
	t.Helper()
	next := was
	if version(&next); !same(&was, &next) {
		t.Error("another version alone is a change")
	}
	for name, change := range changes {
		next := was
		if change(&next); same(&was, &next) || same(&next, &was) {
			t.Errorf("%s: it is no change", name)
		}
	}
}

// TestPodsThatAreTheSame checks which changes of a pod notify its app.
func TestPodsThatAreTheSame(t *testing.T) {
	was := pod{stamp: stamp{key: key{"ns", "a"}, version: "1"}, pin: "p", status: "Running", restarts: 1}
	checkSame(t, was, sameRow[pod], func(p *pod) { p.version = "2" }, map[string]func(*pod){
		"stamp": func(p *pod) { p.owner = "b" }, "pin": func(p *pod) { p.pin = "q" }, "ready": func(p *pod) { p.readySince = time.Unix(1, 0) },
		"going": func(p *pod) { p.terminating = true }, "done": func(p *pod) { p.finished = true }, "restarts": func(p *pod) { p.restarts++ },
		"status": func(p *pod) { p.status = "Pending" }, "trouble": func(p *pod) { p.trouble = trouble{text: "x"} },
		"role": func(p *pod) { p.role = "{}" },
	})
}

// TestRevisionsThatAreTheSame checks which changes of a ReplicaSet notify its app.
func TestRevisionsThatAreTheSame(t *testing.T) {
	was := revision{stamp: stamp{key: key{"ns", "a"}, version: "1"}, hash: "h", desired: 1}
	checkSame(t, was, sameRow[revision], func(r *revision) { r.version = "2" }, map[string]func(*revision){
		"stamp": func(r *revision) { r.owner = "b" }, "hash": func(r *revision) { r.hash = "i" }, "pin": func(r *revision) { r.pin.Value = "q" },
		"number": func(r *revision) { r.number++ }, "template": func(r *revision) { r.template = "x" },
		"desired": func(r *revision) { r.desired++ },
		"pods":    func(r *revision) { r.pods++ }, "available": func(r *revision) { r.available++ },
		"failure": func(r *revision) { r.failure = "x" },
	})
}

// TestFighting checks that the pauses between an object's repairs grow. After five minutes without a repair, the next repair is immediate.
func TestFighting(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		repairs int
		wait    time.Duration
	}{{0, 0}, {4, 0}, {5, time.Second}, {6, 2 * time.Second}, {7, 4 * time.Second}, {10, 32 * time.Second}, {11, time.Minute},
		{12, time.Minute}, {50, time.Minute}} {
		k := known{repairs: c.repairs, repaired: now}
		if c.wait > 0 && !k.fighting(now.Add(c.wait-1)) || k.fighting(now.Add(c.wait)) {
			t.Errorf("after %d repairs it does not wait %s", c.repairs, c.wait)
		}
	}
	m := appliedCache{known: map[rollout.Ref]known{}}
	d := &desired{ref: rollout.Ref{Kind: "ConfigMap", Name: "a"}, digest: "d"}
	for i, c := range []struct {
		after   time.Duration
		digest  string
		repairs int
	}{{0, "d", 0}, {0, "d", 1}, {time.Second, "d", 2}, {peaceful - 1, "d", 3}, {peaceful, "d", 1}, {0, "e", 0}, {0, "e", 1}} {
		now = now.Add(c.after)
		d.digest = c.digest
		m.note(d, &live{print: "p"}, "ann", now)
		if k, _ := m.of(d.ref); k.repairs != c.repairs {
			t.Errorf("after write %d it has %d repairs, want %d", i, k.repairs, c.repairs)
		}
	}
	m.doubt(d)
	if k, ok := m.of(d.ref); !ok || k.digest != "" || k.repairs != 0 {
		t.Errorf("a write with an unknown outcome is remembered as %+v", k)
	}
	m.note(d, &live{print: "p"}, "ann", now)
	if k, _ := m.of(d.ref); k.repairs != 0 {
		t.Errorf("the first one after that is a repair: %+v", k)
	}
}

// TestOverwritten checks that an object is reported if another writer changes it every 15 s. The reports begin with the second change, and
// end after a minute without changes. A single change, changes within seconds, and changes a minute apart are not reported.
func TestOverwritten(t *testing.T) {
	fights := known{repairs: promptRepairs + 3, since: time.Unix(0, 0), repaired: time.Unix(8, 0)}
	if err := fights.overwritten(rollout.Ref{}, time.Unix(9, 0)); err == nil || errors.Is(err, rollout.ErrOverwritten) {
		t.Errorf("a fight of 8 seconds: %v", err)
	}
	fights.repaired = time.Unix(15, 0)
	if err := fights.overwritten(rollout.Ref{}, time.Unix(16, 0)); !errors.Is(err, rollout.ErrOverwritten) {
		t.Errorf("a fight of 15 seconds stops a release: %v", err)
	}
	every5 := func(from, to int) (all []int) {
		for second := from; second <= to; second += 5 {
			all = append(all, second)
		}
		return all
	}
	d := &desired{ref: rollout.Ref{Kind: "ConfigMap", Name: "a"}, digest: "d"}
	for name, c := range map[string]struct {
		changes []int // the times of the changes, in seconds
		told    []int // the times of the reports, in seconds; the test checks every 5 s
	}{
		"one":                      {[]int{0}, nil},
		"within seconds":           {[]int{0, 2, 3, 6}, nil},
		"with a minute in between": {[]int{0, 60, 120}, nil},
		"two":                      {[]int{0, 15}, every5(15, 70)},
		"an autoscaler":            {[]int{0, 15, 30, 45, 60, 75, 90, 105, 120, 150, 210}, every5(15, 265)},
		"once, long after others":  {[]int{0, 2, 4, 6, 8, 600}, nil},
	} {
		began := time.Unix(1000, 0)
		m := appliedCache{known: map[rollout.Ref]known{}}
		m.note(d, &live{print: "p"}, "", time.Time{})
		var told []int
		for second := 0; second <= 700; second += 5 {
			for _, at := range c.changes {
				if at > second-5 && at <= second {
					m.note(d, &live{print: "p"}, "hpa", began.Add(time.Duration(at)*time.Second))
				}
			}
			k, _ := m.of(d.ref)
			if err := k.overwritten(d.ref, began.Add(time.Duration(second)*time.Second)); err != nil {
				told = append(told, second)
			}
		}
		compare.CheckNamed(t, name, c.told, told)
	}
}

// TestReadPods checks the fields of a pod's record.
func TestReadPods(t *testing.T) {
	const made, ready = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
	const since, gate = `lastTransitionTime: "` + ready + `"`, "spec: {readinessGates: [{conditionType: InPlaceUpdateReady}]}"
	for name, c := range map[string]struct {
		pod      string
		since    string // "" if the pod is not ready
		finished bool
		restarts int
	}{
		"ready":   {`status: {phase: Running, conditions: [{type: Ready, status: "True", ` + since + `}]}`, ready, false, 0},
		"at once": {`status: {phase: Running, conditions: [{type: Ready, status: "True"}]}`, made, false, 0},
		"unready": {`status: {phase: Running, conditions: [{type: Ready, status: "False", ` + since + `}]}`, "", false, 0},
		"started": {`status: {phase: Running, conditions: [{type: Initialized, status: "True", ` + since + `}]}`, "", false, 0},
		"its gate is shut": {gate + `, status: {phase: Running, conditions: [{type: Ready, status: "True", ` + since +
			`}, {type: InPlaceUpdateReady, status: "False"}]}`, "", false, 0},
		"its gate is open": {gate + `, status: {phase: Running, conditions: [{type: Ready, status: "True", ` + since +
			`}, {type: InPlaceUpdateReady, status: "True"}]}`, ready, false, 0},
		"done":     {`status: {phase: Succeeded}`, "", true, 0},
		"failed":   {`status: {phase: Failed}`, "", true, 0},
		"restarts": {`status: {phase: Running, containerStatuses: [{name: a, restartCount: 2}, {name: b, restartCount: 3}]}`, "", false, 5},
	} {
		text := `{metadata: {name: a, creationTimestamp: "` + made + `"}, ` + c.pod + "}"
		p, err := readPod(podOf(t, text))
		must(t, err)
		var since time.Time
		if c.since != "" {
			since, _ = time.Parse(time.RFC3339, c.since)
		}
		if !p.readySince.Equal(since) || p.finished != c.finished || p.restarts != c.restarts {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if _, err := reading(readPod)(&corev1.Node{}); err == nil {
		t.Error("a Node is read as a pod")
	}
}

// TestDeploymentsAreRead checks that missing numbers get Kubernetes' defaults. The condition ReplicaFailure counts only while its status is
// True.
func TestDeploymentsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		spec, status string
		replicas     int
		failure      string
	}{
		"default": {"{}", "{}", 1, ""},
		"none":    {"{replicas: 0}", "{}", 0, ""},
		"fails": {"{replicas: 3}", `{conditions: [{type: Progressing, status: "True", message: fine}, ` +
			`{type: ReplicaFailure, status: "True", message: "no\nquota"}]}`, 3, "pods cannot be created: no quota"},
		"failed": {"{replicas: 3}", `{conditions: [{type: ReplicaFailure, status: "False", message: quota}]}`, 3, ""},
	} {
		u := objectOf(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: "+c.spec+", status: "+c.status+"}")
		if d, err := readDeployment(u.Object); err != nil || d.replicas != c.replicas || d.failure != c.failure {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	for name, c := range map[string]struct {
		set     string
		desired int
		failure string
	}{
		"default": {"{}", 1, ""},
		"none":    {"{spec: {replicas: 0}}", 0, ""},
		"fails": {`{status: {conditions: [{type: Other, status: "True", message: x}, {type: ReplicaFailure, status: "True", message: quota}]}}`,
			1, "pods cannot be created: quota"},
		"failed": {`{status: {conditions: [{type: ReplicaFailure, status: "False", message: quota}]}}`, 1, ""},
	} {
		set := &appsv1.ReplicaSet{}
		must(t, yaml.UnmarshalStrict([]byte(c.set), set))
		if r, err := readReplicaSet(set); err != nil || r.desired != c.desired || r.failure != c.failure {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := reading(readReplicaSet)(&corev1.Pod{}); err == nil {
		t.Error("a pod is read as a ReplicaSet")
	}
	// A ReplicaSet's template has the Deployment's labels and the label pod-template-hash.
	labelled := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a", rollout.LabelPodHash: "x"}}}
	plain := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}}
	one, err := templateDigest(labelled)
	two, err2 := templateDigest(plain)
	if err != nil || err2 != nil || one != two || len(one) != 32 || labelled.Labels[rollout.LabelPodHash] != "x" {
		t.Errorf("%q and %q, %v, %v; labels %v", one, two, err, err2, labelled.Labels)
	}
}

// TestOverlaid checks how the content after an apply is computed without the API server. Fields that only the live object has stay. A list
// of another length is replaced.
func TestOverlaid(t *testing.T) {
	parsed := func(text string) (value any) {
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	for name, c := range map[string]struct{ live, desired, want string }{
		"a field":       {"{a: 1, b: 2}", "{a: 3}", "{a: 3, b: 2}"},
		"false":         {"{a: 1, b: true}", "{b: false, c: false}", "{a: 1, b: false}"},
		"a new map":     {"{a: 1}", "{b: {c: 1}}", "{a: 1, b: {c: 1}}"},
		"another type":  {"{a: [1]}", "{a: {b: 1}}", "{a: {b: 1}}"},
		"a list":        {"[{port: 80, protocol: TCP}, 1]", "[{port: 81}, 1]", "[{port: 81, protocol: TCP}, 1]"},
		"a longer list": {"[{port: 80, protocol: TCP}]", "[{port: 80}, {port: 81}]", "[{port: 80}, {port: 81}]"},
	} {
		live := parsed(c.live)
		compare.CheckNamed(t, name, parsed(c.want), overlaid(live, parsed(c.desired)))
		compare.CheckNamed(t, name+": the live object", parsed(c.live), live)
	}
}
