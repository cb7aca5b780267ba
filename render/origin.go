package render

import (
	"errors"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// invalid makes an error about an object of the app.
func (a *assembly) invalid(ref rollout.Ref, field, fix, format string, args ...any) error {
	return a.blame(&rollout.InvalidError{Field: field, Msg: fmt.Sprintf(format, args...) + " (" + shortRef(ref) + ")", Fix: fix}, ref)
}

// blame fills in the file that an object comes from. Kustomize would tell only
// by adding annotations to the output; looking for it costs nothing until
// something is wrong.
func (a *assembly) blame(err error, ref rollout.Ref) error {
	var invalid *rollout.InvalidError
	if !errors.As(err, &invalid) || invalid.File != "" {
		return err
	}
	invalid.File = a.origin(ref)
	return invalid
}

// origin returns the file that most likely holds an object: the one with its
// kind and its name or, as names get prefixes, the longest part of its name. It
// falls back to the app's kustomization.
func (a *assembly) origin(ref rollout.Ref) string {
	best, longest := a.file, 0
	for _, file := range a.fs.files() {
		docs, err := decodeDocuments(a.fs.blobs[file])
		if err != nil {
			continue
		}
		for _, doc := range docs {
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if doc.Decode(&head) != nil || head.Kind != ref.Kind || head.Metadata.Name == "" {
				continue
			}
			if name := head.Metadata.Name; strings.Contains(ref.Name, name) && len(name) > longest {
				best, longest = file, len(name)
			}
		}
	}
	return best
}
