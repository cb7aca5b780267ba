package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gitrollout.dev/gitrollout/rollout"
)

func isCRD(ref rollout.Ref) bool {
	return ref.Group == "apiextensions.k8s.io" && ref.Kind == "CustomResourceDefinition"
}

// defines reports whether the object is the CRD of a kind.
func (d *desired) defines(gvk schema.GroupVersionKind) bool {
	if !isCRD(d.ref) {
		return false
	}
	spec, _ := d.object["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	return spec["group"] == gvk.Group && names["kind"] == gvk.Kind
}

// defined reports whether the set itself brings the CRD of an object.
func defined(all []*desired, d *desired) bool {
	for _, other := range all {
		if other.defines(d.gvk) {
			return true
		}
	}
	return false
}

// awaitedOf says why a CRD is not served yet, "" if it is, and for other kinds.
func awaitedOf(ref rollout.Ref, o rollout.Object) string {
	if !isCRD(ref) {
		return ""
	}
	awaited := "is not looked at yet"
	conditions, _ := o.Map("status")["conditions"].([]any)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		switch {
		case condition["type"] == "Established" && condition["status"] == "True":
			return ""
		case condition["type"] == "NamesAccepted" && condition["status"] == "False":
			awaited = rollout.OneLine(fmt.Sprint(condition["message"]))
		}
	}
	return awaited
}

// A CRD is served some 100 ms after it was accepted, when its names are found
// free and its schema is published.
const (
	establishedWithin = 10 * time.Second
	establishedEvery  = 100 * time.Millisecond
)

// awaitEstablished waits until objects of a new CRD can be applied.
func (d *desired) awaitEstablished(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, establishedWithin)
	defer cancel()
	for {
		l, ok := d.kind.live.get(d.kind.key(d.ref))
		if ok && l.awaited == "" {
			return nil
		}
		select {
		case <-time.After(establishedEvery):
		case <-ctx.Done():
			message := "no answer"
			if ok {
				message = l.awaited
			}
			return &Error{Ref: d.ref, Reason: Unavailable, Err: ctx.Err(),
				Msg: fmt.Sprintf("is not established after %s: %s", establishedWithin, message)}
		}
	}
}
