package crds

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"gitrollout.dev/gitrollout/internal/testbin"
)

// Files returns the paths of the set's files, in the module cache or in this package, so that a test can read schemas without a cluster.
func (s Set) Files() ([]string, error) {
	root, err := testbin.Root()
	if err != nil {
		return nil, err
	}
	dir := root
	if s.module != "" {
		if dir, err = testbin.Module(cmp.Or(s.of, "internal/traefik"), s.module); err != nil {
			return nil, err
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(s.files)))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no %s", dir, s.files)
	}
	return files, err
}

// read returns the set's definitions. It skips other objects in the files.
func (s Set) read() ([]*unstructured.Unstructured, error) {
	files, err := s.Files()
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		// Kubernetes 1.30 lacks the CEL function isIP. Only a rule for a TLSRoute's hostnames calls isIP, so the call
		// is replaced.
		found, err := documents(bytes.ReplaceAll(data, []byte("!isIP(h)"), []byte("true")))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%v: no CustomResourceDefinition", files)
	}
	for _, definition := range all {
		if s.group != "" {
			plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
			definition.SetName(plural + "." + s.group)
			if err := unstructured.SetNestedField(definition.Object, s.group, "spec", "group"); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func documents(data []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 1<<20)
	for {
		var object map[string]any
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case object["kind"] != "CustomResourceDefinition":
			continue
		}
		// The status belongs to a controller and is not part of the request.
		delete(object, "status")
		all = append(all, &unstructured.Unstructured{Object: object})
	}
}
