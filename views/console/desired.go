package console

import (
	"context"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Desired returns an app's desired objects with gitrollout's metadata.
func (w *Session) Desired(ctx context.Context, app rollout.App, in strategies.Input) ([]rollout.Object, error) {
	objects, err := w.gatherer(ctx, in.Head.Render, true, new(error)).Desired(ctx, in, time.Time{})
	return w.marked(app, objects), err
}

// WithState returns the objects of "gitrollout render --with-state". The note gives unobserved facts with reasons.
func WithState(ctx context.Context, w *Session, app rollout.App, now time.Time) (
	objects []rollout.Object, note string, err error,
) {
	in, err := w.Input(ctx, app, now)
	switch {
	case err != nil:
		return nil, "", err
	case in.State.Source == "":
		return nil, app.Name + " has no recorded state, so none of its objects should be in the cluster yet", nil
	case in.State.Release != nil && (in.Observed.Workloads == nil || len(in.Observed.Unread) > 0):
		note = strings.TrimSuffix(app.Name+" has a release in flight; without the cluster's pod counts, only the start of "+
			"the release is shown; "+w.Note, "; ")
	}
	objects, err = w.Desired(ctx, app, in)
	return objects, note, err
}

// Wanted returns an app's desired objects or, without a recorded commit, the head's.
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
