package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// origins knows in which files the objects of an app are.
type origins struct {
	fs   *treeFS
	file string // the app's kustomization, for what no other file is to blame
}

// invalid makes an error about an object of the app.
func (o origins) invalid(ref rollout.Ref, field, fix, format string, args ...any) error {
	return o.blame(&rollout.InvalidError{Field: field, Msg: fmt.Sprintf(format, args...), Fix: fix}, ref)
}

// blame says in which file the object is that an error is about, which is the one at
// ref unless the error names another. Kustomize would tell only by adding
// annotations to the output; looking for it costs nothing until something is wrong.
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

// source returns the file that most likely holds an object, the app's kustomization if none does, and its name there:
// of the documents of its kind, the one whose name is the longest part of the
// object's name, which kustomize may have given a prefix and a suffix.
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

// renamed returns what kustomize has made of a name that an object refers to. It knows the references of Kubernetes'
// own kinds and rewrites them, but not those of Rollouts: a reference that names nothing gets the prefix and the suffix
// that the object itself has got.
func (a *assembly) renamed(from rollout.Ref, kind, name string) string {
	if name == "" || a.has(kind, from.Namespace, name) {
		return name
	}
	if full := a.affixed(from, name); a.has(kind, from.Namespace, full) {
		return full
	}
	return name
}

// affixed is a name with the prefix and the suffix that an object has got, as far as is known.
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

// resolve replaces the names in a document by those that kustomize made.
func (a *assembly) resolve(d *document) error {
	if !d.inline {
		d.workload.Name = a.renamed(d.ref, d.workload.Ref().Kind, d.workload.Name)
	}
	for _, s := range d.services() {
		*s.name = a.renamed(d.ref, "Service", *s.name)
	}
	return a.routersOf(d)
}
