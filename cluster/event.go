package cluster

import (
	"cmp"
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// EventKind is a Kubernetes Event's type.
type EventKind string

// Normal and Warning are the API's only types.
const (
	Normal  EventKind = "Normal"
	Warning EventKind = "Warning"
)

const reporter = "gitrollout.dev/reconciler"

// Record writes a Kubernetes event. reason and action are in CamelCase. message is one sentence. If the write fails,
// Record only increments Stats.LostEvents, because no decision depends on events.
func (c *Client) Record(ctx context.Context, about rollout.Ref, kind EventKind, reason, action, message string) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	regarding := corev1.ObjectReference{Kind: about.Kind, Namespace: about.Namespace, Name: about.Name}
	if k, ok := c.kinds.watched(about); ok {
		// "kubectl describe" finds events by uid.
		if l, ok := k.get(about); ok {
			regarding.UID, regarding.APIVersion, regarding.ResourceVersion = l.uid, l.apiVersion, l.version
		}
	}
	namespace := cmp.Or(about.Namespace, metav1.NamespaceDefault) // for cluster-scoped objects
	_, err := c.kube.events.Events(namespace).Create(ctx, &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, GenerateName: eventName(about.Name)},
		EventTime:           metav1.NewMicroTime(time.Now()),
		ReportingController: reporter,
		ReportingInstance:   manager,
		Regarding:           regarding,
		Type:                string(kind),
		Reason:              reason,
		Action:              action,
		Note:                cut(message, 1024), // the API server's limit
	}, metav1.CreateOptions{})
	if err != nil {
		c.counts.lostEvents.Add(1)
	}
}

// eventName leaves room for the API server's unique suffix.
func eventName(object string) string { return object[:min(len(object), 200)] + "-" }

func cut(s string, limit int) string { return strings.ToValidUTF8(s[:min(len(s), limit)], "") }

// Event is an event of another controller.
type Event struct {
	At                   time.Time // last occurrence
	Type, Reason, Object string    // Object is a Ref's Title
	Count                int
	Text                 string
}

// EventsOf returns a namespace's events since a time, except gitrollout's events. It reads the core API, because the
// ClusterRole "view" of older clusters lacks events.k8s.io.
func EventsOf(ctx context.Context, c *Client, namespace string, since time.Time) (all []Event, err error) {
	ctx, cancel := context.WithTimeout(quiet(ctx), requestTimeout)
	defer cancel()
	list, err := c.kube.core.Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explainRead(err, rollout.Ref{Kind: "Namespace", Name: namespace}, "list", "events")
	}
	for _, e := range list.Items {
		about := rollout.Ref{Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}
		at, count := rollout.Later(e.EventTime.Time, e.LastTimestamp.Time), max(e.Count, 1) // either may be missing
		if e.Series != nil {
			at, count = rollout.Later(at, e.Series.LastObservedTime.Time), max(count, e.Series.Count)
		}
		if e.ReportingController != reporter && !at.Before(since.Truncate(time.Second)) {
			all = append(all, Event{at.UTC(), e.Type, e.Reason, about.Title(), int(count), rollout.OneLine(e.Message)})
		}
	}
	return all, nil
}
