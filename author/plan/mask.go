package plan

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// Compare returns a unified diff, or "" for equal versions. A version may be nil. The diff omits fields that the API
// server sets, and masks Secrets' values.
func Compare(wasName string, was rollout.Object, nowName string, now rollout.Object) (string, error) {
	was, now = withoutServer(was), withoutServer(now)
	if was.IsSecret() || now.IsSecret() {
		was, now = plainSecret(was), plainSecret(now)
		was, now = hide(was, now, "before"), hide(now, was, "after")
	}
	before, err := document(was)
	after, failed := document(now)
	if err := cmp.Or(err, failed); err != nil {
		return "", err
	}
	text := string(diff.Diff(wasName, before, nowName, after))
	if _, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(text, "diff ") {
		text = rest // drop "diff a b": the next lines repeat the names
	}
	return text, nil
}

// Masked returns an object as YAML, with Secrets' values masked.
func Masked(o rollout.Object) (string, error) {
	if o.IsSecret() {
		o = hide(plainSecret(o.Copy()), nil, "")
	}
	data, err := document(o)
	return string(data), err
}

func document(o rollout.Object) ([]byte, error) {
	if o == nil {
		return nil, nil
	}
	data, err := yaml.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("print %s: %w", o.Ref(), err)
	}
	return data, nil
}

func withoutServer(o rollout.Object) rollout.Object {
	if o == nil {
		return nil
	}
	o = o.Copy()
	delete(o, "status")
	metadata := o.Map("metadata")
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink",
		"uid"} {
		delete(metadata, field)
	}
	for _, marks := range []string{"labels", "annotations"} {
		for _, key := range []string{
			"gitrollout.dev/applied", "deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration",
		} {
			delete(o.Map("metadata", marks), key)
		}
		if len(o.Map("metadata", marks)) == 0 {
			delete(metadata, marks)
		}
	}
	return o
}

func plainSecret(o rollout.Object) rollout.Object {
	values := o.Map("stringData")
	if values == nil {
		return o
	}
	delete(o, "stringData")
	data := o.Map("data")
	if data == nil {
		data = map[string]any{}
		o["data"] = data
	}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(value)))
	}
	return o
}

// openFields lists the fields of a Secret that contain no secret. Any other field may be a misspelled "data".
var openFields = []string{"apiVersion", "kind", "metadata", "type", "immutable"}

func hide(o, other rollout.Object, changed string) rollout.Object {
	if o == nil {
		return nil
	}
	o = o.Copy()
	for field := range o {
		if values := o.Map(field); field == "data" && values != nil {
			for key := range values {
				star(values, other.Map(field), key, changed)
			}
		} else if !slices.Contains(openFields, field) {
			star(o, other, field, changed)
		}
	}
	annotations := o.Map("metadata", "annotations")
	for key, value := range annotations {
		if text, _ := value.(string); len(text) > 200 || strings.ContainsAny(text, "{\n") {
			star(annotations, other.Map("metadata", "annotations"), key, changed)
		}
	}
	return o
}

func star(values, others map[string]any, key, changed string) {
	value := values[key]
	values[key] = "***"
	if was, both := others[key]; both && !reflect.DeepEqual(was, value) {
		values[key] = "*** (" + changed + ")"
	}
}
