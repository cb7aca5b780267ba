package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// origins finds the files with an app's objects.
type origins struct {
	fs   *treeFS
	file string // the app's kustomization, for errors without another file
}

// invalid returns an error about an object of the app.
func (o origins) invalid(ref rollout.Ref, field, fix, format string, args ...any) error {
	return o.blame(&rollout.InvalidError{Field: field, Msg: fmt.Sprintf(format, args...), Fix: fix}, ref)
}

// blame adds the file of the object to an error; the object is ref unless the error has another. Kustomize could record
// origins only in annotations of the output; this search costs time only for errors.
func (o origins) blame(err error, ref rollout.Ref) error {
	var invalid *rollout.InvalidError
	if !errors.As(err, &invalid) || invalid.File != "" {
		return err
	}
	if invalid.About != (rollout.Ref{}) {
		ref = invalid.About
	}
	invalid.File, _ = o.source(ref)
	invalid.About, invalid.Msg = rollout.Ref{}, invalid.Msg+" ("+shortRef(ref)+")"
	return invalid
}

// source returns the file that most likely holds an object, and its name there; by default the app's kustomization.
// Among documents of the kind it takes the longest name within the object's name, to which kustomize may have added a
// prefix and a suffix.
func (o origins) source(ref rollout.Ref) (file, name string) {
	file = o.file
	for _, candidate := range o.fs.files() {
		docs, err := decodeDocuments(o.fs.blobs[candidate])
		if err != nil {
			continue // data of a generator
		}
		for _, doc := range docs {
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if doc.Decode(&head) != nil || head.Kind != ref.Kind {
				continue
			}
			if n := head.Metadata.Name; strings.Contains(ref.Name, n) && len(n) > len(name) {
				file, name = candidate, n
			}
		}
	}
	return file, name
}

// renamed returns kustomize's new name for a name in an object. Kustomize rewrites references of Kubernetes' own kinds
// but not of Rollouts. A reference that names nothing gets the prefix and the suffix of the object itself.
func (a *assembly) renamed(from rollout.Ref, kind, name string) string {
	if name == "" || a.has(kind, from.Namespace, name) {
		return name
	}
	if full := a.affixed(from, name); a.has(kind, from.Namespace, full) {
		return full
	}
	return name
}

// affixed returns a name with the prefix and the suffix of an object, as far as they are known.
func (o origins) affixed(like rollout.Ref, name string) string {
	_, source := o.source(like)
	if source == "" {
		return name
	}
	prefix, suffix, _ := strings.Cut(like.Name, source)
	return prefix + name + suffix
}

func (a *assembly) has(kind, namespace, name string) bool {
	if kind == "Rollout" {
		return a.document(rollout.Workload{Namespace: namespace, Name: name}) != nil
	}
	return slices.ContainsFunc(a.objects, func(o rollout.Object) bool {
		return o.Kind() == kind && o.Name() == name && o.Namespace() == namespace
	})
}

// resolve replaces the names in a document by kustomize's names.
func (a *assembly) resolve(d *document) error {
	if !d.inline {
		d.workload.Name = a.renamed(d.ref, d.workload.Ref().Kind, d.workload.Name)
	}
	for _, s := range d.services() {
		*s.name = a.renamed(d.ref, "Service", *s.name)
	}
	return a.routersOf(d)
}
