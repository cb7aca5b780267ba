package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
)

var created = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// answers maps a request's path to the API server's answer. Paths without an answer are forbidden.
type answers map[string]any

func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, allowed := a[r.URL.Path]
	if text, is := answer.(string); is {
		_, _ = w.Write([]byte(text + r.URL.Query().Get("tailLines") + " lines of " + r.URL.Query().Get("container") + "\n"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !allowed {
		w.WriteHeader(http.StatusForbidden)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "no right to " + r.URL.Path}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// TestPod checks the events and the log lines on a pod's page. Data that cannot be read is absent, and the reason is given.
func TestPod(t *testing.T) {
	about := func(name, reason string, at time.Time) corev1.Event {
		return corev1.Event{Reason: reason, Type: "Warning", LastTimestamp: metav1.NewTime(at), Count: 2, Message: "says the test",
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: name}}
	}
	events := corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Items: []corev1.Event{
		about("web-0", "BackOff", created.Add(time.Minute)), about("web-0", "Pulled", created.Add(time.Second)),
		about("web-01", "Foreign", created.Add(time.Second)), about("web-0", "OfAnOlderPod", created.Add(-time.Minute))}}
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "web-0",
		Namespace: "shop", UID: "uid-0", Labels: map[string]string{"pod-template-hash": "75f5"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}, {Name: "proxy"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "web", ContainerID: "run-1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: "proxy", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}}}
	const list, one, log = "/api/v1/namespaces/shop/events", "/api/v1/namespaces/shop/pods/web-0", "/api/v1/namespaces/shop/pods/web-0/log"
	said := []status.Transition{
		{At: created.Add(time.Second), Type: "Warning", Reason: "Pulled", Object: "Pod shop/web-0", Text: "says the test", Count: 2},
		{At: created.Add(time.Minute), Type: "Warning", Reason: "BackOff", Object: "Pod shop/web-0", Text: "says the test", Count: 2}}
	waits := "proxy has no log yet: ErrImagePull"
	for name, c := range map[string]struct {
		server answers
		ready  bool
		want   dashboard.Pod
	}{
		"not ready": {answers{list: events, one: pod, log: "2026-01-02T12:00:01Z \x1b[31mpanic\n\n"}, false, dashboard.Pod{Events: said,
			Notes: []string{waits}, Logs: []dashboard.Object{{Name: "web", Text: "[31mpanic\n\n20 lines of web\n"}}}},
		"ready": {answers{list: events}, true, dashboard.Pod{Events: said}},
		"without rights": {answers{}, false, dashboard.Pod{Notes: []string{
			"not observed: Namespace shop: no right to " + list + "; allow this user to list events, as the ClusterRole view does",
			"not observed: Pod shop/web-0: no right to " + one + "; allow this user to get pods, as the ClusterRole view does"}}},
		"without the right to logs": {answers{list: events, one: pod}, false, dashboard.Pod{Events: said, Notes: []string{
			"not observed: Pod shop/web-0: no right to " + log + "; allow this user to get pods/log, as the ClusterRole view does", waits}}},
	} {
		server := httptest.NewServer(c.server)
		client, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{})
		must(t, err)
		r := &console.Records{}
		r.Watch(client, nil, "")
		got := r.Pod(t.Context(), status.VersionPod{Namespace: "shop", PodHash: "75f5",
			Pod: status.Pod{Name: "web-0", UID: "uid-0", Ready: c.ready, Created: created}})
		compare.CheckNamed(t, name, c.want, got)
		server.Close()
	}
	r := &console.Records{}
	unseen := func(why string) {
		t.Helper()
		got := strings.Join(r.Pod(t.Context(), status.VersionPod{}).Notes, "")
		compare.CheckNamed(t, "without a cluster", "not observed: "+why, got)
	}
	unseen("the cluster has not been read yet")
	r.Watch(nil, nil, "it is unreachable")
	unseen("it is unreachable")
}
