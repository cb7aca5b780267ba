package cluster

import (
	"encoding/json"
	"maps"
	"strings"
)

// A field tree is one entry's fieldsV1 in metadata.managedFields: "f:x" is
// field x, "k:{...}" the list element with those keys, "v:..." the element of
// a set with that value, "." the map or element itself. An empty node is a leaf
// of ownership: a scalar, or a list or map that is owned as a whole.
//
//	{"f:spec": {"f:replicas": {}, "f:ports": {"k:{\"port\":80}": {".": {}, "f:port": {}}}}}

func child(fields map[string]any, element string) (map[string]any, bool) {
	v, ok := fields[element]
	sub, _ := v.(map[string]any)
	return sub, ok
}

func child1(fields map[string]any, element string) map[string]any {
	sub, _ := child(fields, element)
	return sub
}

func elements(fields map[string]any) int {
	if _, ok := fields["."]; ok {
		return len(fields) - 1
	}
	return len(fields)
}

// keyRule says which of its keys a list element must have.
type keyRule bool

const (
	allKeys   keyRule = false
	givenKeys keyRule = true // those that it names: others were defaulted, such as a port's protocol
)

// step follows one path element into a value.
func step(value any, element string, rule keyRule) (any, bool) {
	prefix, rest, _ := strings.Cut(element, ":")
	switch prefix {
	case "f":
		m, _ := value.(map[string]any)
		v, ok := m[rest]
		return v, ok
	case "k":
		var keys map[string]any
		if json.Unmarshal([]byte(rest), &keys) != nil {
			return nil, false
		}
		list, _ := value.([]any)
		for _, item := range list {
			if m, ok := item.(map[string]any); ok && hasKeys(m, keys, rule) {
				return item, true
			}
		}
	case "v":
		var want any
		if json.Unmarshal([]byte(rest), &want) != nil {
			return nil, false
		}
		list, _ := value.([]any)
		for _, item := range list {
			if sameScalar(item, want) {
				return item, true
			}
		}
	}
	return nil, false
}

func hasKeys(item, keys map[string]any, rule keyRule) bool {
	found := 0
	for name, want := range keys {
		v, ok := item[name]
		if !ok && rule == givenKeys {
			continue
		}
		if !ok || !sameScalar(v, want) {
			return false
		}
		found++
	}
	return found > 0
}

// within returns the part of a field tree that exists in a value, nil if none.
func within(fields map[string]any, value any) map[string]any {
	var out map[string]any
	for element := range fields {
		if element == "." {
			continue
		}
		next, ok := step(value, element, givenKeys)
		if !ok {
			continue
		}
		if out == nil {
			out = map[string]any{}
		}
		sub := child1(fields, element)
		kept := within(sub, next)
		if kept == nil {
			kept = map[string]any{}
		}
		if _, dot := sub["."]; dot {
			kept["."] = map[string]any{}
		}
		out[element] = kept
	}
	return out
}

// minus returns the fields of a that are not in b, nil if none. That a manager
// owns a map itself (".") beside its fields does not count: updates record it
// and applies do not.
func minus(a, b map[string]any) map[string]any {
	var out map[string]any
	for element := range a {
		if element == "." {
			continue
		}
		rest := child1(a, element)
		if other, ok := child(b, element); ok {
			if len(rest) == 0 || len(other) == 0 {
				continue
			}
			if rest = minus(rest, other); rest == nil {
				continue
			}
		}
		if out == nil {
			out = map[string]any{}
		}
		out[element] = rest
	}
	return out
}

func union(a, b map[string]any) map[string]any {
	out := make(map[string]any, len(a)+len(b))
	maps.Copy(out, a)
	for element := range b {
		if sub, ok := child(a, element); ok {
			out[element] = union(sub, child1(b, element))
		} else {
			out[element] = b[element]
		}
	}
	return out
}

// overlap reports whether two field trees share a field.
func overlap(a, b map[string]any) bool {
	for element := range a {
		other, ok := child(b, element)
		if !ok || element == "." {
			continue
		}
		sub := child1(a, element)
		if len(sub) == 0 || len(other) == 0 || overlap(sub, other) {
			return true
		}
	}
	return false
}
