package hook

import (
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Needs returns the objects to apply before a hook's Job: hooks of the given time that are no Jobs, and objects that
// the Job references. It omits a referenced object that the app already had.
func Needs(
	h Hook, when rollout.HookWhen, r Release, objects []rollout.Object, had map[rollout.Ref]rollout.Object,
) (needs []rollout.Object) {
	named := map[rollout.Ref]bool{}
	for _, o := range Named(h, objects) {
		named[o.Ref()] = true
	}
	for _, o := range objects {
		_, is := had[o.Ref()]
		if named[o.Ref()] && !is || GoesWith(o, when, r) {
			needs = append(needs, o)
		}
	}
	return needs
}

// Named returns the Job's Namespace, and the objects that the Job's pods reference.
func Named(h Hook, objects []rollout.Object) []rollout.Object {
	named := map[rollout.Ref]bool{{Kind: "Namespace", Name: h.Object.Namespace()}: true}
	EachReference(h.Object.Map("spec", "template", "spec"), func(_, kind, name string) {
		named[rollout.Ref{Kind: kind, Namespace: h.Object.Namespace(), Name: name}] = true
	})
	return slices.DeleteFunc(slices.Clone(objects), func(o rollout.Object) bool { return !named[o.Ref()] })
}

// GoesWith reports whether an object is a hook of the given time, but no Job.
func GoesWith(o rollout.Object, when rollout.HookWhen, r Release) bool {
	return !isJob(o) && len(At([]rollout.Object{o}, when, r)) > 0
}

var fields = map[string][2]string{
	"configMap": {"ConfigMap", "name"}, "configMapRef": {"ConfigMap", "name"}, "configMapKeyRef": {"ConfigMap", "name"},
	"secretRef": {"Secret", "name"}, "secretKeyRef": {"Secret", "name"},
	"persistentVolumeClaim": {"PersistentVolumeClaim", "claimName"},
}

// EachReference calls f for each reference in a pod spec, sorted by field name.
func EachReference(v any, f func(field, kind, name string)) {
	add := func(field, kind string, name any) {
		if text, is := name.(string); is && text != "" {
			f(field, kind, text)
		}
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			EachReference(e, f)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			m, _ := v[key].(map[string]any)
			switch named, is := fields[key]; {
			case is:
				add(key, named[0], m[named[1]])
			case key == "secret": // secretName in volumes, name in projected volumes
				add(key, "Secret", m["secretName"])
				add(key, "Secret", m["name"])
			case key == "serviceAccountName":
				add(key, "ServiceAccount", v[key])
			case key == "imagePullSecrets":
				for _, secret := range rollout.Object(v).Maps(key) {
					add(key, "Secret", secret["name"])
				}
			}
			EachReference(v[key], f)
		}
	}
}
