package rollout

import (
	"reflect"
	"time"
)

// Equal reports whether two states have the same content. An empty list equals nil, and time zones have no effect.
func (s *State) Equal(o *State) bool {
	left, right := *s, *o
	left.APIVersion, left.Kind, left.Seal = "", "", ""
	right.APIVersion, right.Kind, right.Seal = "", "", ""
	return sameValue(reflect.ValueOf(left), reflect.ValueOf(right))
}

// IsTransition reports whether two states differ in a field with the tag serial:"yes". State.Serial counts transitions.
func (s *State) IsTransition(to *State) bool {
	from, next := reflect.ValueOf(*s), reflect.ValueOf(*to)
	for i := range from.NumField() {
		if from.Type().Field(i).Tag.Get("serial") == "yes" && !sameValue(from.Field(i), next.Field(i)) {
			return true
		}
	}
	return false
}

func sameValue(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Pointer:
		return a.IsNil() == b.IsNil() && (a.Pointer() == b.Pointer() || sameValue(a.Elem(), b.Elem()))
	case reflect.Struct:
		return sameStruct(a, b)
	case reflect.Slice:
		same := a.Len() == b.Len()
		for i := 0; same && i < a.Len(); i++ {
			same = sameValue(a.Index(i), b.Index(i))
		}
		return same
	case reflect.Map:
		same := a.Len() == b.Len()
		for entries := a.MapRange(); same && entries.Next(); {
			other := b.MapIndex(entries.Key())
			same = other.IsValid() && sameValue(entries.Value(), other)
		}
		return same
	default:
		return a.Equal(b)
	}
}

var timeType = reflect.TypeFor[time.Time]()

func sameStruct(a, b reflect.Value) bool {
	if a.Type() == timeType {
		return a.Interface().(time.Time).Equal(b.Interface().(time.Time))
	}
	same := true
	for i := 0; same && i < a.NumField(); i++ {
		same = sameValue(a.Field(i), b.Field(i))
	}
	return same
}
