package render

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

type origins struct {
	fs   *treeFS
	file string // the app's kustomization, used if no file is found
}

func (o origins) invalid(ref rollout.Ref, field, fix, format string, args ...any) error {
	return o.blame(&rollout.InvalidError{Field: field, Msg: fmt.Sprintf(format, args...), Fix: fix}, ref)
}

// blame sets an error's file to the file that defines an object: invalid.About or, if empty, ref. It searches all
// files, because kustomize records origins only in annotations.
func (o origins) blame(err error, ref rollout.Ref) error {
	var invalid *rollout.InvalidError
	if !errors.As(err, &invalid) || invalid.File != "" {
		return err
	}
	if invalid.About != (rollout.Ref{}) {
		ref = invalid.About
	}
	invalid.File, _, _ = o.source(ref, "")
	invalid.About, invalid.Msg = rollout.Ref{}, invalid.Msg+" ("+shortRef(ref)+")"
	return invalid
}

// source returns the file that probably defines an object, the object's name in this file, and the field's line (or 0).
// Kustomize may have added affixes, so source picks the longest name that the object's name contains. Among equal
// names, it picks the document with the field, such as a patch.
func (o origins) source(ref rollout.Ref, field string) (file, name string, line int) {
	file = o.file
	for _, candidate := range o.fs.files() {
		docs := kyaml.NewDecoder(bytes.NewReader(o.fs.blobs[candidate]))
		for doc := new(kyaml.Node); docs.Decode(doc) == nil; doc = new(kyaml.Node) {
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if doc.Decode(&head) != nil || head.Kind != ref.Kind {
				continue
			}
			n, at := head.Metadata.Name, lineOf(doc.Content[0], field)
			isCloser := len(n) > len(name) || len(n) == len(name) && line == 0 && at > 0
			if strings.Contains(ref.Name, n) && isCloser {
				file, name, line = candidate, n, at
			}
		}
	}
	return file, name, line
}

func lineOf(n *kyaml.Node, field string) (line int) {
	if n.Kind == kyaml.AliasNode {
		n = n.Alias
	}
	step := map[kyaml.Kind]int{kyaml.MappingNode: 2, kyaml.SequenceNode: 1}[n.Kind]
	for i := 0; step > 0 && i+step <= len(n.Content) && line == 0; i += step {
		name := fmt.Sprintf("[%d]", i)
		if step == 2 {
			name = n.Content[i].Value
		}
		rest, is := strings.CutPrefix(field, name)
		switch {
		case is && rest == "":
			line = n.Content[i].Line
		case is && strings.ContainsAny(rest[:1], ".["):
			line = lineOf(n.Content[i+step-1], strings.TrimPrefix(rest, "."))
		}
	}
	return line
}

// renamed returns the name that kustomize gave to an object. A Rollout or autoscaler refers to the object by the
// original name.
func (a *assembly) renamed(from rollout.Ref, kind, name string) string {
	if name == "" || a.has(kind, from.Namespace, name) {
		return name
	}
	if full := a.affixed(from, name); a.has(kind, from.Namespace, full) {
		return full
	}
	return name
}

func (o origins) affixed(like rollout.Ref, name string) string {
	_, source, _ := o.source(like, "")
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
	return slices.ContainsFunc(a.Objects, func(o rollout.Object) bool {
		return o.Kind() == kind && o.Name() == name && o.Namespace() == namespace
	})
}

func (a *assembly) resolve(d *document) error {
	if !d.inline {
		d.workload.Name = a.renamed(d.ref, d.workload.Ref().Kind, d.workload.Name)
	}
	for _, s := range d.services() {
		*s.name = a.renamed(d.ref, "Service", *s.name)
	}
	return a.routersOf(d)
}
