package nodeagent

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/localcluster/podsim"
)

// get returns the app's response to a GET request.
func get(app *app, path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	app.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer
}

func TestAppSaysWhoItIs(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Image: "shop:v2"}}},
	}
	app := newApp(pod, corev1.PodStatus{PodIP: "10.244.0.1"}, podsim.Behaviour{Version: "v2"})
	answer := get(app, "/any/path")
	var got identity
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatalf("answer %q: %v", answer.Body, err)
	}
	want := identity{Pod: "web-0", Namespace: "shop", Node: "node-1", IP: "10.244.0.1", Image: "shop:v2", Version: "v2"}
	if got != want {
		t.Errorf("identity:\n got %+v\nwant %+v", got, want)
	}
}

// TestAppSaysWhetherItIsReady checks that an unready pod also responds, with X-Ready false.
func TestAppSaysWhetherItIsReady(t *testing.T) {
	app := &app{}
	for _, ready := range []bool{false, true, false} {
		app.setReady(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Ready: ready}}})
		for path, want := range map[string]int{"/": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
			if ready {
				want = http.StatusOK
			}
			answer := get(app, path)
			if got := answer.Header().Get("X-Ready"); got != strconv.FormatBool(ready) || answer.Code != want {
				t.Errorf("%s of a pod whose readiness is %v: %d, X-Ready %q", path, ready, answer.Code, got)
			}
		}
	}
}

func TestAppFailsItsShare(t *testing.T) {
	for _, test := range []struct {
		rate float64
		want int
	}{{0, 0}, {0.05, 5}, {0.5, 50}, {1, 100}} {
		app := &app{behaviour: podsim.Behaviour{FailRate: test.rate}}
		failed := 0
		for range 100 {
			if get(app, "/").Code == http.StatusInternalServerError {
				failed++
			}
		}
		if failed != test.want {
			t.Errorf("rate %v: %d of 100 requests failed, want %d", test.rate, failed, test.want)
		}
	}
}

// TestAppHasMetrics checks that a pod's metrics count the requests, except requests for /metrics.
func TestAppHasMetrics(t *testing.T) {
	app := &app{behaviour: podsim.Behaviour{FailRate: 0.5, Latency: time.Millisecond}}
	if fresh := get(app, "/metrics").Body.String(); strings.Contains(fresh, "500") {
		t.Errorf("nothing has failed, and there is a counter for it:\n%s", fresh)
	}
	for range 4 {
		get(app, "/")
	}
	for range 2 {
		metrics := get(app, "/metrics").Body.String()
		for _, want := range []string{`http_requests_total{code="200"} 2`, `http_requests_total{code="500"} 2`,
			"http_request_duration_seconds_count 4", `bucket{le="0.05"} 4`} {
			if !strings.Contains(metrics, want) {
				t.Errorf("metrics lack %s:\n%s", want, metrics)
			}
		}
	}
}
