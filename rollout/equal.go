package rollout

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/conversion"
)

// equality compares values as Kubernetes does: an empty list equals nil, and time zones have no effect.
var equality = conversion.EqualitiesOrDie(time.Time.Equal)

// Equal reports whether two states have the same content (see equality).
func (s *State) Equal(o *State) bool {
	left, right := *s, *o
	left.APIVersion, left.Kind, left.Seal = "", "", ""
	right.APIVersion, right.Kind, right.Seal = "", "", ""
	return equality.DeepEqual(left, right)
}

// IsTransition reports whether two states differ in a field with the tag serial:"yes". State.Serial counts transitions.
func (s *State) IsTransition(to *State) bool {
	from, next := reflect.ValueOf(*s), reflect.ValueOf(*to)
	for i := range from.NumField() {
		a, b := from.Field(i).Interface(), next.Field(i).Interface()
		if from.Type().Field(i).Tag.Get("serial") == "yes" && !equality.DeepEqual(a, b) {
			return true
		}
	}
	return false
}
