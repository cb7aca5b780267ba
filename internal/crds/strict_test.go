package crds_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/doctor"
)

// sampler makes objects with all fields of a kind. It numbers the mappings from 0; n is the next number. It adds an unknown field to the
// mappings in the range [from, to).
type sampler struct{ from, to, n int }

func (s *sampler) mapping(fields map[string]any) map[string]any {
	if s.from <= s.n && s.n < s.to {
		name := "unknownField"
		for _, known := range slices.Sorted(maps.Keys(fields)) {
			// A known field's name in another case is also unknown.
			if other := strings.ToUpper(known[:1]) + known[1:]; s.n%2 == 1 && fields[other] == nil && fields["apiVersion"] == nil {
				name = other
				break
			}
		}
		fields[name] = "a"
	}
	s.n++
	return fields
}

// ofType returns a value of a Go type, or nil if the type has an UnmarshalJSON method or contains itself.
func (s *sampler) ofType(t reflect.Type, within ...reflect.Type) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Name() {
	case "Time", "MicroTime":
		return "2026-11-29T07:00:00.000000Z"
	case "Duration":
		return "1s"
	case "Quantity":
		return "1"
	}
	if _, readsItself := reflect.New(t).Interface().(json.Unmarshaler); readsItself || slices.Contains(within, t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		fields := map[string]any{}
		for _, f := range rollout.Fields(t) {
			if f.Name == "status" {
				continue // Git has no statuses
			}
			if v := s.ofType(f.Type, append(slices.Clip(within), t)...); v != nil {
				fields[f.Name] = v
			}
		}
		return s.mapping(fields)
	case reflect.Map:
		return map[string]any{"a": s.ofType(t.Elem(), within...)}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "YQ=="
		}
		return []any{s.ofType(t.Elem(), within...)}
	case reflect.String:
		return "a"
	case reflect.Bool:
		return true
	default:
		return int64(1)
	}
}

// bySchema returns a value for a schema in a CRD, or nil if the schema allows several types.
func (s *sampler) bySchema(of map[string]any) any {
	switch of["type"] {
	case "object":
		fields := map[string]any{}
		properties, _ := of["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			child, _ := properties[name].(map[string]any)
			if name == "status" {
				continue
			}
			if v := s.bySchema(child); v != nil {
				fields[name] = v
			}
		}
		more, isMap := of["additionalProperties"].(map[string]any)
		switch {
		case isMap:
			fields["a"] = s.bySchema(more)
			return fields
		case of["x-kubernetes-preserve-unknown-fields"] == true:
			return fields
		}
		return s.mapping(fields)
	case "array":
		items, _ := of["items"].(map[string]any)
		return []any{s.bySchema(items)}
	case "string":
		return "a"
	case "boolean":
		return true
	case "integer", "number":
		return int64(1)
	}
	return nil
}

// definitions returns the CRDs of four kinds, and their schemas by kind and version.
func (w world) definitions(t *testing.T) (definitions []rollout.Object, schemas map[schema.GroupVersionKind]map[string]any) {
	t.Helper()
	list, err := w.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	schemas = map[schema.GroupVersionKind]map[string]any{}
	for _, item := range list.Items {
		crd := rollout.Object(item.Object)
		group, _ := crd.Map("spec")["group"].(string)
		kind, _ := crd.Map("spec", "names")["kind"].(string)
		if !slices.Contains([]string{"HTTPRoute", "VirtualService", "IngressRoute", "TraefikService"}, kind) {
			continue
		}
		versions, _ := crd.Map("spec")["versions"].([]any)
		for _, v := range versions {
			version := rollout.Object(v.(map[string]any))
			name, _ := version["name"].(string)
			schemas[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] = version.Map("schema", "openAPIV3Schema")
		}
		definitions = append(definitions, crd)
	}
	return definitions, schemas
}

// atOnce limits the unknown fields of an object, because the length of validate's message is limited.
const atOnce = 15

// TestStrictAsTheServer adds unknown fields to objects of each kind that the API server serves. `gitrollout validate` must refuse the same
// fields as a dry-run create with strict field validation.
func TestStrictAsTheServer(t *testing.T) {
	w := newWorld(t)
	definitions, schemas := w.definitions(t)
	strict := render.Strict([]*rollout.Render{{Objects: definitions}})
	tree, err := worktree.Open(t.TempDir())
	must(t, err)
	_, served, err := testcluster.Shared(t).Kube.Discovery().ServerGroupsAndResources()
	must(t, err)
	kinds, fields := 0, 0
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, resource := range list.APIResources {
			gvk := version.WithKind(resource.Kind)
			typed, err := scheme.Scheme.New(gvk)
			isTyped, of := err == nil, schemas[gvk]
			if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "create") || !isTyped && of == nil {
				continue // a subresource, an APIService, or a kind of another test
			}
			kinds++
			for from, more := 0, true; more; from += atOnce {
				s := &sampler{from: from, to: from + atOnce}
				var object rollout.Object
				if isTyped {
					object = s.ofType(reflect.TypeOf(typed)).(map[string]any)
				} else {
					object = s.bySchema(of).(map[string]any)
				}
				more = s.n > from+atOnce
				object["apiVersion"], object["kind"] = version.String(), resource.Kind
				if object["metadata"] == nil {
					object["metadata"] = map[string]any{}
				}
				object.Map("metadata")["name"] = "a"
				want := w.refused(t, version, resource, object, `unknown field "([^"]+)"`)
				fields += len(want)
				got := ours(strict(tree, &rollout.Render{Objects: []rollout.Object{object}}))
				compare.CheckNamed(t, fmt.Sprint(gvk, " from mapping ", from), want, got)
			}
		}
	}
	t.Logf("%d unknown fields in %d kinds", fields, kinds)
	if kinds < 50 || fields < 1000 {
		t.Errorf("compared only %d unknown fields in %d kinds", fields, kinds)
	}
}

// refused creates an object in a dry run with strict field validation. It returns the sorted fields that the API server refuses.
func (w world) refused(t *testing.T, version schema.GroupVersion, of metav1.APIResource, object any, pattern string) []string {
	t.Helper()
	body, isText := object.([]byte)
	if !isText {
		var err error
		body, err = json.Marshal(object)
		must(t, err)
	}
	path := "/apis/" + version.String()
	if version.Group == "" {
		path = "/api/" + version.Version
	}
	if of.Namespaced {
		path += "/namespaces/" + w.namespace
	}
	err := testcluster.Shared(t).Kube.Discovery().RESTClient().Post().AbsPath(path+"/"+of.Name).Param("dryRun", metav1.DryRunAll).
		Param("fieldValidation", metav1.FieldValidationStrict).SetHeader("Content-Type", "application/json").Body(body).
		Do(t.Context()).Error()
	var fields []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(fmt.Sprint(err), -1) {
		fields = append(fields, m[1])
	}
	if fields == nil {
		t.Fatalf("%s %s: the API server refuses no field: %v", version, of.Name, err)
	}
	slices.Sort(fields)
	return fields
}

// ours returns the sorted fields that an error of render.Strict names as unknown. If err also has other errors, it adds their whole texts.
func ours(err error) []string {
	var fields []string
	if err == nil {
		return nil
	}
	for text := range strings.SplitSeq(err.Error(), "; also ") {
		place, _, isUnknown := strings.Cut(text, ": is not a field of ")
		if isUnknown {
			text = place[strings.LastIndex(place, " ")+1:]
		}
		fields = append(fields, text)
	}
	slices.Sort(fields)
	return fields
}

// TestDuplicatesAsTheServer checks Deployments that each have one field twice. Strict field validation of the API server refuses this
// field. The error of `gitrollout validate` names the line of the second value.
func TestDuplicatesAsTheServer(t *testing.T) {
	w := newWorld(t)
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	typed, err := scheme.Scheme.New(gvk)
	must(t, err)
	object := rollout.Object((&sampler{}).ofType(reflect.TypeOf(typed)).(map[string]any))
	object["apiVersion"], object["kind"] = "apps/v1", "Deployment"
	text, err := json.MarshalIndent(object, "", "  ")
	must(t, err)
	lines, field := strings.Split(string(text), "\n"), regexp.MustCompile(`^ *"(\w+)": ("[^"]*"|\w+),?$`)
	files := fstest.MapFS{".gitrollout/prod/config.yaml": {Data: []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\n" +
		"apps: [{path: 'apps/*', namespace: shop}]\n")}}
	want := map[string]string{} // a part of the error, by app
	for i := 0; i < len(lines); i += 20 {
		m := field.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		doubled := strings.Join(slices.Insert(slices.Clone(lines), i, strings.TrimSuffix(lines[i], ",")+","), "\n")
		refused := w.refused(t, gvk.GroupVersion(), metav1.APIResource{Name: "deployments", Namespaced: true}, []byte(doubled),
			`duplicate field "([^"]+)"`)
		name := refused[len(refused)-1]
		compare.CheckNamed(t, "the field that is refused as a duplicate", m[1], name[strings.LastIndex(name, ".")+1:])
		app := fmt.Sprint("line-", i)
		want[app] = fmt.Sprintf("line %d: the key %s is listed twice", i+2, m[1])
		files["apps/"+app+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [app.yaml]\n")}
		files["apps/"+app+"/app.yaml"] = &fstest.MapFile{Data: []byte(doubled)}
	}
	dir := t.TempDir()
	must(t, os.CopyFS(dir, files))
	tree, err := worktree.Open(dir)
	must(t, err)
	report, err := doctor.Check(tree, "prod", "gitrollout", nil, render.New(render.InProcess{}), nil)
	must(t, err)
	if len(report.Apps) != len(want) || len(want) < 20 {
		t.Errorf("%d apps are checked, and %d fields were doubled", len(report.Apps), len(want))
	}
	for _, app := range report.Apps {
		compare.Contains(t, fmt.Sprint(app.Error), want[app.App])
	}
}
