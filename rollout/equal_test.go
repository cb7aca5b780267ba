package rollout_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// fill sets each leaf field below v, and counts the leaves in n. All leaves of one type get the same value, except leaf number `odd`.
func fill(v reflect.Value, n *int, odd int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n, odd)
		return
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n, odd)
		}
		return
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n, odd)
		}
		return
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n, odd)
		fill(value, n, odd)
		v.SetMapIndex(key, value)
		return
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			for i := range v.NumField() {
				fill(v.Field(i), n, odd)
			}
			return
		}
	}
	*n++
	is := *n == odd
	switch v.Kind() {
	case reflect.String:
		v.SetString(map[bool]string{false: "a", true: "b"}[is])
	case reflect.Int, reflect.Int64:
		v.SetInt(map[bool]int64{false: 1, true: 2}[is])
	case reflect.Float64:
		v.SetFloat(map[bool]float64{false: 1, true: 2}[is])
	case reflect.Bool:
		v.SetBool(!is)
	case reflect.Struct:
		v.Set(reflect.ValueOf(map[bool]time.Time{false: noon, true: noon.Add(time.Second)}[is]))
	default:
		panic(fmt.Sprintf("no value for %s", v.Type()))
	}
}

func filled(odd int) (s rollout.State, leaves int) {
	fill(reflect.ValueOf(&s).Elem(), &leaves, odd)
	return s, leaves
}

// TestStateEqualSeesEveryField changes one field of a state at a time, and checks that Equal is true exactly if the encoding stays the
// same.
func TestStateEqualSeesEveryField(t *testing.T) {
	written := func(s rollout.State) string {
		s.APIVersion, s.Kind, s.Seal = "", "", ""
		raw, err := json.Marshal(s)
		must(t, err)
		return string(raw)
	}
	plain, leaves := filled(0)
	if leaves < 100 {
		t.Fatalf("%d leaves", leaves)
	}
	same := 0
	for odd := range leaves + 1 {
		s, _ := filled(odd)
		if got, want := s.Equal(&plain), written(s) == written(plain); got != want {
			t.Errorf("leaf %d: Equal is %t, want %t: %s", odd, got, want, written(s))
		} else if got {
			same++
		}
	}
	if same != 4 { // no leaf has the number 0, and Equal ignores apiVersion, kind and seal
		t.Errorf("%d of %d changes make no difference", same, leaves)
	}
	empty := rollout.State{Progress: []rollout.Progress{},
		Stable: &rollout.Release{Since: noon.In(time.FixedZone("there", 3600)), Templates: map[rollout.Workload]rollout.Hash{}}}
	if none := (rollout.State{Stable: &rollout.Release{Since: noon}}); !none.Equal(&empty) {
		t.Error("an empty list is not none, or a moment is another one in another time zone")
	}
	if none := (rollout.State{}); none.Equal(&empty) {
		t.Error("a state without a stable release is one with")
	}
}

// TestIsTransition checks that a change of a field is a transition exactly if the field has the tag serial:"yes".
func TestIsTransition(t *testing.T) {
	n := 0
	fields := reflect.TypeFor[rollout.State]()
	for i := range fields.NumField() {
		var from, to rollout.State
		fill(reflect.ValueOf(&to).Elem().Field(i), &n, 0)
		field := fields.Field(i)
		if tag := field.Tag.Get("serial"); tag != "yes" && tag != "no" {
			t.Errorf("%s has no tag serial that is yes or no, but %q", field.Name, tag)
		} else if from.IsTransition(&to) != (tag == "yes") {
			t.Errorf("a change of %s is a transition: %t", field.Name, from.IsTransition(&to))
		}
	}
	for _, name := range []string{"Serial", "Source", "Held", "Inventory", "Unhealthy", "Hooks"} {
		if field, _ := fields.FieldByName(name); field.Tag.Get("serial") != "no" {
			t.Errorf("%s alone would cost a write on each Deployment", name)
		}
	}
}
