package cluster

import (
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gitrollout.dev/gitrollout/rollout"
)

// healthOf returns health and reason, both "" if healthy.
func healthOf(u *unstructured.Unstructured) (health status.Status, why string) {
	if u.GetDeletionTimestamp() != nil {
		return status.TerminatingStatus, deleting(strings.Join(u.GetFinalizers(), ", "))
	}
	result, err := status.Compute(u)
	if err != nil || result.Status == status.CurrentStatus {
		return "", "" // healthy, or of unknown status
	}
	return result.Status, cut(rollout.OneLine(result.Message), 500)
}

func deleting(finalizers string) string {
	const waits = ", and waits for its finalizers: "
	return strings.TrimSuffix("is being deleted"+waits+finalizers, waits)
}

type troubles map[string]map[rollout.Ref]rollout.Trouble

// note ignores objects of another cluster's app of the same name.
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

func (t troubles) of(app string) []rollout.Trouble {
	return slices.SortedFunc(maps.Values(t[app]), func(a, b rollout.Trouble) int { return a.Ref.Compare(b.Ref) })
}
