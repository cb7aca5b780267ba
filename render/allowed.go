package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// Violations holds the objects that an app's configuration entry does not allow.
type Violations struct {
	Namespaces       []string // sorted
	ClusterResources []string // kinds as in the configuration, sorted

	First *rollout.Ref
	own   *rollout.Ref // an object in gitrollout's own namespace, or nil
}

// BeyondOf returns the objects that the app's entry does not allow. No entry allows objects in gitrollout's own
// namespace. A kind of unknown scope counts as namespaced until the API server gives the scope.
func BeyondOf(r *rollout.Render, own string) (b Violations) {
	inBuild := definitions(r.Objects)
	schema.mu.RLock() // kustomize's table of scopes is enough; the parsed schema would take 4 MB
	defer schema.mu.RUnlock()
	for _, o := range r.Objects {
		b.look(r.App, o, isNamespaced(o, inBuild), own)
	}
	b.Namespaces, b.ClusterResources = distinct(b.Namespaces), distinct(b.ClusterResources)
	return b
}

func (b *Violations) look(app rollout.App, o rollout.Object, namespaced bool, own string) {
	ref := o.Ref()
	namespace := ref.Namespace
	if !namespaced {
		if !app.MayHave(ref.GroupKind()) {
			b.ClusterResources = append(b.ClusterResources, ref.GroupKind())
			b.First = cmp.Or(b.First, &ref)
		}
		if ref.Group != "" || ref.Kind != "Namespace" {
			return
		}
		namespace = ref.Name // access to a Namespace counts as access to its objects
	}
	switch {
	case app.MayWriteIn(namespace, own):
		return
	case namespace == own:
		b.own = &ref
	default:
		b.Namespaces = append(b.Namespaces, namespace)
	}
	b.First = cmp.Or(b.First, &ref)
}

// Add adds another app's violations of the same configuration entry.
func (b *Violations) Add(o Violations) {
	b.Namespaces = distinct(slices.Concat(b.Namespaces, o.Namespaces))
	b.ClusterResources = distinct(slices.Concat(b.ClusterResources, o.ClusterResources))
}

// Lines returns the entry's YAML fields that would allow the objects.
func (b Violations) Lines(namespaces, clusterResources []string) (lines []string) {
	line := func(field string, has, more []string) {
		if len(more) > 0 {
			all := rollout.Mapped(slices.Concat(has, more), Quoted)
			lines = append(lines, field+": ["+strings.Join(all, ", ")+"]")
		}
	}
	line("namespaces", namespaces, b.Namespaces)
	line("clusterResources", clusterResources, b.ClusterResources)
	return lines
}

// Quoted returns a text as a YAML scalar, in quotes if needed.
func Quoted(text string) string {
	data, err := yaml.Marshal(text)
	if err != nil {
		return text
	}
	return strings.TrimSpace(string(data))
}

// Allow returns an InvalidError (Forbidden) if the app's entry in the configuration file does not allow an object.
// Callers check only new commits, so that rollbacks stay allowed.
func Allow(tree rollout.Tree, r *rollout.Render, config, own string) error {
	b := BeyondOf(r, own)
	if b.First == nil {
		return nil
	}
	ref := *b.First
	invalid := &rollout.InvalidError{Reason: rollout.HeldForbidden, Field: "metadata.namespace"}
	switch {
	case b.own != nil:
		ref = *b.own
		invalid.Msg = fmt.Sprintf("is in namespace %s, which belongs to gitrollout and to no app", own)
		invalid.Fix = "remove the object from the app, or move it to another namespace"
	case slices.Contains(b.Namespaces, ref.Namespace):
		invalid.Msg = fmt.Sprintf("is in namespace %s, where app %s may not write", ref.Namespace, r.App.Name)
	case slices.Contains(b.ClusterResources, ref.GroupKind()):
		invalid.Field = "kind"
		invalid.Msg = fmt.Sprintf("belongs to no namespace, and app %s may not have any %s", r.App.Name, ref.GroupKind())
	default:
		invalid.Field = "metadata.name"
		invalid.Msg = fmt.Sprintf("is a namespace where app %s may not write", r.App.Name)
	}
	if b.own == nil {
		lines := b.Lines(strings.Fields(r.App.Namespaces), strings.Fields(r.App.ClusterResources))
		invalid.Fix = fmt.Sprintf("to allow the object, add to the app's entry in %s: %s", config, strings.Join(lines, ", "))
	}
	return Blame(tree, r, invalid, ref)
}

// Reach returns an InvalidError (Forbidden) if --namespaces is set, and an object is cluster-scoped or in an unlisted
// namespace.
func Reach(tree rollout.Tree, r *rollout.Render, namespaces []string) (err error) {
	inBuild := definitions(r.Objects)
	schema.mu.RLock()
	defer schema.mu.RUnlock()
	for _, o := range r.Objects {
		invalid := &rollout.InvalidError{Reason: rollout.HeldForbidden, Field: "metadata.namespace",
			Fix: "remove the object, or add its namespace to --namespaces; without this flag, all namespaces are managed"}
		switch {
		case len(namespaces) == 0 || err != nil || slices.Contains(namespaces, o.Namespace()):
			continue
		case !isNamespaced(o, inBuild):
			invalid.Field, invalid.Msg = "kind", "is cluster-scoped, but gitrollout runs with --namespaces"
		default:
			invalid.Msg = fmt.Sprintf("is in namespace %s, which --namespaces leaves out", o.Namespace())
		}
		err = Blame(tree, r, invalid, o.Ref())
	}
	return err
}

// Blame sets an error's file to the file that defines the object.
func Blame(tree rollout.Tree, r *rollout.Render, invalid *rollout.InvalidError, ref rollout.Ref) error {
	o, err := originsOf(tree, r)
	if err != nil {
		return err
	}
	return o.blame(invalid, ref)
}

func originsOf(tree rollout.Tree, r *rollout.Render) (origins, error) {
	fs := newTreeFS(tree)
	for _, name := range r.Files {
		entry, found, err := tree.Lookup(name)
		if err != nil {
			return origins{}, err
		}
		if !found {
			continue
		}
		if fs.blobs[name], err = tree.ReadBlob(entry.ID); err != nil {
			return origins{}, err
		}
	}
	return origins{fs, fs.kustomizationIn(r.App.Path, r.App.Path)}, nil
}

func distinct(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}
