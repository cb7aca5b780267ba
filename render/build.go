package render

import (
	"fmt"
	"path"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// schema guards kustomize's global OpenAPI schema. A build with an "openapi:" field replaces the schema and runs alone.
var schema schemaGuard

type schemaGuard struct {
	mu     sync.RWMutex
	parsed bool
}

func (g *schemaGuard) shared(f func()) {
	for {
		g.mu.RLock()
		if g.parsed {
			break
		}
		g.mu.RUnlock()
		g.mu.Lock()
		if !g.parsed {
			// Parsing writes maps that builds read without a lock.
			openapi.ResetOpenAPI()
			openapi.SchemaForResourceType(kyaml.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"})
			g.parsed = true
		}
		g.mu.Unlock()
	}
	defer g.mu.RUnlock()
	f()
}

func (g *schemaGuard) alone(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	openapi.ResetOpenAPI()
	g.parsed = false
	defer openapi.ResetOpenAPI()
	f()
}

// decode reads JSON, which keeps kustomize's scalars.
func decode(fs *treeFS, built resmap.ResMap, p *plan, v variables) ([]rollout.Object, error) {
	objects, size := make([]rollout.Object, 0, built.Size()), 0
	for _, resource := range built.Resources() {
		raw, err := resource.MarshalJSON()
		if err != nil {
			return nil, reduce(fs, p.file, fmt.Errorf("%s/%s: %w", resource.GetKind(), resource.GetName(), err))
		}
		if size += len(raw); size > maxOutput {
			return nil, tooLarge(p.file)
		}
		object, err := decodeObject(raw)
		if err != nil {
			return nil, reduce(fs, p.file, err)
		}
		var warnings []string
		if object, warnings, err = v.into(object, raw); err != nil {
			return nil, err
		}
		p.warnings = append(p.warnings, warnings...)
		objects = append(objects, object)
	}
	return objects, nil
}

func buildMap(fs *treeFS, dir string, p plan) (built resmap.ResMap, err error) {
	run := func() {
		defer func() {
			if cause := recover(); cause != nil {
				built, err = nil, fmt.Errorf("kustomize panics: %v", cause)
			}
		}()
		built, err = krusty.MakeKustomizer(options()).Run(fs, path.Join(mount, dir))
	}
	if p.openAPI {
		schema.alone(run)
	} else {
		schema.shared(run)
	}
	switch {
	case fs.failed != nil:
		return nil, fs.failed
	case fs.refused != nil:
		return nil, fs.refused
	case err != nil:
		return nil, reduce(fs, p.file, err)
	}
	return built, nil
}

// options returns the kustomize command's options: no plugins, no Helm, only files below the kustomization. The
// library's default order differs from the command's (legacy).
func options() *krusty.Options {
	o := krusty.MakeDefaultOptions()
	o.Reorder = krusty.ReorderOptionUnspecified
	return o
}

func decodeObject(raw []byte) (rollout.Object, error) {
	object, err := rollout.FromJSON[map[string]any](raw)
	if err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	return object, nil
}
