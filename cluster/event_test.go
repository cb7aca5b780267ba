package cluster_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
)

// eventsOf returns the events since 12:00:30.5 that a client reads from an API server with the given response.
func eventsOf(t *testing.T, code int, answer any) ([]cluster.Event, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		compare.CheckNamed(t, "the request", "GET /api/v1/namespaces/shop/events", r.Method+" "+r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		must(t, json.NewEncoder(w).Encode(answer))
	}))
	t.Cleanup(server.Close)
	client, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{})
	must(t, err)
	return cluster.EventsOf(t.Context(), client, "shop", time.Date(2026, 1, 2, 12, 0, 30, 500_000_000, time.UTC))
}

// TestEvents checks which events are returned, and their times. The two event APIs store times in different fields.
func TestEvents(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 12, 0, second, 0, time.UTC) }
	micro := func(second int) metav1.MicroTime { return metav1.NewMicroTime(at(second)) }
	for name, c := range map[string]struct {
		e    corev1.Event
		want []cluster.Event
	}{
		"of the core API": {corev1.Event{FirstTimestamp: metav1.NewTime(at(1)), LastTimestamp: metav1.NewTime(at(40)), Count: 3},
			[]cluster.Event{{At: at(40), Count: 3}}},
		"of events.k8s.io": {corev1.Event{EventTime: micro(50)}, []cluster.Event{{At: at(50), Count: 1}}},
		"of a series": {corev1.Event{EventTime: micro(10), Series: &corev1.EventSeries{Count: 7, LastObservedTime: micro(55)}},
			[]cluster.Event{{At: at(55), Count: 7}}},
		"in the second of the start": {corev1.Event{LastTimestamp: metav1.NewTime(at(30))}, []cluster.Event{{At: at(30), Count: 1}}},
		"too old":                    {corev1.Event{EventTime: micro(29), LastTimestamp: metav1.NewTime(at(29))}, nil},
		"of gitrollout":              {corev1.Event{EventTime: micro(50), ReportingController: "gitrollout.dev/reconciler"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.e.Type, c.e.Reason, c.e.Message = "Warning", "BackOff", "Back-off\n  pulling image"
			c.e.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-0"}
			for i := range c.want {
				c.want[i].Type, c.want[i].Reason = "Warning", "BackOff"
				c.want[i].Object, c.want[i].Text = "Pod shop/web-0", "Back-off pulling image"
			}
			got, err := eventsOf(t, http.StatusOK, corev1.EventList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Items: []corev1.Event{c.e}})
			must(t, err)
			compare.Check(t, c.want, got)
		})
	}
}

// TestEventsWithoutTheRight checks that the error has the API server's message and names the missing right.
func TestEventsWithoutTheRight(t *testing.T) {
	const says = `events is forbidden: User "ann" cannot list resource "events" in API group "" in the namespace "shop"`
	_, err := eventsOf(t, http.StatusForbidden, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: says})
	compare.CheckNamed(t, "the right is missing", true, cluster.IsForbidden(err))
	compare.Check(t, "Namespace shop: "+says+"; allow this user to list events, as the ClusterRole view does", err.Error())
}
