package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"gitrollout.dev/gitrollout/rollout"
)

// checkReadable refuses objects of Kubernetes' own kinds that no API server can read: `memory: 12x`, `replicas: many`.
// The server gives no reason then that is known to stay, so that it cannot be told from one that has trouble. Fields
// that are not known are left to the server, which may be newer.
func (a *assembly) checkReadable() error {
	for _, object := range a.objects {
		err := readAs(object)
		if err == nil {
			continue
		}
		field, value := culprit(object)
		return a.invalid(object.Ref(), strings.TrimPrefix(field, "."), "write what `kubectl explain` says of the field",
			"%s cannot be read by an API server: %s", shown(object.Ref(), value), reason(err))
	}
	return nil
}

// readAs reads an object as an API server does. The error says what is wrong with the types of its values. Kinds that
// are not Kubernetes' own are not looked at.
func readAs(object rollout.Object) error {
	data, err := json.Marshal(object)
	if err == nil {
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	}
	if runtime.IsNotRegisteredError(err) {
		return nil
	}
	return err
}

// culprit finds the innermost value without whose siblings an object cannot be read, either.
func culprit(object rollout.Object) (field string, value any) {
	fails := func(alone map[string]any) bool {
		part := rollout.Object{}
		maps.Copy(part, alone)
		part["apiVersion"], part["kind"] = object.APIVersion(), object.Kind()
		return readAs(part) != nil
	}
	var at any = map[string]any(object)
	around := func(v any) map[string]any { return asMap(v) }
	for {
		steps := stepsInto(at)
		i := slices.IndexFunc(steps, func(s step) bool { return fails(around(s.around(s.value))) })
		if i < 0 || fails(around(emptied(at))) { // no part of it, but that it is a list or a mapping
			return field, at
		}
		s, outer := steps[i], around
		field, at, around = field+s.name, s.value, func(v any) map[string]any { return outer(s.around(v)) }
	}
}

// step is the way from a value to one that is directly in it.
type step struct {
	name   string // ".spec", "[2]"
	value  any
	around func(any) any // puts the value alone into one such as it was in
}

func stepsInto(v any) (steps []step) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			steps = append(steps, step{"." + key, v[key], func(in any) any { return map[string]any{key: in} }})
		}
	case []any:
		for i, item := range v {
			steps = append(steps, step{fmt.Sprintf("[%d]", i), item, func(in any) any { return []any{in} }})
		}
	}
	return steps
}

func emptied(v any) any {
	if _, isList := v.([]any); isList {
		return []any{}
	}
	return map[string]any{}
}

// shown is a value as it is told: nothing of a Secret, nor what holds others.
func shown(ref rollout.Ref, v any) string {
	text, isText := v.(string)
	switch {
	case ref.Kind == "Secret", v == nil, len(text) > 60, len(stepsInto(v)) > 0:
		return "what is there"
	case isText:
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprint(v)
}

// otherType is what Go's decoder says of a value of another type than a field has.
var otherType = regexp.MustCompile(`^json: cannot unmarshal (\w+) into Go .* of type (\[\])?(?:\w+\.)?(\S+)$`)

// reason is what is wrong, in words that are not about the program.
func reason(err error) string {
	return otherType.ReplaceAllString(err.Error(), "it is of type $1, and not of type $2$3")
}
