package cluster

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// A field tree is the fieldsV1 of a metadata.managedFields entry. Its keys: "f:x" (the field x), "k:{...}" (the list
// element with these keys), "v:..." (a set element), "." (the map or element itself). A manager with a node {} owns the
// whole value.
//
//	{"f:spec": {"f:replicas": {}, "f:ports": {"k:{\"port\":80}": {".": {}, "f:port": {}}}}}

func child(fields map[string]any, element string) (map[string]any, bool) {
	v, ok := fields[element]
	sub, _ := v.(map[string]any)
	return sub, ok
}

func childOf(fields map[string]any, element string) map[string]any {
	sub, _ := child(fields, element)
	return sub
}

func elements(fields map[string]any) int {
	if _, ok := fields["."]; ok {
		return len(fields) - 1
	}
	return len(fields)
}

// keyRule says whether a list element must have all keys of a "k:" node.
type keyRule bool

const (
	allKeys   keyRule = false
	givenKeys keyRule = true // a key may be missing, because the API server may set its default later
)

func step(value any, element string, rule keyRule) (any, bool) {
	prefix, rest, _ := strings.Cut(element, ":")
	switch prefix {
	case "f":
		m, _ := value.(map[string]any)
		v, ok := m[rest]
		return v, ok
	case "k", "v":
		var want any
		if json.Unmarshal([]byte(rest), &want) != nil {
			return nil, false
		}
		keys, _ := want.(map[string]any)
		list, _ := value.([]any)
		for _, item := range list {
			m, _ := item.(map[string]any)
			if prefix == "k" && hasKeys(m, keys, rule) || prefix == "v" && sameScalar(item, want) {
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
		if !ok && rule == givenKeys && (name != "protocol" || want == "TCP") {
			continue
		}
		if !ok || !sameScalar(v, want) {
			return false
		}
		found++
	}
	return found > 0
}

func existing(fields map[string]any, value any) map[string]any {
	return difference(fields, dropped(fields, value))
}

// dropped returns the fields of a tree that are missing in a value, or nil. A missing list element is one leaf.
func dropped(fields map[string]any, value any) (out map[string]any) {
	for element := range fields {
		if element == "." {
			continue
		}
		sub := childOf(fields, element)
		next, ok := step(value, element, givenKeys)
		rest := map[string]any{}
		if len(sub) > 0 && (ok || !strings.HasPrefix(element, "k:")) {
			rest = dropped(sub, next)
		}
		if rest == nil || ok && len(sub) == 0 {
			continue
		}
		if out == nil {
			out = map[string]any{}
		}
		out[element] = rest
	}
	return out
}

// areApart reports whether one tree owns only a map itself, and the other tree owns only fields of the map. For list
// elements, it returns false, because an empty node owns the whole element.
func areApart(element string, a, b map[string]any) bool {
	return strings.HasPrefix(element, "f:") && (len(a) == 0) != (len(b) == 0)
}

// difference returns the fields of a that are not in b. If only "." is left, it returns nil. It omits a common list
// element that is a leaf in either tree.
func difference(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for element := range a {
		rest := childOf(a, element)
		if other, ok := child(b, element); ok && element != "." && !areApart(element, rest, other) {
			if len(rest) == 0 || len(other) == 0 {
				continue
			}
			if rest = difference(rest, other); rest == nil {
				continue
			}
		}
		out[element] = rest
	}
	if elements(out) == 0 {
		return nil
	}
	return out
}

func paths(fields map[string]any, at string) (all []string) {
	if len(fields) == 0 {
		return []string{strings.TrimPrefix(at, ".")}
	}
	for _, element := range slices.Sorted(maps.Keys(fields)) {
		kind, name, _ := strings.Cut(element, ":")
		next := "." + name
		if kind != "f" {
			next = "[" + name + "]"
		}
		all = append(all, paths(childOf(fields, element), at+next)...)
	}
	return all
}

func union(a, b map[string]any) map[string]any {
	out := make(map[string]any, len(a)+len(b))
	maps.Copy(out, a)
	for element := range b {
		if sub, ok := child(a, element); ok {
			out[element] = union(sub, childOf(b, element))
		} else {
			out[element] = b[element]
		}
	}
	return out
}

func overlap(a, b map[string]any) bool {
	for element := range a {
		other, ok := child(b, element)
		sub := childOf(a, element)
		if !ok || element == "." || areApart(element, sub, other) {
			continue
		}
		if len(sub) == 0 || len(other) == 0 || strings.HasPrefix(element, "k:") || overlap(sub, other) {
			return true
		}
	}
	return false
}

func ownedFields(object map[string]any) map[string]any {
	own, _ := rollout.Find(managedEntries(object), isOwn)
	return childOf(own, "fieldsV1")
}

func isOwn(entry map[string]any) bool {
	return entry["manager"] == manager && entry["operation"] == "Apply" &&
		(entry["subresource"] == nil || entry["subresource"] == "")
}

func writerOf(object map[string]any) string {
	writer, last := "", ""
	for _, e := range managedEntries(object) {
		name, _ := e["manager"].(string)
		when, _ := e["time"].(string)
		if name != manager && e["subresource"] != "status" && when >= last {
			writer, last = name, when
		}
	}
	return writer
}

func managedEntries(object map[string]any) []map[string]any {
	return rollout.Object(object).Maps("metadata", "managedFields")
}

// fingerprint returns a digest of owned fields with their values. It detects other managers' changes.
func fingerprint(fields map[string]any, live any) string {
	raw, _ := json.Marshal(values(fields, live))
	return rollout.Digest(raw, 16)
}

func values(fields map[string]any, value any) any {
	if len(fields) == 0 {
		return []any{value}
	}
	out := make(map[string]any, len(fields))
	for element := range fields {
		out[element] = nil
		if next, ok := step(value, element, allKeys); ok {
			out[element] = values(childOf(fields, element), next)
		}
	}
	return out
}

// holds reports whether gitrollout owns exactly the fields of a desired object. If the digest labels are also equal, an
// apply would change nothing. Values need no check, because gitrollout loses a field that another manager changes.
func holds(owned map[string]any, desired map[string]any) bool {
	want := without(desired, "apiVersion", "kind", "status")
	if metadata, is := want["metadata"].(map[string]any); is {
		want["metadata"] = without(metadata, "name", "namespace")
	}
	return holdsNode(owned, want)
}

func holdsNode(owned map[string]any, want any) bool {
	if len(owned) == 0 {
		return true // an empty node owns the whole value
	}
	switch want := want.(type) {
	case map[string]any:
		fields := 0
		for name, v := range want {
			if v == nil {
				continue
			}
			sub, ok := child(owned, "f:"+name)
			if !ok || !holdsNode(sub, v) {
				return false
			}
			fields++
		}
		return fields == elements(owned)
	case []any:
		for _, v := range want {
			is := func(element string) bool { _, ok := step([]any{v}, element, givenKeys); return ok }
			element, ok := rollout.Find(slices.Collect(maps.Keys(owned)), is)
			if !ok || !holdsNode(childOf(owned, element), v) {
				return false
			}
		}
		return len(want) == elements(owned)
	}
	return false
}

func sameScalar(a, b any) bool {
	x, okX := scalarText(a)
	y, okY := scalarText(b)
	return okX && okY && x == y || a == nil && b == nil
}

func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, int, int32, int64, float64, json.Number:
		raw, err := json.Marshal(v)
		return string(raw), err == nil
	}
	return "", false
}
