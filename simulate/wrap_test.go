package simulate

import (
	"context"
	"slices"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// starting is a process before its start, when a world or a mutation may replace the process's parts.
type starting struct {
	*Process
	*reconciler.Options
	u *universe
}

// wrap is a function that replaces parts of a process before the process starts.
type wrap func(starting)

// apply is a function that replaces the method Apply of a process's reconciler.Applier.
type apply func(ctx context.Context, p starting, app string, objects []rollout.Object) error

type applier struct {
	*View
	p     starting
	apply apply
}

func (a applier) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	return a.apply(ctx, a.p, app, objects)
}

// applies returns a wrap that replaces a process's method Apply by the function apply.
func applies(apply apply) wrap {
	return func(p starting) { p.Applier = applier{p.View, p, apply} }
}

// writes returns a wrap that writes a changed copy of each object.
func writes(change func(p starting, app string, o rollout.Object)) wrap {
	return applies(func(ctx context.Context, p starting, app string, objects []rollout.Object) error {
		objects = rollout.Mapped(objects, rollout.Object.Copy)
		for _, o := range objects {
			change(p, app, o)
		}
		return p.View.Apply(ctx, app, objects)
	})
}

// evict is a function that replaces the method Evict of a process's reconciler.Applier.
type evict func(ctx context.Context, p starting, namespace string, pod rollout.Pod) error

type evicter struct {
	*View
	p     starting
	evict evict
}

func (e evicter) Evict(ctx context.Context, namespace string, pod rollout.Pod) error {
	return e.evict(ctx, e.p, namespace, pod)
}

// evicts returns a wrap that replaces a process's method Evict by the function evict.
func evicts(evict evict) wrap {
	return func(p starting) { p.Applier = evicter{p.View, p, evict} }
}

type observer struct {
	reconciler.Observer
	p      starting
	change func(p starting, app string, seen *rollout.Observed)
}

func (o observer) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	seen := o.Observer.Observe(app, workloads, routes)
	o.change(o.p, app, &seen)
	return seen
}

// observes returns a wrap that changes each result of a process's method Observe.
func observes(change func(p starting, app string, seen *rollout.Observed)) wrap {
	return func(p starting) { p.Observer = observer{p.Observer, p, change} }
}

// observesEach returns a wrap that changes a copy of each workload in the results of a process's method Observe.
func observesEach(change func(p starting, app string, live *rollout.ObservedWorkload)) wrap {
	return observes(func(p starting, app string, seen *rollout.Observed) {
		for w, live := range seen.Workloads {
			live.Revisions = slices.Clone(live.Revisions)
			change(p, app, &live)
			seen.Workloads[w] = live
		}
	})
}

type bender struct {
	reconciler.Renderer
	p      starting
	change func(p starting, app string, r *rollout.Render)
}

func (b bender) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	made, err := b.Renderer.Render(tree, app, commit)
	if err != nil {
		return nil, err
	}
	out := *made
	out.Objects, out.Specs = slices.Clone(made.Objects), slices.Clone(made.Specs)
	b.change(b.p, app.Name, &out)
	return &out, nil
}

// renders returns a wrap that changes a copy of each render.
func renders(change func(p starting, app string, r *rollout.Render)) wrap {
	return func(p starting) { p.Renderer = bender{p.Renderer, p, change} }
}

// bendSpecs returns a wrap that changes a copy of each Rollout spec in the renders.
func bendSpecs(change func(*rollout.Spec)) wrap {
	return renders(func(_ starting, _ string, r *rollout.Render) {
		for i := range r.Specs {
			s := &r.Specs[i]
			if s.Canary != nil {
				c := *s.Canary
				c.Steps = slices.Clone(c.Steps)
				s.Canary = &c
			} else {
				b := *s.BlueGreen
				s.BlueGreen = &b
			}
			change(s)
		}
	})
}
