package crds_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"gitrollout.dev/gitrollout/internal/crds"
	"gitrollout.dev/gitrollout/internal/testcluster"
)

// TestRoutersMakeWhatTheAPIServerTakes asks the API server about each object of
// the routers' test cases, as it was before a release and as the overlay makes
// it. A field that a kind does not have would be dropped without a word, and an
// object that is refused would hold the release.
func TestRoutersMakeWhatTheAPIServerTakes(t *testing.T) {
	c := testcluster.Shared(t)
	crds.Apply(t, c.Config, crds.GatewayAPI, crds.Istio, crds.Traefik, crds.OldTraefik, crds.Documented)
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	known, err := restmapper.GetAPIGroupResources(c.Kube.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	kinds := restmapper.NewDiscoveryRESTMapper(known)
	files, err := filepath.Glob("../../traffic/testdata/*/*.txtar")
	if err != nil || len(files) < 100 {
		t.Fatalf("found %d test cases of routers (%v): have they moved?", len(files), err)
	}
	namespace, asked := c.Namespace(t), 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(objectsOf(t, file, archive, "after.yaml")) == 0 {
			continue // the case is refused by us
		}
		for _, section := range []string{"before.yaml", "after.yaml"} {
			for _, object := range objectsOf(t, file, archive, section) {
				asked++
				if err := dryRun(t, client, kinds, namespace, object); err != nil {
					t.Errorf("%s: %s: %s %s: %v", strings.TrimPrefix(file, "../../"), section, object.GetKind(), object.GetName(), err)
				}
			}
		}
	}
	t.Logf("asked about %d objects", asked)
}

// dryRun applies an object as gitrollout does, and stricter: unknown fields are
// errors.
func dryRun(t *testing.T, client dynamic.Interface, kinds meta.RESTMapper, namespace string, object *unstructured.Unstructured) error {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	object.SetNamespace(namespace)
	raw, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = client.Resource(mapping.Resource).Namespace(namespace).Patch(t.Context(), object.GetName(), types.ApplyPatchType, raw,
		metav1.PatchOptions{FieldManager: "gitrollout", Force: new(true), DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
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
