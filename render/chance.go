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

// A chart may make a password by chance. Where that shows, the app is built a second time with other results of such
// functions, and all that differs must be values of Secrets that are made once (rollout.AnnotationCreateOnly). Those
// are drawn in a third build. What goes into ids and is compared is the same at each render: that the Secret is to be
// there.

// byChance are the places of the Secrets whose values are to be drawn. An object of which more than that is for chance
// to say is an InvalidError.
func (o origins) byChance(app rollout.App, objects []rollout.Object) ([]int, error) {
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
	var drawn []int
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

// madeOnce refuses the annotation where it means nothing.
func (o origins) madeOnce(object rollout.Object) error {
	once := object.Annotation(rollout.AnnotationCreateOnly)
	invalid := &rollout.InvalidError{Field: "metadata.annotations[" + rollout.AnnotationCreateOnly + "]"}
	switch {
	case once == "" || object.CreateOnly():
		return nil
	case !object.IsSecret():
		invalid.Msg = fmt.Sprintf("is on a %s, and Secrets alone are made once", object.Kind())
		invalid.Fix = "take it out, and write what the object is to be"
	default:
		invalid.Msg = fmt.Sprintf("is %q, and true is all that it may be", once)
		invalid.Fix = `write "true", or take it out`
	}
	return o.blame(invalid, object.Ref())
}

// blameChance is the error about an object that would be another at each render, which kustomize may have given a
// longer name.
func (o origins) blameChance(object rollout.Object) error {
	for _, c := range o.fs.chances {
		if c.Kind == object.Kind() && strings.Contains(object.Name(), c.Name) && !object.CreateOnly() {
			return c.Why
		}
	}
	invalid := &rollout.InvalidError{Msg: "would be another at each render",
		Fix: "look for functions such as randAlphaNum and now in the templates, and give their results by values"}
	if object.CreateOnly() {
		invalid.Msg = "has more than values of data and stringData that would be others at each render"
		invalid.Fix = "give it a fixed name, type, labels and annotations"
	}
	return o.blame(invalid, object.Ref())
}

// withoutValues is a Secret but for what it keeps.
func withoutValues(o rollout.Object) rollout.Object {
	out := maps.Clone(o)
	for _, field := range valueFields {
		delete(out, field)
	}
	return out
}

// draw puts drawn values into the objects at some places. The error tells nothing of what was drawn.
func (b InProcess) draw(a *assembly, objects []rollout.Object, at []int) error {
	if len(at) == 0 {
		return nil
	}
	drawn, err := again(a.fs, a.app, func(fs *treeFS) {
		fs.draw = chart.Drawn
		b.unlocks(fs, a.app)
	})
	for _, i := range at {
		if err != nil || len(drawn) != len(objects) || drawn[i].Ref() != objects[i].Ref() {
			return a.invalid(objects[i].Ref(), "", "look at it with helm template, or give its values",
				"cannot be made with values by chance, as Helm would make it")
		}
		for _, field := range valueFields {
			if delete(objects[i], field); drawn[i][field] != nil {
				objects[i][field] = drawn[i][field]
			}
		}
		a.warn("Secret %s: what it holds is drawn by chance when it is made, and is in the cluster alone", objects[i].Name())
	}
	return nil
}
