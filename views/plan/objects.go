package plan

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// Object is one object that differs.
type Object struct {
	Object rollout.Ref `json:"object"`
	// Was is the object's name before, of a generated ConfigMap or Secret whose
	// name carries a hash of what is in it.
	Was    string `json:"was,omitempty"`
	Change string `json:"change"` // added, changed, removed
	Diff   string `json:"diff"`   // unified; the values of Secrets are stars
}

// generatedSuffix is what kustomize appends to the names of generated ConfigMaps
// and Secrets.
var generatedSuffix = regexp.MustCompile(`-[2456789bcdfghkmt]{10}$`)

// differences compares the objects of two renders, either of which may be nil.
func differences(base, head *rollout.Render) []Object {
	before, after := byRef(base), byRef(head)
	var all []Object
	add := func(ref rollout.Ref, was, now rollout.Object, change string) {
		text := textOf(ref, was, now)
		if text == "" {
			return
		}
		o := Object{Object: ref, Change: change, Diff: text}
		if was != nil && was.Name() != ref.Name {
			o.Was = was.Name()
		}
		all = append(all, o)
	}
	renamed := map[rollout.Ref]bool{}
	for ref, now := range after {
		was, ok := before[ref]
		switch {
		case ok:
			add(ref, was, now, "changed")
		default:
			was := generatedBefore(ref, before, after)
			if was == nil {
				add(ref, nil, now, "added")
				continue
			}
			renamed[was.Ref()] = true
			add(ref, was, now, "changed")
		}
	}
	for ref, was := range before {
		if after[ref] == nil && !renamed[ref] {
			add(ref, was, nil, "removed")
		}
	}
	slices.SortFunc(all, func(x, y Object) int { return x.Object.Compare(y.Object) })
	return all
}

func byRef(r *rollout.Render) map[rollout.Ref]rollout.Object {
	all := map[rollout.Ref]rollout.Object{}
	if r == nil {
		return all
	}
	for _, o := range r.Objects {
		all[o.Ref()] = o
	}
	return all
}

// generatedBefore finds what a generated ConfigMap or Secret was called before:
// the only one that has gone and has the same name without its hash.
func generatedBefore(ref rollout.Ref, before, after map[rollout.Ref]rollout.Object) rollout.Object {
	if !isData(ref) || !generatedSuffix.MatchString(ref.Name) {
		return nil
	}
	stem := func(name string) string { return generatedSuffix.ReplaceAllString(name, "") }
	var found rollout.Object
	for other, o := range before {
		if after[other] != nil || other.Kind != ref.Kind || other.Group != ref.Group || other.Namespace != ref.Namespace ||
			!generatedSuffix.MatchString(other.Name) || stem(other.Name) != stem(ref.Name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = o
	}
	return found
}

func isData(ref rollout.Ref) bool {
	return ref.Group == "" && (ref.Kind == "ConfigMap" || ref.Kind == "Secret")
}

// textOf is the difference of one object as a unified diff, "" if there is none.
func textOf(ref rollout.Ref, was, now rollout.Object) string {
	if ref.Group == "" && ref.Kind == "Secret" {
		was, now = mask(was, now)
	}
	oldName, newName := "base/"+ref.String(), "head/"+ref.String()
	if was != nil {
		oldName = "base/" + was.Ref().String()
	}
	text := string(diff.Diff(oldName, document(was), newName, document(now)))
	if _, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(text, "diff ") {
		text = rest // the two names follow
	}
	return text
}

func document(o rollout.Object) []byte {
	if o == nil {
		return nil
	}
	data, err := yaml.Marshal(o)
	if err != nil { // what came out of YAML goes back into it
		return []byte(err.Error() + "\n")
	}
	return data
}

// secretFields are the fields of a Secret that hold values.
var secretFields = []string{"data", "stringData"}

// mask replaces the values of a Secret by stars that tell only whether they
// differ. An annotation may hold the whole object, so values of these are
// replaced, too.
func mask(was, now rollout.Object) (maskedWas, maskedNow rollout.Object) {
	return hide(was, now, "before"), hide(now, was, "after")
}

func hide(o, other rollout.Object, changed string) rollout.Object {
	if o == nil {
		return nil
	}
	o = o.Copy()
	delete(o.Map("metadata", "annotations"), "kubectl.kubernetes.io/last-applied-configuration")
	for _, field := range secretFields {
		values, others := o.Map(field), map[string]any(nil)
		if other != nil {
			others = other.Map(field)
		}
		if values == nil && o[field] != nil {
			o[field] = "***"
		}
		for key, value := range values {
			values[key] = "***"
			if was, both := others[key]; both && !reflect.DeepEqual(was, value) {
				values[key] = "*** (" + changed + ")"
			}
		}
	}
	return o
}
