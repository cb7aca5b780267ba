package cluster

import (
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gitrollout.dev/gitrollout/rollout"
)

// healthOf says how an object is, "" if it is well, and why it is not.
func healthOf(u *unstructured.Unstructured) (health status.Status, why string) {
	if u.GetDeletionTimestamp() != nil {
		return status.TerminatingStatus, deleting(strings.Join(u.GetFinalizers(), ", "))
	}
	result, err := status.Compute(u)
	if err != nil || result.Status == status.CurrentStatus {
		return "", "" // its status is not as its kind says: nobody can tell
	}
	return result.Status, cut(rollout.OneLine(result.Message), maxWhy)
}

// deleting says why an object is still there that is being deleted.
func deleting(finalizers string) string {
	if finalizers == "" {
		return "is being deleted"
	}
	return "is being deleted, and waits for its finalizers: " + finalizers
}

// maxWhy bounds what is kept of a controller's message, in bytes.
const maxWhy = 500

// troubles are the objects of each app that are not well.
type troubles map[string]map[rollout.Ref]rollout.Trouble

// note takes over what has become of an object. One that was applied for another
// cluster's branch is another app's, though that may have the same name.
func (t troubles) note(was, is *live, cluster string) {
	if was != nil && was.health != "" {
		if delete(t[was.app], was.ref); len(t[was.app]) == 0 {
			delete(t, was.app)
		}
	}
	if is == nil || is.health == "" || is.app == "" || is.cluster != cluster {
		return
	}
	if t[is.app] == nil {
		t[is.app] = map[rollout.Ref]rollout.Trouble{}
	}
	t[is.app][is.ref] = rollout.Trouble{Ref: is.ref, Failed: is.health == status.FailedStatus, Message: is.why}
}

// of returns those of an app, in order; nil for none.
func (t troubles) of(app string) []rollout.Trouble {
	return slices.SortedFunc(maps.Values(t[app]), func(a, b rollout.Trouble) int { return a.Ref.Compare(b.Ref) })
}
