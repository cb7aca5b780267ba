package traffic

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Objects is what the cluster is to hold of an app while overlays are laid over
// it. The objects that it was made of are not changed: Edit copies.
type Objects struct {
	list   []rollout.Object
	at     map[rollout.Ref]int
	own    map[rollout.Ref]bool // copied or made here
	claims map[string]string    // a place in an object: the Rollout that writes there
}

// NewObjects takes the objects in the order in which to apply them.
func NewObjects(list []rollout.Object) *Objects {
	o := &Objects{list: slices.Clone(list), own: map[rollout.Ref]bool{}, claims: map[string]string{}}
	o.number()
	return o
}

// List returns the objects in the order in which to apply them.
func (o *Objects) List() []rollout.Object { return o.list }

// Find returns an object that is not to be changed.
func (o *Objects) Find(ref rollout.Ref) (rollout.Object, bool) {
	i, ok := o.at[ref]
	if !ok {
		return nil, false
	}
	return o.list[i], true
}

// Edit returns an object to be changed in place.
func (o *Objects) Edit(ref rollout.Ref) (rollout.Object, bool) {
	object, ok := o.Find(ref)
	if ok && !o.own[ref] {
		object = object.Copy()
		o.list[o.at[ref]], o.own[ref] = object, true
	}
	return object, ok
}

// after is the place right after an object; the last one if it is not there.
func (o *Objects) after(ref rollout.Ref) int {
	if i, ok := o.at[ref]; ok {
		return i + 1
	}
	return len(o.list)
}

// generate adds an object that is not in Git at a place in the order in which to apply
// them. It takes over no object of the user's.
func (o *Objects) generate(object rollout.Object, at int, by Route) error {
	ref := object.Ref()
	if _, taken := o.at[ref]; taken {
		return wrong(ref, "", "has the name of the object that Rollout %s makes for its release", by.Name).
			WithFix("rename it, or leave it out: it is made when it is needed")
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

// Claim notes that a Rollout writes to a place of an object, and refuses a
// second one there: two releases would undo each other's weights.
func (o *Objects) Claim(ref rollout.Ref, place string, by Route) error {
	key := ref.String() + " " + place
	other, taken := o.claims[key]
	if taken && other != by.Name {
		return wrong(ref, place, "is moved by two Rollouts, %s and %s", other, by.Name).
			WithFix("give each of them a route or a Service of its own")
	}
	o.claims[key] = by.Name
	return nil
}

// set is rollout.Object's Set, of any part of an object.
func set(m map[string]any, value any, path ...string) { rollout.Object(m).Set(value, path...) }

// mapping, list and text read plain JSON values; what is of another type is as good as absent.
func mapping(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any             { l, _ := v.([]any); return l }
func text(v any) string            { s, _ := v.(string); return s }

// number returns a JSON number, whichever Go type it was decoded to.
func number(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	case int:
		return int64(n), true
	default:
		return 0, false
	}
}

func copyMap(m map[string]any) map[string]any { return rollout.Object(m).Copy() }
