package rollout

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/conversion"
)

// equality compares like Kubernetes: an empty list equals nil, and time zones have no effect.
var equality = conversion.EqualitiesOrDie(time.Time.Equal)

// Equal compares all fields of states except APIVersion, Kind and Seal.
func (s *State) Equal(o *State) bool {
	if reflect.DeepEqual(s, o) { // quick, because states share most values
		return true
	}
	left, right := *s, *o
	left.APIVersion, left.Kind, left.Seal = "", "", ""
	right.APIVersion, right.Kind, right.Seal = "", "", ""
	return equality.DeepEqual(left, right)
}

// IsTransition reports whether states differ in a field with the tag serial:"yes".
func (s *State) IsTransition(to *State) bool {
	next := reflect.ValueOf(*to)
	for field, value := range reflect.ValueOf(*s).Fields() {
		is := next.FieldByIndex(field.Index).Interface()
		if field.Tag.Get("serial") == "yes" && !equality.DeepEqual(value.Interface(), is) {
			return true
		}
	}
	return false
}
