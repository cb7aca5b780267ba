package cluster

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"gitrollout.dev/gitrollout/rollout"
)

// ownedFields returns the fieldsV1 of our applies, nil when there are none.
func ownedFields(object map[string]any) map[string]any {
	own, _ := rollout.Find(managedEntries(object), isOwn)
	return child1(own, "fieldsV1")
}

// isOwn reports whether an entry of the managed fields is that of our applies.
func isOwn(entry map[string]any) bool {
	return entry["manager"] == manager && entry["operation"] == "Apply" &&
		(entry["subresource"] == nil || entry["subresource"] == "")
}

// writerOf returns the manager that changed an object last, status apart, of all but ours.
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

// fingerprint returns a digest of the owned fields and their live values. It changes when another manager takes a field
// or changes its value. A change of other fields leaves it as it is.
func fingerprint(fields map[string]any, live any) string {
	h := sha256.New()
	printNode(h, fields, live, true)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func printNode(h hash.Hash, fields map[string]any, value any, exists bool) {
	if !exists {
		h.Write([]byte("absent;"))
		return
	}
	if len(fields) == 0 {
		raw, _ := json.Marshal(value) // of JSON values: cannot fail
		h.Write(raw)
		h.Write([]byte{';'})
		return
	}
	h.Write([]byte{'{'})
	for _, element := range slices.Sorted(maps.Keys(fields)) {
		h.Write([]byte(element))
		h.Write([]byte{'='})
		if element == "." {
			continue
		}
		next, ok := step(value, element, allKeys)
		sub, _ := fields[element].(map[string]any)
		printNode(h, sub, next, ok)
	}
	h.Write([]byte{'}'})
}

// holds reports whether the live object equals the applied one: every field of desired is owned and has its value, and
// no other field is owned. A new process needs it to leave an object alone. A field that another manager has changed
// is not owned any more. Values are equal after the API server's normalising ("1000m" is "1", false and 0 are
// dropped), and lists that are owned as a whole may have defaults.
func holds(owned map[string]any, desired, live map[string]any) bool {
	want := without(desired, "apiVersion", "kind", "status")
	if metadata, is := want["metadata"].(map[string]any); is {
		want["metadata"] = without(metadata, "name", "namespace")
	}
	return holdsNode(owned, want, live)
}

func holdsNode(owned map[string]any, want, live any) bool {
	if len(owned) == 0 {
		return equivalent(want, live)
	}
	switch want := want.(type) {
	case map[string]any:
		m, _ := live.(map[string]any)
		fields := 0
		for name, v := range want {
			if v == nil {
				continue
			}
			sub, ok := child(owned, "f:"+name)
			if !ok || !holdsNode(sub, v, m[name]) {
				return false
			}
			fields++
		}
		return fields == elements(owned)
	case []any:
		for _, v := range want {
			element, sub, ok := elementOf(owned, v)
			if !ok {
				return false
			}
			item, ok := step(live, element, allKeys)
			if !ok || !holdsNode(sub, v, item) {
				return false
			}
		}
		return len(want) == elements(owned)
	default:
		return false
	}
}

// elementOf finds the path element that stands for a desired list item.
func elementOf(owned map[string]any, item any) (string, map[string]any, bool) {
	for element := range owned {
		if _, ok := step([]any{item}, element, givenKeys); ok {
			return element, child1(owned, element), true
		}
	}
	return "", nil, false
}

// equivalent compares a desired value with the live one of a leaf.
func equivalent(want, live any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case map[string]any:
		m, ok := live.(map[string]any)
		if !ok {
			return live == nil && len(want) == 0
		}
		for name, v := range want {
			if !equivalent(v, m[name]) {
				return false
			}
		}
		return true
	case []any:
		list, ok := live.([]any)
		return ok && slices.EqualFunc(want, list, equivalent) || live == nil && len(want) == 0
	default:
		return live == nil && reflect.ValueOf(want).IsZero() || sameScalar(want, live)
	}
}

func sameScalar(a, b any) bool {
	if a == b {
		return true
	}
	x, okX := scalarText(a)
	y, okY := scalarText(b)
	if !okX || !okY {
		return false
	}
	return x == y || sameQuantity(x, y) || sameBytes(x, y)
}

func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, int, int32, int64, float64, json.Number:
		raw, err := json.Marshal(v)
		return string(raw), err == nil
	default:
		return "", false
	}
}

// sameQuantity compares amounts of CPU and memory, which the API server writes in their shortest form.
func sameQuantity(a, b string) bool {
	if a == "" || b == "" || len(a) > 32 || len(b) > 32 {
		return false
	}
	x, errX := resource.ParseQuantity(a)
	y, errY := resource.ParseQuantity(b)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// sameBytes compares base64 that was wrapped over lines with the same in one.
func sameBytes(a, b string) bool {
	if !strings.ContainsAny(a+b, "\r\n") {
		return false
	}
	x, errX := base64.StdEncoding.DecodeString(a)
	y, errY := base64.StdEncoding.DecodeString(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
