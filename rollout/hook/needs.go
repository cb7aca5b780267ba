package hook

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Needs returns the objects to create before a hook's Job: the objects that the Job references, and other hook objects
// of the same time. It omits referenced objects that are in the map had.
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

// Named returns the objects that a Job's pods reference, and the Namespace of the Job.
func Named(h Hook, objects []rollout.Object) []rollout.Object {
	named := map[rollout.Ref]bool{{Kind: "Namespace", Name: h.Object.Namespace()}: true}
	names(h.Object.Map("spec", "template", "spec"), h.Object.Namespace(), named)
	return slices.DeleteFunc(slices.Clone(objects), func(o rollout.Object) bool { return !named[o.Ref()] })
}

// GoesWith reports whether an object is a hook for the given time, but not a Job. Such objects are applied before Jobs.
func GoesWith(o rollout.Object, when rollout.HookWhen, r Release) bool {
	return !isJob(o) && len(At([]rollout.Object{o}, when, r)) > 0
}

// fields lists the fields of a pod spec that reference an object, with the object's kind and the field with its name.
var fields = map[string][2]string{
	"configMap": {"ConfigMap", "name"}, "configMapRef": {"ConfigMap", "name"}, "configMapKeyRef": {"ConfigMap", "name"},
	"secretRef": {"Secret", "name"}, "secretKeyRef": {"Secret", "name"},
	"persistentVolumeClaim": {"PersistentVolumeClaim", "claimName"},
}

func names(v any, namespace string, into map[rollout.Ref]bool) {
	add := func(kind string, name any) {
		if text, is := name.(string); is && text != "" {
			into[rollout.Ref{Kind: kind, Namespace: namespace, Name: text}] = true
		}
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			names(e, namespace, into)
		}
	case map[string]any:
		for key, e := range v {
			m, _ := e.(map[string]any)
			switch f, is := fields[key]; {
			case is:
				add(f[0], m[f[1]])
			case key == "secret": // a volume has the field secretName, and a projected source has the field name
				add("Secret", m["secretName"])
				add("Secret", m["name"])
			case key == "serviceAccountName":
				add("ServiceAccount", e)
			case key == "imagePullSecrets":
				list, _ := e.([]any)
				for _, s := range list {
					if m, is := s.(map[string]any); is {
						add("Secret", m["name"])
					}
				}
			}
			names(e, namespace, into)
		}
	}
}
