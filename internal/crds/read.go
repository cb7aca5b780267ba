package crds

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"gitrollout.dev/gitrollout/internal/testbin"
)

// Files returns the set's files in the module cache, for what reads the schemas
// without a cluster.
func (s Set) Files() ([]string, error) {
	root, err := testbin.Root()
	if err != nil {
		return nil, err
	}
	// Downloaded first: go list leaves the folder of a module empty that is not there.
	var dir string
	for _, args := range [][]string{{"mod", "download", s.module}, {"list", "-m", "-f", "{{.Dir}}", s.module}} {
		command := exec.Command("go", args...)
		command.Dir = filepath.Join(root, "internal", "traefik")
		var complaint bytes.Buffer
		command.Stderr = &complaint
		out, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(complaint.Bytes()))
		}
		dir = strings.TrimSpace(string(out))
	}
	files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(s.files)))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("module %s has no %s", s.module, s.files)
	}
	return files, err
}

// read returns the set's definitions. Other objects in the files are left out.
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
		found, err := documents(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%v: no CustomResourceDefinition", files)
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
		// What a controller has written is no part of what is asked for.
		delete(object, "status")
		all = append(all, &unstructured.Unstructured{Object: object})
	}
}
