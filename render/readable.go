package render

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtime "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"

	"gitrollout.dev/gitrollout/rollout"
)

// newest is the newest known minor version of Kubernetes. In later versions, unknown fields are allowed.
const newest = 36

// checkReadable refuses built-in objects that no API server can decode, such as "memory: 12x". Without this check, the
// API server's error would look temporary.
func (a *assembly) checkReadable() error {
	return a.readAll(a.Objects, func(r *typeReader, object rollout.Object) {
		if d, _ := rollout.Find(a.documents, func(d *document) bool { return d.workload.Ref() == r.ref }); d != nil {
			r.ref = originOf(d)
		}
		r.minor = max(newest, minorOf(a.App))
		r.readBuiltIn(object)
	})
}

func minorOf(app rollout.App) int {
	minor := newest
	_, _ = fmt.Sscanf(strings.TrimPrefix(app.Kubernetes, "v"), "1.%d", &minor) // ParseConfig has checked the version
	return minor
}

func (o origins) readAll(objects []rollout.Object, read func(*typeReader, rollout.Object)) error {
	var refused *rollout.InvalidError
	for _, object := range objects {
		r := typeReader{ref: object.Ref()}
		r.Place = func(e *rollout.InvalidError) {
			e.File, _, e.Line = o.source(r.ref, e.Field)
			e.Msg += " (" + shortRef(r.ref) + ")"
		}
		read(&r, object)
		refused = refused.And(r.Err)
	}
	if refused == nil {
		return nil
	}
	return refused
}

var kindsByGroup = func() map[string][]string {
	out := map[string][]string{ownGroup: {"Rollout"}, argoGroup: {"Rollout", "AnalysisTemplate"},
		"apiextensions.k8s.io": {"CustomResourceDefinition"}, "apiregistration.k8s.io": {"APIService"}}
	for group, kinds := range clusterScoped {
		out[group] = append(out[group], kinds...)
	}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		out[gvk.Group] = append(out[gvk.Group], gvk.Kind)
	}
	return out
}()

// checkSpelling refuses misspelt kinds and versions. Otherwise, the app would wait forever for a CRD.
func (o origins) checkSpelling(object rollout.Object) error {
	ref, lower, version := object.Ref(), strings.ToLower(object.Kind()), object.APIVersion()
	_, name, _ := strings.Cut(version, "/")
	known, isKnown := rollout.Find(kindsByGroup[ref.Group], func(k string) bool { return strings.EqualFold(k, ref.Kind) })
	switch {
	case version != strings.ToLower(version):
		return o.invalid(ref, "apiVersion", "write "+strings.ToLower(version), "%q has capital letters", version)
	case ref.Group != "" && len(content.IsDNS1123Subdomain(ref.Group)) > 0,
		len(content.IsDNS1123Label(cmp.Or(name, version))) > 0:
		return o.invalid(ref, "apiVersion", "write it as in apps/v1", "%q is not a group and version", version)
	case isKnown && known != ref.Kind:
		return o.invalid(ref, "kind", "write "+known, "%q must be written %s: kinds are case-sensitive", ref.Kind, known)
	case len(content.IsDNS1123Label(lower)) > 0:
		return o.invalid(ref, "kind", "write it as in Deployment", "%q is not a valid kind", ref.Kind)
	case !isKnown && scheme.Scheme.IsGroupRegistered(ref.Group):
		kinds := slices.Sorted(slices.Values(kindsByGroup[ref.Group]))
		if near := rollout.DidYouMean(ref.Kind, slices.Compact(kinds)); near != "" {
			return o.invalid(ref, "kind", near, "%q is not a kind of %s in Kubernetes 1.%d", ref.Kind, version, newest)
		}
	}
	return nil
}

type typeReader struct {
	rollout.Reader
	ref   rollout.Ref
	minor int
}

func (r *typeReader) readBuiltIn(object rollout.Object) bool {
	typed, err := scheme.Scheme.New(runtime.FromAPIVersionAndKind(object.APIVersion(), object.Kind()))
	if err == nil {
		r.read("", reflect.TypeOf(typed), appliedFields(object))
	}
	return err == nil
}

func appliedFields(object rollout.Object) map[string]any {
	fields := maps.Clone(object)
	delete(fields, "status")
	return fields
}

func (r *typeReader) read(at string, t reflect.Type, v any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	kind := t.Kind()
	if _, readsItself := reflect.New(t).Interface().(json.Unmarshaler); readsItself {
		kind = reflect.Invalid
	}
	fields, isMapping := v.(map[string]any)
	list, isList := v.([]any)
	switch {
	case v == nil:
	case kind == reflect.Struct && isMapping:
		known := rollout.Fields(t)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			f, is := rollout.Find(known, func(f rollout.Field) bool { return f.Name == name })
			field := strings.TrimPrefix(at+"."+name, ".")
			fact := fieldFacts[strings.TrimPrefix(t.PkgPath(), "k8s.io/")+"."+t.Name()+"."+name]
			switch {
			case is && fact.since > r.minor:
				r.Fail(field, "leave it out"+orVersion, "is not a field of Kubernetes 1.%d, but of 1.%d and later",
					r.minor, fact.since)
			case is:
				r.unique(field, fact.keys, fields[name])
				r.read(field, f.Type, fields[name])
			case r.minor <= newest:
				r.unknown(field, rollout.Mapped(known, func(f rollout.Field) string { return f.Name }),
					fmt.Sprintf("Kubernetes 1.%d", newest))
			}
		}
	case kind == reflect.Map && isMapping:
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			r.read(at+"."+name, t.Elem(), fields[name])
		}
	case kind == reflect.Slice && isList:
		for i, item := range list {
			r.read(fmt.Sprintf("%s[%d]", at, i), t.Elem(), item)
		}
	default:
		data, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(data, reflect.New(t).Interface())
		}
		if err != nil {
			why := otherType.ReplaceAllString(err.Error(), "it is of type $1, and not of type $2$3")
			r.Fail(at, asExplained,
				"%s cannot be read by an API server: %s", shown(r.ref, v), why)
		}
	}
}

func (r *typeReader) unknown(at string, known []string, of string) {
	near := rollout.DidYouMean(at[strings.LastIndex(at, ".")+1:], known)
	r.Fail(at, cmp.Or(near, "leave it out, or write another field"), "is not a field of %s", of)
}

var defaultKeys = map[string]any{"protocol": "TCP"}

// unique refuses list entries with equal keys, as server-side apply does.
func (r *typeReader) unique(at string, keys []string, v any) {
	list, _ := v.([]any)
	seen := map[string]bool{}
	for i, item := range list {
		if len(keys) == 0 {
			return
		}
		field, first, id := fmt.Sprintf("%s[%d]", at, i), item, fmt.Sprint(item)
		if keys[0] != "set" {
			m := asMap(item)
			field, first, id = field+"."+keys[0], m[keys[0]], ""
			for _, key := range keys {
				id += fmt.Sprintf("%v ", cmp.Or(m[key], defaultKeys[key]))
			}
		}
		if first != nil && seen[id] {
			r.Fail(field, "keep one: an API server refuses both", "%s is listed twice", shown(r.ref, first))
		}
		seen[id] = true
	}
}

const asExplained = "write the field as `kubectl explain` describes it"

func shown(ref rollout.Ref, v any) string {
	text, isText := v.(string)
	kind := reflect.ValueOf(v).Kind()
	switch {
	case ref.Kind == "Secret", len(text) > 60, kind == reflect.Map, kind == reflect.Slice:
		return "the value"
	case isText:
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprint(v)
}

var otherType = regexp.MustCompile(`^json: cannot unmarshal (\w+) into Go .* of type (\[\])?(?:\w+\.)?(\S+)$`)

// fieldTable has a line "TYPE.FIELD MINOR KEYS" for each field that Kubernetes 1.25 lacks, and for each list with keys.
//
//go:embed fields.txt
var fieldTable string

type fieldFact struct {
	since int      // minor version that added the field; 0 means 25 or earlier
	keys  []string // keys with unique values, or "set" for unique items
}

var fieldFacts = func() map[string]fieldFact {
	facts := map[string]fieldFact{}
	for line := range strings.Lines(fieldTable) {
		words := strings.Fields(line)
		since, _ := strconv.Atoi(words[1]) // TestFieldTable checks each line
		facts[words[0]] = fieldFact{since, words[2:]}
	}
	return facts
}()

// Strict returns a function that checks objects against kubernetes.version and the rendered CRDs. Only users' commands
// call it, because the reconciler gets the API server's errors.
func Strict(all []*rollout.Render) func(tree rollout.Tree, r *rollout.Render) error {
	schemas, served := map[string]map[string]any{}, map[runtime.GroupKind][]string{}
	for _, r := range all {
		for ref, crd := range r.ByRef() {
			versions, _ := crd.Map("spec")["versions"].([]any)
			for _, v := range versions {
				v, of := asMap(v), defined(crd)
				name := fmt.Sprintf("%s/%v", of.Group, v["name"])
				if ref.Kind == "CustomResourceDefinition" && v["served"] == true {
					schemas[name+of.Kind] = asMap(asMap(v["schema"])["openAPIV3Schema"])
					served[of] = append(served[of], name)
				}
			}
		}
	}
	return func(tree rollout.Tree, r *rollout.Render) error {
		o, err := originsOf(tree, r)
		if err != nil {
			return err
		}
		return o.readAll(r.Objects, func(t *typeReader, object rollout.Object) {
			t.minor = minorOf(r.App)
			t.checkVersion(object)
			schema, has := schemas[object.APIVersion()+t.ref.Kind]
			versions := served[runtime.GroupKind{Group: t.ref.Group, Kind: t.ref.Kind}]
			switch {
			case t.readBuiltIn(object):
			case has:
				fields := appliedFields(object)
				t.read("metadata", reflect.TypeFor[metav1.ObjectMeta](), fields["metadata"])
				maps.DeleteFunc(fields, func(name string, _ any) bool { return slices.Contains(ofAnyKind, name) })
				t.follow("", schema, fields)
			case len(versions) > 0:
				t.Fail("apiVersion", "write "+versions[0], "the CRD of %s does not serve %s", t.ref.Kind, object.APIVersion())
			}
		})
	}
}

func isServed(gvk runtime.GroupVersionKind, minor int) bool {
	typed, err := scheme.Scheme.New(gvk)
	since, until := 0, math.MaxInt
	if t, has := typed.(interface{ APILifecycleIntroduced() (major, minor int) }); has {
		_, since = t.APILifecycleIntroduced()
	}
	if t, has := typed.(interface{ APILifecycleRemoved() (major, minor int) }); has {
		_, until = t.APILifecycleRemoved()
	}
	return err == nil && since <= minor && minor < until
}

func (r *typeReader) checkVersion(object rollout.Object) {
	gvk := runtime.FromAPIVersionAndKind(object.APIVersion(), object.Kind())
	typed, err := scheme.Scheme.New(gvk)
	versions := scheme.Scheme.VersionsForGroupKind(gvk.GroupKind())
	if len(versions) == 0 || isServed(gvk, r.minor) || err != nil && r.minor != newest {
		return // the Go types may lack fields of this version
	}
	slices.SortFunc(versions, func(a, b runtime.GroupVersion) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version) // newest first: v2, v1, v2beta1
	})
	if t, has := typed.(interface {
		APILifecycleReplacement() runtime.GroupVersionKind
	}); has {
		versions = slices.Insert(versions, 0, t.APILifecycleReplacement().GroupVersion())
	}
	fix := "leave the object out"
	isGood := func(v runtime.GroupVersion) bool { return isServed(v.WithKind(gvk.Kind), r.minor) }
	if v, has := rollout.Find(versions, isGood); has {
		fix = "write " + v.String()
	}
	r.Fail("apiVersion", fix+orVersion, "Kubernetes 1.%d does not serve %s of %s", r.minor, gvk.Kind, object.APIVersion())
}

const orVersion = ", or set kubernetes.version to the cluster's version"

var ofAnyKind = []string{"apiVersion", "kind", "metadata"}

var jsonTypes = map[reflect.Kind]string{reflect.Map: "object", reflect.Slice: "array", reflect.String: "string",
	reflect.Bool: "boolean", reflect.Int64: "integer", reflect.Float64: "number"}

// follow checks a value's fields against a CRD's schema. It ignores rules such as enum and required.
func (r *typeReader) follow(at string, schema map[string]any, v any) {
	is, _ := schema["type"].(string)
	has := jsonTypes[reflect.ValueOf(v).Kind()]
	number, _ := v.(float64)
	isNumber := is == "number" && has == "integer" || is == "integer" && has == "number" && number == math.Trunc(number)
	if v != nil && is != "" && has != is && !isNumber {
		r.Fail(at, asExplained, "%s cannot be read by an API server: it is of type %s, and not of type %s",
			shown(r.ref, v), has, is)
		return
	}
	properties := asMap(schema["properties"])
	rest, hasRest := schema["additionalProperties"]
	isOpen := is == "" || schema["x-kubernetes-preserve-unknown-fields"] == true
	isObject := schema["x-kubernetes-embedded-resource"] == true
	for _, name := range slices.Sorted(maps.Keys(asMap(v))) {
		field, value := strings.TrimPrefix(at+"."+name, "."), asMap(v)[name]
		switch child, has := properties[name]; {
		case has:
			r.follow(field, asMap(child), value)
		case hasRest:
			r.follow(field, asMap(rest), value)
		case !isOpen && !(isObject && slices.Contains(ofAnyKind, name)):
			r.unknown(field, slices.Collect(maps.Keys(properties)), "the CRD of "+r.ref.Kind)
		}
	}
	keys, _ := schema["x-kubernetes-list-map-keys"].([]any)
	if schema["x-kubernetes-list-type"] == "set" {
		keys = []any{"set"}
	}
	r.unique(at, rollout.Mapped(keys, func(k any) string { return fmt.Sprint(k) }), v)
	list, _ := v.([]any)
	for i, item := range list {
		r.follow(fmt.Sprintf("%s[%d]", at, i), asMap(schema["items"]), item)
	}
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}
