package traffic

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Objects is an app's objects. Overlays change only copies from Edit.
type Objects struct {
	list   []rollout.Object
	at     map[rollout.Ref]int
	own    map[rollout.Ref]bool // copies from Edit, and generated objects
	claims map[string]string    // by place: the Rollout that writes to the place
}

// NewObjects returns the Objects of a list that is in apply order.
func NewObjects(list []rollout.Object) *Objects {
	o := &Objects{list: slices.Clone(list), own: map[rollout.Ref]bool{}, claims: map[string]string{}}
	o.number()
	return o
}

// List returns the objects in apply order.
func (o *Objects) List() []rollout.Object { return o.list }

// Find returns a read-only object.
func (o *Objects) Find(ref rollout.Ref) (rollout.Object, bool) {
	i, ok := o.at[ref]
	if !ok {
		return nil, false
	}
	return o.list[i], true
}

// Edit returns an object that the caller may change in place.
func (o *Objects) Edit(ref rollout.Ref) (rollout.Object, bool) {
	object, ok := o.Find(ref)
	if ok && !o.own[ref] {
		object = object.Copy()
		o.list[o.at[ref]], o.own[ref] = object, true
	}
	return object, ok
}

func (o *Objects) after(ref rollout.Ref) int {
	if i, ok := o.at[ref]; ok {
		return i + 1
	}
	return len(o.list)
}

func (o *Objects) generate(object rollout.Object, at int, by Route) error {
	ref := object.Ref()
	if _, taken := o.at[ref]; taken {
		return wrong(ref, "", "has the name of an object that gitrollout generates for releases of Rollout %s", by.Name).
			WithFix("rename this object, or remove it from Git: gitrollout generates it for each release")
	}
	set(object, by.Name, "metadata", "annotations", rollout.AnnotationGenerated)
	o.list = slices.Insert(o.list, at, object)
	o.own[ref] = true
	o.number()
	return nil
}

func (o *Objects) number() {
	o.at = make(map[rollout.Ref]int, len(o.list))
	for i, object := range o.list {
		o.at[object.Ref()] = i
	}
}

// Claim reserves a place for a Rollout, because two Rollouts must not set the same weights.
func (o *Objects) Claim(ref rollout.Ref, place string, by Route) error {
	key := ref.String() + " " + place
	if other, taken := o.claims[key]; taken && other != by.Name {
		return wrong(ref, place, "is changed by two Rollouts, %s and %s", other, by.Name).
			WithFix("give each a separate route or Service")
	}
	o.claims[key] = by.Name
	return nil
}

func set(m map[string]any, value any, path ...string) { rollout.Object(m).Set(value, path...) }

func mapping(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any             { l, _ := v.([]any); return l }
func text(v any) string            { s, _ := v.(string); return s }

func number(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	case int:
		return int64(n), true
	}
	return 0, false
}

func copyMap(m map[string]any) map[string]any { return rollout.Object(m).Copy() }
