package nodeagent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gitrollout.dev/gitrollout/internal/localcluster/podsim"
)

// app is the HTTP handler of a simulated pod. It returns the pod's identity, with the configured latency and share of failures.
type app struct {
	identity  identity
	behaviour podsim.Behaviour
	ready     atomic.Bool
	requests  atomic.Int64
	failures  atomic.Int64
	slow      atomic.Int64 // sum of the latencies of all requests, in microseconds
}

// identity is the response of a pod.
type identity struct {
	Pod       string `json:"pod"`
	Namespace string `json:"namespace"`
	Node      string `json:"node"`
	IP        string `json:"ip"`
	Image     string `json:"image"`
	Version   string `json:"version"`
}

func newApp(pod *corev1.Pod, status corev1.PodStatus, behaviour podsim.Behaviour) *app {
	return &app{behaviour: behaviour, identity: identity{
		Pod: pod.Name, Namespace: pod.Namespace, Node: pod.Spec.NodeName, IP: status.PodIP,
		Image: pod.Spec.Containers[0].Image, Version: behaviour.Version,
	}}
}

func (a *app) setReady(status corev1.PodStatus) {
	a.ready.Store(status.ContainerStatuses[0].Ready)
}

// ServeHTTP answers /readyz with the pod's readiness, /metrics with metrics, and any other path with the pod's
// identity. The response's header X-Ready is the readiness when the request arrived. For tests of routing, the response
// has the request's X-Canary. A terminating pod still answers, but its X-Ready does not change.
func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ready := a.ready.Load()
	w.Header().Set("X-Ready", strconv.FormatBool(ready))
	if r.URL.Path == "/readyz" {
		if !ready {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
		return
	}
	if r.URL.Path == "/metrics" {
		a.metrics(w)
		return
	}
	select {
	case <-time.After(a.behaviour.Latency):
	case <-r.Context().Done():
		return
	}
	body, err := json.Marshal(a.identity)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Pod", a.identity.Pod)
	w.Header().Set("X-Version", a.identity.Version)
	w.Header().Set("X-Canary", r.Header.Get("X-Canary"))
	a.slow.Add(a.behaviour.Latency.Microseconds())
	if a.fails(a.requests.Add(1)) {
		a.failures.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}
	w.Write(append(body, '\n'))
}

// slowness has the upper bounds of the buckets of the histogram http_request_duration_seconds.
var slowness = []float64{0.05, 0.1, 0.25, 0.5, 1}

// metrics returns typical metrics in Prometheus's text format. As in most libraries, the counter of failures
// does not exist before the first failure.
func (a *app) metrics(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	all, failed := a.requests.Load(), a.failures.Load()
	fmt.Fprintf(w, "# TYPE http_requests_total counter\nhttp_requests_total{code=\"200\"} %d\n", all-failed)
	if failed > 0 {
		fmt.Fprintf(w, "http_requests_total{code=\"500\"} %d\n", failed)
	}
	fmt.Fprint(w, "# TYPE http_request_duration_seconds histogram\n")
	took := a.behaviour.Latency.Seconds()
	for _, bound := range slowness {
		within := all
		if took > bound {
			within = 0
		}
		fmt.Fprintf(w, "http_request_duration_seconds_bucket{le=\"%g\"} %d\n", bound, within)
	}
	fmt.Fprintf(w, "http_request_duration_seconds_bucket{le=\"+Inf\"} %d\n"+
		"http_request_duration_seconds_sum %g\nhttp_request_duration_seconds_count %d\n", all, float64(a.slow.Load())/1e6, all)
}

// fails reports whether a request, counted from 1, fails. Failures are spread evenly, so that tests do not depend on chance.
func (a *app) fails(request int64) bool {
	failedBy := func(n int64) int64 { return int64(float64(n)*a.behaviour.FailRate + 0.5) }
	return failedBy(request) > failedBy(request-1)
}
