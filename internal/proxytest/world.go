package proxytest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"gitrollout.dev/gitrollout/internal/crds"
	"gitrollout.dev/gitrollout/internal/testbin"
	"gitrollout.dev/gitrollout/internal/testcluster"
)

// GatewayName and GatewayNamespace identify the Gateway for the parentRefs of HTTPRoutes. IngressRoutes must name the
// entry point "crd", and Ingresses the class "nginx".
const (
	GatewayName      = "public"
	GatewayNamespace = "gateways"
)

// fixtures are the objects that all routes need.
const fixtures = `
apiVersion: v1
kind: Namespace
metadata: {name: gateways}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: traefik}
spec: {controllerName: traefik.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: gateways}
spec:
  gatewayClassName: traefik
  listeners:
  - name: http
    port: 8000
    protocol: HTTP
    allowedRoutes: {namespaces: {from: All}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
`

// World is a cluster with its proxy. Tests use different namespaces and hosts.
type World struct {
	*testcluster.Cluster
	GatewayURL string // address of the Gateway's HTTPRoutes
	CRDURL     string // address of IngressRoutes with entry point crd
	NginxURL   string // address of Ingresses with class nginx

	client dynamic.Interface
	mapper meta.RESTMapper
	proxy  *testbin.Process
	stop   func() // stops the cluster
}

// shared is the World of all tests in the package, because a start takes about five seconds. Main stops it.
var shared struct {
	sync.Once
	world *World
	err   error
}

// Start returns the World of the test program. The first call starts the World. If the test fails, Traefik's output
// since the test's call of Start is logged.
func Start(tb testing.TB) *World {
	tb.Helper()
	shared.Do(func() { shared.world, shared.err = newWorld() })
	if shared.err != nil {
		tb.Fatalf("proxytest: %v", shared.err)
	}
	said := len(shared.world.proxy.String())
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("traefik's log:\n%s", shared.world.proxy.String()[said:])
		}
	})
	return shared.world
}

func closeShared() {
	if w := shared.world; w != nil {
		w.proxy.Stop()
		w.stop()
	}
}

func newWorld() (*World, error) {
	cluster, stop, err := testcluster.Launch("--bind-pod-ips")
	if err != nil {
		return nil, err
	}
	w := &World{Cluster: cluster, GatewayURL: gatewayURL, CRDURL: crdURL, NginxURL: nginxURL, stop: stop}
	if err := w.setUp(); err != nil {
		stop()
		return nil, err
	}
	return w, nil
}

func (w *World) setUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := crds.Install(ctx, w.Config, crds.GatewayAPI, crds.Traefik); err != nil {
		return err
	}
	var err error
	if w.client, err = dynamic.NewForConfig(w.Config); err != nil {
		return fmt.Errorf("dynamic client: %w", err)
	}
	w.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(w.Kube.Discovery()))
	if err := w.apply(ctx, "", fixtures); err != nil {
		return err
	}
	if w.proxy, err = startTraefik(w.Kubeconfig); err != nil {
		return err
	}
	if err := w.awaitGateway(ctx); err != nil {
		w.proxy.Stop()
		return fmt.Errorf("%w; traefik's log:\n%s", err, w.proxy)
	}
	return nil
}

// awaitGateway returns when Traefik has set the Gateway's condition Programmed.
func (w *World) awaitGateway(ctx context.Context) error {
	for {
		gateway, err := w.find(ctx, "gateway.networking.k8s.io/v1", "Gateway", GatewayNamespace, GatewayName)
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(gateway.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "Programmed" && c["status"] == "True" {
				return nil
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the Gateway is not programmed: %v", gateway.Object["status"])
		}
	}
}

// Apply applies YAML documents. Objects without a namespace get the given namespace.
func (w *World) Apply(tb testing.TB, namespace, documents string) {
	tb.Helper()
	if err := w.apply(tb.Context(), namespace, documents); err != nil {
		tb.Fatal(err)
	}
}

// Delete deletes one object.
func (w *World) Delete(tb testing.TB, apiVersion, kind, namespace, name string) {
	tb.Helper()
	resource, err := w.resource(apiVersion, kind, namespace)
	if err == nil {
		err = resource.Delete(tb.Context(), name, metav1.DeleteOptions{})
	}
	if err != nil {
		tb.Fatalf("delete %s %s/%s: %v", kind, namespace, name, err)
	}
}

// Object returns one object in the cluster.
func (w *World) Object(tb testing.TB, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	tb.Helper()
	object, err := w.find(tb.Context(), apiVersion, kind, namespace, name)
	if err != nil {
		tb.Fatal(err)
	}
	return object
}

func (w *World) find(ctx context.Context, apiVersion, kind, namespace, name string) (*unstructured.Unstructured, error) {
	resource, err := w.resource(apiVersion, kind, namespace)
	if err != nil {
		return nil, err
	}
	object, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s %s/%s: %w", kind, namespace, name, err)
	}
	return object, nil
}

func (w *World) apply(ctx context.Context, namespace, documents string) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(documents)), 4096)
	for {
		var u unstructured.Unstructured
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("apply: %w in\n%s", err, documents)
		}
		if len(u.Object) == 0 {
			continue
		}
		in := cmp.Or(u.GetNamespace(), namespace)
		resource, err := w.resource(u.GetAPIVersion(), u.GetKind(), in)
		if err != nil {
			return err
		}
		if _, err := resource.Apply(ctx, u.GetName(), &u, metav1.ApplyOptions{FieldManager: "proxytest", Force: true}); err != nil {
			return fmt.Errorf("apply %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
		}
	}
}

// resource returns the client for one kind, in the given namespace if the kind is namespaced.
func (w *World) resource(apiVersion, kind, namespace string) (dynamic.ResourceInterface, error) {
	of := unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	gvk := of.GroupVersionKind()
	mapping, err := w.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("find kind %s of %s: %w", kind, apiVersion, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return w.client.Resource(mapping.Resource).Namespace(namespace), nil
	}
	return w.client.Resource(mapping.Resource), nil
}
