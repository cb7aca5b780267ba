package render

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/render/chart"
	"gitrollout.dev/gitrollout/rollout"
)

// If an app's chart calls random functions, two builds use different constants as the functions' results. Between the
// builds, only values of create-only Secrets (rollout.AnnotationCreateOnly) may differ. A third build draws random
// values for these Secrets. Digests and comparisons omit the values (rollout.Object.Told).

func (o origins) byChance(app rollout.App, objects []rollout.Object) (drawn []int, err error) {
	for _, object := range objects {
		if err := o.madeOnce(object); err != nil {
			return nil, err
		}
	}
	if len(o.fs.chances) == 0 {
		return nil, nil
	}
	first := o.fs.chances[0].Why
	if !slices.ContainsFunc(objects, rollout.Object.CreateOnly) {
		return nil, first
	}
	others, err := again(o.fs, app, func(fs *treeFS) { fs.draw = chart.Other })
	if err != nil || len(others) != len(objects) {
		return nil, first
	}
	for i, object := range objects {
		switch {
		case reflect.DeepEqual(object, others[i]):
		case !object.CreateOnly() || !reflect.DeepEqual(withoutValues(object), withoutValues(others[i])):
			return nil, o.blameChance(object)
		default:
			drawn = append(drawn, i)
		}
	}
	return drawn, nil
}

func (o origins) madeOnce(object rollout.Object) error {
	once := object.Annotation(rollout.AnnotationCreateOnly)
	invalid := &rollout.InvalidError{Field: "metadata.annotations[" + rollout.AnnotationCreateOnly + "]"}
	switch {
	case once == "" || object.CreateOnly():
		return nil
	case !object.IsSecret():
		invalid.Msg = fmt.Sprintf("is on a %s, but only a Secret can be create-only", object.Kind())
		invalid.Fix = "remove the annotation, and write the object's content"
	default:
		invalid.Msg, invalid.Fix = fmt.Sprintf("is %q, but only true is allowed", once), `write "true", or take it out`
	}
	return o.blame(invalid, object.Ref())
}

// blameChance compares parts of names, because kustomize may have added a prefix or suffix.
func (o origins) blameChance(object rollout.Object) error {
	for _, c := range o.fs.chances {
		if c.Kind == object.Kind() && strings.Contains(object.Name(), c.Name) && !object.CreateOnly() {
			return c.Why
		}
	}
	invalid := &rollout.InvalidError{Msg: "would differ at each render",
		Fix: "look in the templates for the functions randAlphaNum, now and the like, and set their results in the values"}
	if object.CreateOnly() {
		invalid.Msg = "would differ at each render, not only in the values of data and stringData"
		invalid.Fix = "give it a fixed name, type, labels and annotations"
	}
	return o.blame(invalid, object.Ref())
}

func withoutValues(o rollout.Object) rollout.Object {
	out := maps.Clone(o)
	for _, field := range valueFields {
		delete(out, field)
	}
	return out
}

func (b InProcess) draw(a *assembly, objects []rollout.Object, at []int) error {
	if len(at) == 0 {
		return nil
	}
	drawn, err := again(a.fs, a.App, func(fs *treeFS) {
		fs.draw = chart.Drawn
		b.unlocks(fs, a.App)
	})
	for _, i := range at {
		if err != nil || len(drawn) != len(objects) || drawn[i].Ref() != objects[i].Ref() {
			return a.invalid(objects[i].Ref(), "", "commit the output of helm template, or set its values",
				"cannot be created: rendering with random values failed")
		}
		for _, field := range valueFields {
			if delete(objects[i], field); drawn[i][field] != nil {
				objects[i][field] = drawn[i][field]
			}
		}
		a.warn("Secret %s: its content is generated at random when the Secret is created, and exists only in the cluster",
			objects[i].Name())
	}
	return nil
}
