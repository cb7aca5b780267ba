package cluster

import (
	"encoding/json"
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

func ownedFields(object map[string]any) map[string]any {
	own, _ := rollout.Find(managedEntries(object), isOwn)
	return childOf(own, "fieldsV1")
}

// isOwn reports an entry of gitrollout's apply, not of a subresource.
func isOwn(entry map[string]any) bool {
	return entry["manager"] == manager && entry["operation"] == "Apply" &&
		(entry["subresource"] == nil || entry["subresource"] == "")
}

// writerOf returns the last write's manager, except gitrollout and the status.
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
	list, _ := rollout.Object(object).Map("metadata")["managedFields"].([]any)
	out := make([]map[string]any, 0, len(list))
	for _, e := range list {
		if entry, ok := e.(map[string]any); ok {
			out = append(out, entry)
		}
	}
	return out
}

// fingerprint digests owned fields with values, to detect other managers' changes.
func fingerprint(fields map[string]any, live any) string {
	raw, _ := json.Marshal(values(fields, live)) // cannot fail
	return rollout.Digest(raw, 16)
}

// values returns each field's value: nil if missing; a leaf's in a list.
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

// holds reports whether gitrollout owns exactly a desired object's fields. With equal digest labels, an apply then
// changes nothing. Values need no check: gitrollout loses a field when another manager changes it.
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
