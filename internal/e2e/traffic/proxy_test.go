package traffic

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/proxytest"
)

// twoVersions has a Deployment and a Service for each version of a program.
func twoVersions() string {
	text := ""
	for _, version := range []string{"v1", "v2"} {
		text += fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop-%[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop, version: %[1]s}}
  template:
    metadata: {labels: {app: shop, version: %[1]s}}
    spec: {containers: [{name: shop, image: "shop:%[1]s", ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop-%[1]s}
spec:
  selector: {app: shop, version: %[1]s}
  ports: [{port: 80, targetPort: 8080}]
`, version)
	}
	return text
}

func httpRoute(host string, v2 int) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: %s, namespace: %s}]
  hostnames: [%s]
  rules:
  - backendRefs:
    - {name: shop-v1, port: 80, weight: %d}
    - {name: shop-v2, port: 80, weight: %d}
`, proxytest.GatewayName, proxytest.GatewayNamespace, host, 100-v2, v2)
}

func traefikService(host string, v2 int) string {
	return fmt.Sprintf(`
apiVersion: traefik.io/v1alpha1
kind: TraefikService
metadata: {name: shop}
spec:
  weighted:
    services:
    - {name: shop-v1, port: 80, weight: %d}
    - {name: shop-v2, port: 80, weight: %d}
---
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {name: shop}
spec:
  entryPoints: [crd]
  routes:
  - match: Host("%s")
    kind: Rule
    services: [{name: shop, kind: TraefikService}]
`, 100-v2, v2, host)
}

func canaryIngress(host string, v2 int) string {
	text := ""
	for name, annotations := range map[string]string{
		"shop-v1": "{}",
		"shop-v2": fmt.Sprintf(`{nginx.ingress.kubernetes.io/canary: "true", nginx.ingress.kubernetes.io/canary-weight: "%d"}`, v2),
	} {
		text += fmt.Sprintf(`---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %[1]s, annotations: %[2]s}
spec:
  ingressClassName: nginx
  rules:
  - host: %[3]s
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: %[1]s, port: {number: 80}}}}]}
`, name, annotations, host)
	}
	return text
}

// TestWeights splits traffic with each of the providers, and changes the weights under load without a failed request.
func TestWeights(t *testing.T) {
	w := proxytest.Start(t)
	for name, way := range map[string]struct {
		url   string
		route func(host string, v2 int) string
	}{
		"gateway": {w.GatewayURL, httpRoute},
		"crd":     {w.CRDURL, traefikService},
		"nginx":   {w.NginxURL, canaryIngress},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := w.Namespace(t)
			host := ns + ".test"
			w.Apply(t, ns, twoVersions())
			w.AwaitReady(t, ns, "shop-v1", "shop-v2")
			w.Apply(t, ns, way.route(host, 20))
			user := proxytest.Request{URL: way.url + "/any", Host: host}
			proxytest.AwaitVersions(t, timeout, user, "v1", "v2")

			began := time.Now()
			load := proxytest.StartLoad(t, 100, proxytest.Always(user))
			time.Sleep(4 * time.Second)
			changed := time.Now()
			w.Apply(t, ns, way.route(host, 100))
			time.Sleep(3 * time.Second)

			results := load.Stop()
			results.WantNoFailure(t, "while the weights change")
			before := results.Between(began, changed)
			before.WantShare(t, "with weights 80 and 20", "v2", 0.2)
			if pods := before.Pods(); len(pods) != 4 {
				t.Errorf("before the change the pods %v answered, want all four", pods)
			}
			took, ok := results.Until(changed, "v2", 1, 50)
			if !ok {
				t.Fatalf("after the change to 0 and 100: %v", results.Between(changed, time.Now()).Versions())
			}
			results.Between(changed.Add(took), time.Now()).WantShare(t, "with weights 0 and 100", "v2", 1)
			t.Logf("%d requests, median %s, 99 %% within %s; the change took %s", len(results),
				results.Latency(0.5).Round(10*time.Microsecond), results.Latency(0.99).Round(10*time.Microsecond), took.Round(time.Millisecond))
		})
	}
}

// TestReadinessIsRecorded checks, without the proxy, that results show requests to an unready pod. Other tests depend on these results.
func TestReadinessIsRecorded(t *testing.T) {
	t.Parallel()
	w := proxytest.Start(t)
	ns := w.Namespace(t)
	w.Apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: shop}
spec: {containers: [{name: shop, image: "shop:v1-neverready", ports: [{containerPort: 8080}]}]}
`)
	pod := proxytest.Request{URL: "http://" + w.PodIP(t, ns, "shop") + ":8080/"}
	proxytest.Await(t, timeout, pod, func(r proxytest.Result) bool { return r.Pod == "shop" })
	load := proxytest.StartLoad(t, 100, proxytest.Always(pod))
	time.Sleep(200 * time.Millisecond)
	if results := load.Stop(); len(results) < 10 || len(results.Unready()) != len(results) {
		t.Errorf("%d of %d requests came to a pod that was not ready, want all", len(results.Unready()), len(results))
	}
}

// TestFailuresAreRecorded checks that requests without a route, server or address are recorded as failures.
func TestFailuresAreRecorded(t *testing.T) {
	t.Parallel()
	w := proxytest.Start(t)
	for name, user := range map[string]proxytest.Request{
		"no route":   {URL: w.CRDURL, Host: "nobody.test"},
		"no server":  {URL: "http://127.0.0.1:1"},
		"no address": {URL: "http://10.244.255.254:8080"},
	} {
		load := proxytest.StartLoad(t, 100, proxytest.Always(user))
		time.Sleep(100 * time.Millisecond)
		if results := load.Stop(); len(results) < 5 || len(results.Failures()) != len(results) {
			t.Errorf("%s: %d of %d requests failed, want all", name, len(results.Failures()), len(results))
		}
	}
}
