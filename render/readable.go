package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"

	"gitrollout.dev/gitrollout/rollout"
)

// newest is the minor version of Kubernetes whose kinds and fields are known here.
const newest = 36

// checkReadable refuses objects of Kubernetes' own kinds that no API server can read: `memory: 12x`, `container: []`.
// The server gives no reason then that is known to stay, so that it cannot be told from one that has trouble. Where
// kubernetes.version is newer than the fields that are known here, fields are left to the server.
func (a *assembly) checkReadable() error {
	for _, object := range a.objects {
		typed, err := readAs(object)
		strict, isRead := runtime.AsStrictDecodingError(err)
		ref := object.Ref()
		if d, _ := rollout.Find(a.documents, func(d *document) bool { return d.workload.Ref() == ref }); d != nil {
			ref = originOf(d)
		}
		switch {
		case err == nil || isRead && isNewer(a.app.Kubernetes):
		case isRead:
			return a.blame(refuseFields(typed, strict.Errors()), ref)
		default:
			field, value := culprit(object)
			return a.invalid(ref, strings.TrimPrefix(field, "."), "write what `kubectl explain` says of the field",
				"%s cannot be read by an API server: %s", shown(ref, value), reason(err))
		}
	}
	return nil
}

func isNewer(kubernetes string) bool {
	var minor int
	_, err := fmt.Sscanf(strings.TrimPrefix(kubernetes, "v"), "1.%d", &minor)
	return err == nil && minor > newest
}

// readAs reads an object as an API server does. The error says what is wrong with the types of its values, or else is a
// strict decoding error of unknown fields. The status is never applied, and kinds that are not Kubernetes' own are not
// looked at.
func readAs(object rollout.Object) (typed runtime.Object, err error) {
	object = maps.Clone(object)
	delete(object, "status")
	data, err := json.Marshal(object)
	if err == nil {
		known := scheme.Scheme
		typed, _, err = serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, known, known,
			serializer.SerializerOptions{Strict: true}).Decode(data, nil, nil)
	}
	if runtime.IsNotRegisteredError(err) {
		return nil, nil
	}
	return typed, err
}

// refuseFields refuses fields that a kind does not have.
func refuseFields(typed runtime.Object, unknown []error) error {
	var r rollout.Reader
	for _, err := range unknown {
		field := strings.Trim(strings.TrimPrefix(err.Error(), "unknown field "), `"`)
		parent, name, known := beside(typed, field)
		r.Refuse(field, cmp.Or(rollout.DidYouMean(name, known), "leave it out, or see `kubectl explain "+parent+"`"),
			fmt.Sprintf("is not a field of Kubernetes 1.%d", newest))
	}
	r.Err.Also = r.Also
	return r.Err
}

// beside splits the path of an unknown field as kubectl explain takes it, and returns the fields that could be there.
func beside(typed runtime.Object, path string) (parent, name string, known []string) {
	at := reflect.TypeOf(typed)
	parent = strings.ToLower(typed.GetObjectKind().GroupVersionKind().Kind)
	for step := range strings.SplitSeq(path, ".") {
		if name != "" {
			parent += "." + name
		}
		name, _, _ = strings.Cut(step, "[")
		for at != nil && slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice}, at.Kind()) {
			at = at.Elem()
		}
		if at == nil || at.Kind() != reflect.Struct { // a dot in a name
			return parent, name, nil
		}
		fields := rollout.Fields(at)
		known = rollout.Mapped(fields, func(f rollout.Field) string { return f.Name })
		f, _ := rollout.Find(fields, func(f rollout.Field) bool { return f.Name == name })
		at = f.Type
	}
	return parent, name, known
}

// culprit finds the innermost value without whose siblings an object cannot be read, either.
func culprit(object rollout.Object) (field string, value any) {
	fails := func(alone map[string]any) bool {
		part := rollout.Object{}
		maps.Copy(part, alone)
		part["apiVersion"], part["kind"] = object.APIVersion(), object.Kind()
		_, err := readAs(part)
		return err != nil && !runtime.IsStrictDecodingError(err)
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
