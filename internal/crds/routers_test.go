package crds_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	sigsyaml "sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/crds"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// TestRoutersMakeWhatTheAPIServerTakes checks that the API server accepts each object of the routers' test cases, both before and after
// traffic.Overlay. In a release, the API server would silently drop an unknown field, and an invalid object would stop the release.
func TestRoutersMakeWhatTheAPIServerTakes(t *testing.T) {
	w := newWorld(t)
	files, err := filepath.Glob("../../traffic/testdata/*/*.txtar")
	if err != nil || len(files) < 100 {
		t.Fatalf("found %d test cases of routers (%v): have they moved?", len(files), err)
	}
	asked := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		must(t, err)
		if len(objectsOf(t, file, archive, "after.yaml")) == 0 {
			continue // the router refuses this case
		}
		for _, section := range []string{"before.yaml", "after.yaml"} {
			for _, object := range objectsOf(t, file, archive, section) {
				asked++
				if err := w.dryRun(t, object); err != nil {
					t.Errorf("%s: %s: %s %s: %v", strings.TrimPrefix(file, "../../"), section, object.GetKind(), object.GetName(), err)
				}
			}
		}
	}
	t.Logf("asked about %d objects", asked)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a cluster with the kinds of all routers.
type world struct {
	client    dynamic.Interface
	kinds     meta.RESTMapper
	namespace string
}

func newWorld(t *testing.T) world {
	t.Helper()
	c := testcluster.Shared(t)
	crds.Apply(t, c.Config, crds.GatewayAPI, crds.Istio, crds.Traefik, crds.OldTraefik, crds.Documented)
	config := rest.CopyConfig(c.Config)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	known, err := restmapper.GetAPIGroupResources(c.Kube.Discovery())
	must(t, err)
	return world{client: client, kinds: restmapper.NewDiscoveryRESTMapper(known), namespace: c.Namespace(t)}
}

// dryRun applies an object as gitrollout does, but as a dry run in which unknown fields are errors.
func (w world) dryRun(t *testing.T, object *unstructured.Unstructured) error {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := w.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	object.SetNamespace(w.namespace)
	raw, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	strict := metav1.PatchOptions{FieldManager: "gitrollout", Force: new(true), DryRun: []string{metav1.DryRunAll},
		FieldValidation: metav1.FieldValidationStrict}
	of := w.client.Resource(mapping.Resource).Namespace(w.namespace)
	_, err = of.Patch(t.Context(), object.GetName(), types.ApplyPatchType, raw, strict)
	return err
}

// TestRoutersRefuseWhatTheAPIServerWouldRefuse tries unusual matches with each router. If the router accepts a match, the API server must
// accept the resulting objects.
func TestRoutersRefuseWhatTheAPIServerWouldRefuse(t *testing.T) {
	w := newWorld(t)
	files, err := filepath.Glob("../../traffic/testdata/*/weight.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("found %d routers (%v): have they moved?", len(files), err)
	}
	for _, file := range append(files, "../../traffic/testdata/gatewayAPI/tcp-grpc.txtar", "../../traffic/testdata/istio/subsets.txtar") {
		kind := filepath.Base(filepath.Dir(file))
		archive, err := txtar.ParseFile(file)
		must(t, err)
		var config any
		var route traffic.Route
		for _, f := range archive.Files {
			switch f.Name {
			case "config.yaml":
				var data []byte
				if data, err = sigsyaml.YAMLToJSON(f.Data); err == nil {
					err = utiljson.Unmarshal(data, &config) // this decoder reads 1 as an integer, like the decoder of an app's documents
				}
			case "route.yaml":
				err = sigsyaml.Unmarshal(f.Data, &route)
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", file, f.Name, err)
			}
		}
		router, err := traffic.Parse(kind, config, nil)
		must(t, err)
		for name, managed := range hard() {
			t.Run(kind+"/"+name, func(t *testing.T) {
				var before []rollout.Object
				for _, o := range objectsOf(t, file, archive, "before.yaml") {
					before = append(before, rollout.Object(o.Object))
				}
				asks := route
				asks.Managed = managed
				for i := range managed { // package render refuses these routes earlier
					if field, _ := traffic.Unsupported(kind, managed[i]); field != "" || managed[i].Mirror != nil && !mirrors(kind) {
						return
					}
				}
				laid := traffic.NewObjects(before)
				if err := traffic.Overlay(laid, []rollout.Router{router}, asks); err != nil {
					var known *rollout.InvalidError
					if !errors.As(err, &known) || known.Fix == "" {
						t.Errorf("refused without a way out: %v", err)
					}
					return
				}
				for _, object := range laid.List() {
					if err := w.dryRun(t, &unstructured.Unstructured{Object: object.Copy()}); err != nil {
						t.Errorf("%s %s: %v", object.Kind(), object.Name(), err)
					}
				}
			})
		}
	}
}

func mirrors(kind string) bool {
	_, why := traffic.Unsupported(kind, rollout.ManagedRoute{Mirror: new(1)})
	return why == ""
}

// hard returns unusual managed routes that an app's documents may contain.
func hard() map[string][]rollout.ManagedRoute {
	one := func(m rollout.Match) []rollout.ManagedRoute {
		return []rollout.ManagedRoute{{Name: rollout.MatchRoute, Matches: []rollout.Match{m}}}
	}
	exact := func(s string) rollout.StringMatch { return rollout.StringMatch{Exact: s} }
	named := func(name string, m rollout.StringMatch) rollout.NamedMatch {
		return rollout.NamedMatch{Name: name, StringMatch: m}
	}
	header := func(name string, m rollout.StringMatch) rollout.Match {
		return rollout.Match{Headers: []rollout.NamedMatch{named(name, m)}}
	}
	parameters := func(all ...rollout.NamedMatch) []rollout.ManagedRoute { return one(rollout.Match{QueryParams: all}) }
	routes := map[string][]rollout.ManagedRoute{
		"quotes":           one(header("X-Staff", exact("a\"b`c'd\\e"))),
		"token":            one(header("!#$%&'*+-.^_`|~", exact("1"))),
		"unicode":          one(header("X-Staff", exact("Zürich 東京"))),
		"spaces":           one(header("X-Staff", rollout.StringMatch{Regex: "a  b"})),
		"long parameter":   parameters(named("a", exact(strings.Repeat("a", 1025)))),
		"long path":        one(rollout.Match{Path: &rollout.StringMatch{Exact: "/" + strings.Repeat("a", 1025)}}),
		"long value":       one(header("X-Staff", exact(strings.Repeat("a", 5000)))),
		"long pattern":     one(header("X-Staff", rollout.StringMatch{Regex: strings.Repeat("a|", 3000) + "b"})),
		"host":             one(header("Host", exact("example.com"))),
		"cookie header":    one(header("Cookie", exact("a=1"))),
		"two cookies":      one(rollout.Match{Cookies: []rollout.NamedMatch{named("a", exact("1")), named("b", exact("1"))}}),
		"twice":            one(rollout.Match{Headers: []rollout.NamedMatch{named("X-A", exact("1")), named("x-a", exact("2"))}}),
		"parameter twice":  parameters(named("a", exact("1")), named("a", exact("2"))),
		"parameter's name": parameters(named("filter[name]", exact("1"))),
		"method":           one(rollout.Match{Method: &rollout.StringMatch{Exact: "PROPFIND"}}),
		"method's prefix":  one(rollout.Match{Method: &rollout.StringMatch{Prefix: "P"}}),
		"path":             one(rollout.Match{Path: &rollout.StringMatch{Exact: "/a%20b/~c;d=e,f"}}),
		"path's prefix":    one(rollout.Match{Path: &rollout.StringMatch{Prefix: "/a/"}}),
		"path's pattern":   one(rollout.Match{Path: &rollout.StringMatch{Regex: "/(a|b)/[0-9]+"}}),
		"all paths":        one(rollout.Match{Path: &rollout.StringMatch{Prefix: "/"}}),
		"address":          one(rollout.Match{Source: &rollout.StringMatch{Exact: "2001:db8::1"}}),
		"network":          one(rollout.Match{Source: &rollout.StringMatch{Prefix: "2001:db8::/32"}}),
		"mirror":           {{Name: "copies", Mirror: new(10), Matches: []rollout.Match{{}}}},
		"mirror of none":   {{Name: "copies", Mirror: new(0), Matches: []rollout.Match{{Path: &rollout.StringMatch{Prefix: "/"}}}}},
		"all at once": one(rollout.Match{
			Headers: []rollout.NamedMatch{named("X-A", rollout.StringMatch{Prefix: "a"})},
			Cookies: []rollout.NamedMatch{named("b", exact("1"))},
			Path:    &rollout.StringMatch{Prefix: "/a"}, Method: &rollout.StringMatch{Exact: "GET"},
		}),
		"long name": {{Name: strings.Repeat("a", 40), Matches: []rollout.Match{header("X-Staff", exact("1"))}}},
	}
	var headers []rollout.NamedMatch
	var matches []rollout.Match
	for i := range 70 {
		name := fmt.Sprintf("X-%d", i)
		headers, matches = append(headers, named(name, exact("1"))), append(matches, header(name, exact("1")))
	}
	routes["many headers"], routes["many parameters"] = one(rollout.Match{Headers: headers[:17]}), parameters(headers[:17]...)
	routes["many matches"] = []rollout.ManagedRoute{{Name: "staff", Matches: matches}}
	for i := range 20 {
		routes["many routes"] = append(routes["many routes"], rollout.ManagedRoute{Name: fmt.Sprintf("staff-%d", i), Matches: matches[:7]})
	}
	return routes
}

func objectsOf(t *testing.T, file string, archive *txtar.Archive, name string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, f := range archive.Files {
		if f.Name != name {
			continue
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(f.Data), 1<<16)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", file, name, err)
			}
			if object.Object != nil {
				all = append(all, object)
			}
		}
	}
	return all
}
