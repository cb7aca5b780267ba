package plan

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

var fixed = map[string][]string{
	"apps/Deployment": {"spec.selector"},
	"apps/StatefulSet": {"spec.selector", "spec.serviceName", "spec.volumeClaimTemplates",
		"spec.podManagementPolicy"},
	"apps/DaemonSet":         {"spec.selector"},
	"apps/ReplicaSet":        {"spec.selector"},
	"batch/Job":              {"spec.selector", "spec.template", "spec.completionMode"},
	"/Service":               {"spec.clusterIP"},
	"/Secret":                {"type"},
	"/PersistentVolumeClaim": {"spec.accessModes", "spec.storageClassName", "spec.volumeName", "spec.selector"},

	"storage.k8s.io/StorageClass":                  {"provisioner", "parameters", "reclaimPolicy"},
	"rbac.authorization.k8s.io/RoleBinding":        {"roleRef"},
	"rbac.authorization.k8s.io/ClusterRoleBinding": {"roleRef"},
}

func (c comparison) immutable(ref rollout.Ref, was, now rollout.Object) (all []Note) {
	if hook.Is(was) && hook.Is(now) {
		return nil // each run creates a new Job
	}
	for _, field := range fixed[ref.Group+"/"+ref.Kind] {
		before, had := at(was, field)
		after, has := at(now, field)
		if !had || !has || reflect.DeepEqual(before, after) {
			continue
		}
		all = append(all, Note{
			Level: Refused, Code: "Immutable", Object: ref.String(),
			Message: fmt.Sprintf("%s of %s %s cannot be changed: the API server refuses the change", field, ref.Kind, ref.Name),
			Fix:     fmt.Sprintf("leave %s as it is, or give the %s a new name and remove the old one later", field, ref.Kind),
		})
	}
	if is, _ := was["immutable"].(bool); is && isData(ref) && !(reflect.DeepEqual(was["data"], now["data"]) &&
		reflect.DeepEqual(was["binaryData"], now["binaryData"]) && reflect.DeepEqual(was["stringData"], now["stringData"])) {
		all = append(all, Note{
			Level: Refused, Code: "Immutable", Object: ref.String(),
			Message: fmt.Sprintf("%s %s is immutable: the API server refuses new content", ref.Kind, ref.Name),
			Fix:     "use a configMapGenerator or secretGenerator, which gives new content a new name",
		})
	}
	return all
}

func renumbered(ref rollout.Ref, was, now rollout.Object) []Note {
	first := func(o rollout.Object) any { return cmp.Or(o.Map("spec", "ordinals")["start"], any(int64(0))) }
	from, to := first(was), first(now)
	if ref.Group != "apps" || from == to {
		return nil
	}
	return []Note{{
		Level: AtOnce, Code: "Ordinals", Object: ref.String(),
		Message: fmt.Sprintf("%s %s numbers its pods from %v instead of %v: pods outside of the new ordinals are deleted, "+
			"and missing pods are created with separate volumes, at any step of a release", ref.Kind, ref.Name, to, from),
		Fix: "do not change spec.ordinals in a release; change it in a separate commit",
	}}
}

// unset has the API server's default of each immutable field (apps, batch, core, storage). It omits fields whose
// default the API server computes.
var unset = map[string]any{
	"spec.podManagementPolicy": "OrderedReady", "spec.serviceName": "", "spec.volumeClaimTemplates": nil,
	"spec.completionMode": "NonIndexed", "type": "Opaque", "parameters": nil, "reclaimPolicy": "Delete",
}

func at(o rollout.Object, field string) (any, bool) {
	// If ok is false, only the API server knows the value.
	v, ok := rollout.In(o, field), true
	if list, is := v.([]any); is && len(list) == 0 || v == nil {
		v, ok = unset[field]
	}
	return v, ok
}

func madeOnce(base, head *rollout.Render) (all []Note) {
	before := map[rollout.Ref]rollout.Object{}
	for _, o := range base.Objects {
		before[o.Ref()] = o
	}
	for _, o := range head.Objects {
		was := before[o.Ref()]
		if !o.CreateOnly() || was == nil || !was.CreateOnly() {
			continue
		}
		had, has := keysOf(was), keysOf(o)
		more := slices.DeleteFunc(slices.Clone(has), func(k string) bool { return slices.Contains(had, k) })
		if len(more) == 0 {
			continue
		}
		all = append(all, Note{Level: Hint, Code: "MadeOnce", Object: o.Ref().String(),
			Message: fmt.Sprintf("Secret %s is created once: if it exists in the cluster already, it does not get the keys %s",
				o.Name(), strings.Join(more, ", ")),
			Fix: "add the keys to the Secret by hand, or delete the Secret to create it again"})
	}
	return all
}

func keysOf(o rollout.Object) []string {
	keys := map[string]any{}
	maps.Copy(keys, o.Map("data"))
	maps.Copy(keys, o.Map("stringData"))
	return slices.Sorted(maps.Keys(keys))
}
