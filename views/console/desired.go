package console

import (
	"context"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Desired returns the objects of an app that should be in the cluster now, with gitrollout's label and annotation.
func (w *Session) Desired(ctx context.Context, app rollout.App, in strategies.Input) ([]rollout.Object, error) {
	objects, err := w.gatherer(ctx, in.Head.Render, true, new(error)).Desired(ctx, in, time.Time{})
	if err != nil {
		return nil, err
	}
	return w.marked(app, objects), nil
}

// Wanted returns the desired objects of an app. If the record has no commit yet, it returns the objects at the head.
func (w *Session) Wanted(ctx context.Context, app rollout.App, in strategies.Input) ([]rollout.Object, error) {
	switch {
	case in.State.Source != "":
		return w.Desired(ctx, app, in)
	case in.Head.Err != nil:
		return nil, in.Head.Err
	}
	return w.marked(app, source.Applied(in.Head.Render)), nil
}

func (w *Session) marked(app rollout.App, objects []rollout.Object) []rollout.Object {
	return rollout.Mapped(objects, func(o rollout.Object) rollout.Object {
		o = o.Copy()
		o.Set(app.Name, "metadata", "labels", rollout.LabelApp)
		o.Set(w.Cluster, "metadata", "annotations", rollout.AnnotationCluster)
		return o
	})
}
