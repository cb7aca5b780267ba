package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"gitrollout.dev/gitrollout/rollout"
)

func isCRD(ref rollout.Ref) bool {
	return ref.Group == "apiextensions.k8s.io" && ref.Kind == "CustomResourceDefinition"
}

func defined(all []*desired, d *desired) bool {
	return slices.ContainsFunc(all, func(other *desired) bool {
		o := rollout.Object(other.object)
		return isCRD(other.ref) && o.Map("spec")["group"] == d.gvk.Group && o.Map("spec", "names")["kind"] == d.gvk.Kind
	})
}

func awaitedOf(ref rollout.Ref, o rollout.Object) string {
	if !isCRD(ref) {
		return ""
	}
	if _, is := condition(o, "Established", "True"); is {
		return ""
	}
	if message, is := condition(o, "NamesAccepted", "False"); is {
		return message
	}
	return "the API server has not checked it yet"
}

func condition(o rollout.Object, kind, status string) (message string, is bool) {
	for _, c := range o.Maps("status", "conditions") {
		if c["type"] == kind && c["status"] == status {
			message, _ = c["message"].(string)
			return rollout.OneLine(message), true
		}
	}
	return "", false
}

const establishedWithin = 10 * time.Second

func (d *desired) awaitEstablished(ctx context.Context) error {
	message := "no answer"
	look := func(context.Context) (bool, error) {
		l, ok := d.kind.get(d.ref)
		if ok {
			message = l.awaited
		}
		return ok && l.awaited == "", nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, establishedWithin, true, look); err != nil {
		return &Error{Ref: d.ref, Reason: Unavailable, Err: err,
			Msg: fmt.Sprintf("is not established after %s: %s", establishedWithin, message)}
	}
	return nil
}
