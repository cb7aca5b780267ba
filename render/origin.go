package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

type origins struct {
	fs   *treeFS
	file string // the app's kustomization, named in errors that have no other file
}

func (o origins) invalid(ref rollout.Ref, field, fix, format string, args ...any) error {
	return o.blame(&rollout.InvalidError{Field: field, Msg: fmt.Sprintf(format, args...), Fix: fix}, ref)
}

// blame adds to an error the file that defines the object. The error's field About says which object; if it is
// empty, ref does. blame searches all files, because kustomize records origins only in annotations.
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

// source returns the file that most likely defines ref, and the object's name in that file. Kustomize may have added a
// prefix or suffix. So source looks for objects of ref's kind whose name is part of ref's name, and picks the longest.
func (o origins) source(ref rollout.Ref) (file, name string) {
	file = o.file
	for _, candidate := range o.fs.files() {
		docs, err := decodeDocuments(o.fs.blobs[candidate])
		if err != nil {
			continue // probably data of a generator
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

// renamed returns the name that kustomize gave to an object. Kustomize does not rewrite names in a Rollout or scaler.
// The parameter from is the Rollout or scaler with the old name. renamed also tries the prefix and suffix of from.
func (a *assembly) renamed(from rollout.Ref, kind, name string) string {
	if name == "" || a.has(kind, from.Namespace, name) {
		return name
	}
	if full := a.affixed(from, name); a.has(kind, from.Namespace, full) {
		return full
	}
	return name
}

// affixed returns a name with the same prefix and suffix that kustomize has added to the name of the object like.
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

// resolve replaces the names in a document with the names that kustomize gave to the objects.
func (a *assembly) resolve(d *document) error {
	if !d.inline {
		d.workload.Name = a.renamed(d.ref, d.workload.Ref().Kind, d.workload.Name)
	}
	for _, s := range d.services() {
		*s.name = a.renamed(d.ref, "Service", *s.name)
	}
	return a.routersOf(d)
}
