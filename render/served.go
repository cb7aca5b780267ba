package render

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtime "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"

	"gitrollout.dev/gitrollout/rollout"
)

// fieldTable has a line "TYPE.FIELD MINOR KEYS" for each field that Kubernetes 1.25 lacks, and for each list with keys.
//
//go:embed fields.txt
var fieldTable string

type fieldFact struct {
	since int      // minor version that added the field; 0: 25 or earlier
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
// call it; for the reconciler, the API server decides.
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
		return // the version's Go types may be missing
	}
	slices.SortFunc(versions, func(a, b runtime.GroupVersion) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version) // v2, v1, v2beta1
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

// ofAnyKind has the fields that a schema may omit.
var ofAnyKind = []string{"apiVersion", "kind", "metadata"}

var jsonTypes = map[reflect.Kind]string{reflect.Map: "object", reflect.Slice: "array", reflect.String: "string",
	reflect.Bool: "boolean", reflect.Int64: "integer", reflect.Float64: "number"}

// follow reads a value by its schema in a CRD, without rules such as enum and required.
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
