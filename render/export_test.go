package render

import (
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"gitrollout.dev/gitrollout/rollout"
)

// Package render_test uses these names to compare builds with kustomize's builds, and to test parts of a render.

// OnlyInSecrets is the problem of an encrypted value outside a Secret.
const OnlyInSecrets = onlyInSecrets

// BuildYAML builds as the kustomize command does: it keeps Rollout documents among the objects, and adds no namespaces.
func BuildYAML(tree rollout.Tree, dir string) ([]byte, []rollout.Object, error) {
	fs := newTreeFS(tree)
	p, err := inspect(fs, rollout.App{Path: dir, Namespace: "default"})
	if err != nil {
		return nil, nil, err
	}
	built, err := buildMap(fs, dir, p)
	if err != nil {
		return nil, nil, err
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, nil, err
	}
	objects, err := decode(fs, built, &p, nil)
	return text, objects, err
}

// OnDisk runs the kustomize library on a checkout, with the options of the kustomize command. Callers set own if the kustomization changes
// kustomize's global OpenAPI schema, because such a build must run alone.
func OnDisk(dir string, own bool) (out []byte, err error) {
	run := func() {
		built, runErr := krusty.MakeKustomizer(options()).Run(filesys.MakeFsOnDisk(), dir)
		if err = runErr; err == nil {
			out, err = built.AsYaml()
		}
	}
	if own {
		schema.alone(run)
	} else {
		schema.shared(run)
	}
	return out, err
}

// BuildAlone resets the schema before and after a build.
func BuildAlone(tree rollout.Tree, dir string) (err error) {
	schema.alone(func() {
		built, runErr := krusty.MakeKustomizer(options()).Run(newTreeFS(tree), mount+"/"+dir)
		openapi.ResetOpenAPI()
		if err = runErr; err == nil {
			_, err = built.AsYaml()
		}
	})
	return err
}

var (
	DecodeObject = decodeObject // decodes a printed object
	WithNames    = withNames    // names hooks without a name
	NewClosure   = newClosure   // makes a Closure without a build
	MarkOf       = markOf       // returns the part of a path's entry that builds read
)

func Each(o rollout.Object, f func(at, text string)) { each(o, f) } // visits the texts of an object

// DocumentForm lists the fields of a Rollout document.
type DocumentForm = documentForm

// Closure lists the paths that a build has looked up.
type Closure = closure

// Holds compares the paths with another commit.
func (c *closure) Holds(tree rollout.Tree) (bool, error) { return c.holds(tree, c.name) }

// Folder returns the lowest folder that contains all paths.
func (c *closure) Folder() string { return c.name }

// Cached returns how many renders of an app, and how many apps, are cached.
func (r *Renderer) Cached(app string) (renders, apps int) { return len(r.cache[app]), len(r.cache) }
