package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

type applier struct {
	*Options
	preparer
	current func() *gitView
}

// apply applies the objects of a state, if the state names a commit. For a removed app, it acts only during or right
// after a rollback, and omits other apps' objects. If the apply of a rollback fails, applyEach applies rollbackObjects
// one by one.
func (k *applier) apply(
	ctx context.Context, t transition, m *appCache, state rollout.State, now time.Time,
) (err error) {
	isBack := state.Phase == rollout.Aborting || t.before.Phase == rollout.Aborting
	if state.Source == "" || t.app.removed != nil && !isBack {
		return nil
	}
	app := t.app.Name
	ctx, end := k.begin(ctx, report.PartApply, app)
	defer func() { end(err) }()
	objects, rendered, err := k.desired(ctx, &t, m, state, now)
	if err != nil || state.Phase != rollout.Aborting && strategies.RequestedAbort(t.input) != "" {
		return err // an abort is requested, so only a rollback may be applied
	}
	if t.app.removed != nil {
		isTaken := func(o rollout.Object) bool { is, _ := k.isElsewhere(app, o.Ref(), t.view); return is }
		objects = slices.DeleteFunc(slices.Clone(objects), isTaken)
	}
	m.routing.applying(strategies.Routing(state, rendered))
	isLeft := func(o rollout.Object) bool { return strategies.IsLeftToHook(state, o) }
	err = k.Applier.Apply(ctx, app, slices.DeleteFunc(slices.Clone(objects), isLeft))
	isApplied := err == nil || errors.Is(err, rollout.ErrOverwritten)
	if isApplied {
		m.routing.held = strategies.Routing(state, rendered)
	}
	m.fought = nil
	if isApplied && state.Release != nil { // another writer must not stop a release
		m.fought, err = err, nil
	}
	if leftover := strategies.Leftover(state, objects); len(leftover) > 0 {
		_, pruned := k.remove(ctx, t, leftover)
		err = errors.Join(err, pruned)
	}
	if err == nil || state.Phase != rollout.Aborting {
		return err
	}
	routes, _ := strategies.Ahead(rendered, nil) // an earlier pass has reported the error
	return applyEach(ctx, k.Applier, app, rollbackObjects(objects, routes), err)
}

func rollbackObjects(objects, routes []rollout.Object) []rollout.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o rollout.Object) bool {
		isRoute := slices.ContainsFunc(routes, func(route rollout.Object) bool { return route.Ref() == o.Ref() })
		_, runsPods := rollout.WorkloadOf(o.Ref())
		runsPods = runsPods || o.Annotation(rollout.AnnotationHash) != "" // a workload of a kind unknown to WorkloadOf
		return o.Kind() != "Service" && !runsPods && !isRoute
	})
}

// applyEach applies objects in their order, because traffic must move before pods change. It continues after a refused
// object, but not after another error.
func applyEach(ctx context.Context, by Applier, app string, objects []rollout.Object, failed error) error {
	for _, o := range objects {
		err := by.Apply(ctx, app, []rollout.Object{o})
		if err == nil {
			continue
		}
		if err.Error() != failed.Error() {
			failed = errors.Join(failed, err)
		}
		if !rollout.IsInvalid(err) {
			break
		}
	}
	return failed
}

// desired returns the state's objects, and sets t.input to the state and a new observation.
func (k *applier) desired(
	ctx context.Context, t *transition, m *appCache, state rollout.State, now time.Time,
) (objects []rollout.Object, rendered *rollout.Render, err error) {
	t.input.State, t.input.Now = state, now
	if rendered, err = k.renders.render(ctx, t.app.App, state.Source); err != nil {
		return nil, nil, fmt.Errorf("the app's commit %s: %w", rollout.ShortID(state.Source), err)
	}
	k.gatherer(k.renders).Look(&t.input)
	objects, err = k.gatherer(k.renders).Desired(ctx, t.input, m.routing.since(state, rendered, now))
	return objects, rendered, err
}
