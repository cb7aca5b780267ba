package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Object is a Kubernetes object as JSON values (map[string]any, []any, string, bool, int64, float64, nil). A Render's
// objects are shared: change only copies.
type Object map[string]any

// Ref names an object in a cluster. The text form is group/Kind/namespace/name, as core/Service/shop/checkout; "core"
// is the empty group, "-" no namespace.
type Ref struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// Ref returns the object's reference.
func (o Object) Ref() Ref {
	version := o.APIVersion()
	group := version[:max(0, strings.IndexByte(version, '/'))]
	return Ref{Group: group, Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()}
}

// APIVersion returns "apps/v1" or, in the core group, "v1".
func (o Object) APIVersion() string { return text(o, "apiVersion") }

// Kind returns the object's kind.
func (o Object) Kind() string { return text(o, "kind") }

// Name returns metadata.name.
func (o Object) Name() string { return text(o.Map("metadata"), "name") }

// Namespace returns metadata.namespace, or "".
func (o Object) Namespace() string { return text(o.Map("metadata"), "namespace") }

// Annotation returns an annotation, or "".
func (o Object) Annotation(key string) string { return text(o.Map("metadata", "annotations"), key) }

// Label returns a label, or "".
func (o Object) Label(key string) string { return text(o.Map("metadata", "labels"), key) }

// IsSecret reports whether the object is a Secret.
func (o Object) IsSecret() bool { return o.Kind() == "Secret" && o.APIVersion() == "v1" }

// CreateOnly reports whether the object is a Secret that gitrollout never updates.
func (o Object) CreateOnly() bool {
	return o.IsSecret() && o.Annotation(AnnotationCreateOnly) == "true"
}

// Keeps returns the annotation that prevents pruning, as "key: value", or "".
func (o Object) Keeps() string {
	for _, keeps := range [][2]string{{AnnotationPrune, "disabled"}, {AnnotationCreateOnly, "true"}} {
		if o.Annotation(keeps[0]) == keeps[1] {
			return keeps[0] + ": " + keeps[1]
		}
	}
	return ""
}

// Told returns the object for comparison and display. It reduces a CreateOnly object to its identity, because the data
// is often random.
func (o Object) Told() Object {
	if !o.CreateOnly() {
		return o
	}
	metadata := map[string]any{"name": o.Name(), "annotations": map[string]any{AnnotationCreateOnly: "true"}}
	if o.Namespace() != "" {
		metadata["namespace"] = o.Namespace()
	}
	return Object{"apiVersion": o.APIVersion(), "kind": o.Kind(), "metadata": metadata}
}

// Map returns the map at a path, or nil.
func (o Object) Map(path ...string) map[string]any {
	m := map[string]any(o)
	for _, key := range path {
		next, ok := m[key].(map[string]any)
		if !ok {
			return nil
		}
		m = next
	}
	return m
}

// Maps returns the maps in the list at a path.
func (o Object) Maps(path ...string) (all []map[string]any) {
	last := len(path) - 1
	list, _ := o.Map(path[:last]...)[path[last]].([]any)
	for _, v := range list {
		if m, is := v.(map[string]any); is {
			all = append(all, m)
		}
	}
	return all
}

// Set sets the value at a path, and creates missing maps.
func (o Object) Set(value any, path ...string) {
	m := map[string]any(o)
	for _, key := range path[:len(path)-1] {
		next, ok := m[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[key] = next
		}
		m = next
	}
	m[path[len(path)-1]] = value
}

// Copy returns a deep copy.
func (o Object) Copy() Object { return deepCopy(map[string]any(o)).(map[string]any) }

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = deepCopy(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = deepCopy(e)
		}
		return out
	}
	return v
}

// HoldsData reports whether deletion would lose users' data. gitrollout never deletes such objects.
func (r Ref) HoldsData() bool {
	return slices.Contains([]string{"/Namespace", "/PersistentVolumeClaim", "/PersistentVolume",
		"apiextensions.k8s.io/CustomResourceDefinition"}, r.Group+"/"+r.Kind)
}

// Autoscales reports whether the object is an autoscaler.
func (r Ref) Autoscales() bool {
	kind := r.Group + "/" + r.Kind
	return kind == "autoscaling/HorizontalPodAutoscaler" || kind == "keda.sh/ScaledObject"
}

func (r Ref) String() string {
	return strings.Join([]string{cmp.Or(r.Group, "core"), r.Kind, cmp.Or(r.Namespace, "-"), r.Name}, "/")
}

// Title returns "Deployment shop/web", "Namespace shop" or the like.
func (r Ref) Title() string {
	return r.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
}

// MarshalText writes the text form.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the text form.
func (r *Ref) UnmarshalText(b []byte) error {
	parts := strings.Split(string(b), "/")
	if len(parts) != 4 || slices.Contains(parts, "") {
		return fmt.Errorf("object %q: want group/Kind/namespace/name, with core for no group and - for no namespace", b)
	}
	*r = Ref{Group: unless(parts[0], "core"), Kind: parts[1], Namespace: unless(parts[2], "-"), Name: parts[3]}
	return nil
}

// Compare orders references by group, kind, namespace and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Group, o.Group), cmp.Compare(r.Kind, o.Kind),
		cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

func unless(s, empty string) string {
	if s == empty {
		return ""
	}
	return s
}
