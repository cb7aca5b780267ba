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
	file string // the app's kustomization, for errors without another file
}

func (o origins) invalid(ref rollout.Ref, field, fix, format string, args ...any) error {
	return o.blame(&rollout.InvalidError{Field: field, Msg: fmt.Sprintf(format, args...), Fix: fix}, ref)
}

// blame adds an object's file to an error: ref's, unless the error has another. Kustomize records origins only in
// annotations; this search costs time only for errors.
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

// source returns the file that most likely holds an object, and its name there, else the app's kustomization. Of
// documents of the kind it takes the longest name within the object's, which kustomize may have extended.
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

// renamed returns kustomize's name for one in an object, as kustomize rewrites no references of Rollouts. One to
// nothing gets the object's own prefix and suffix.
func (a *assembly) renamed(from rollout.Ref, kind, name string) string {
	if name == "" || a.has(kind, from.Namespace, name) {
		return name
	}
	if full := a.affixed(from, name); a.has(kind, from.Namespace, full) {
		return full
	}
	return name
}

// affixed returns a name with an object's known prefix and suffix.
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

// resolve replaces a document's names by kustomize's.
func (a *assembly) resolve(d *document) error {
	if !d.inline {
		d.workload.Name = a.renamed(d.ref, d.workload.Ref().Kind, d.workload.Name)
	}
	for _, s := range d.services() {
		*s.name = a.renamed(d.ref, "Service", *s.name)
	}
	return a.routersOf(d)
}
