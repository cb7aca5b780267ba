package reconciler

import (
	"context"
	"slices"
)

// Part names one part of a pass, for whoever measures or traces passes.
type Part string

// The parts. Decide is of one app and holds the Apply that heals it first;
// Render and Apply are of one app, too.
const (
	PartPass   Part = "pass"
	PartFetch  Part = "fetch"
	PartRender Part = "render"
	PartDecide Part = "decide"
	PartPush   Part = "push"
	PartApply  Part = "apply"
)

// Tracer is told that a part begins, with the app that it is about, "" if it is
// of none. It returns the context for what happens within, and what is to be
// called once when the part is over, with what went wrong. It is called from
// several goroutines.
type Tracer func(ctx context.Context, part Part, app string) (context.Context, func(error))

// begin marks the beginning of a part, which is a sign of life. Without a Tracer it costs nothing.
func (o *Options) begin(ctx context.Context, part Part, app string) (context.Context, func(error)) {
	Beat(ctx)
	if o.Trace == nil {
		return ctx, func(error) {}
	}
	return o.Trace(ctx, part, app)
}

// Tracers tells each of several that are not nil. It is nil if there is none.
func Tracers(all ...Tracer) Tracer {
	all = slices.DeleteFunc(all, func(t Tracer) bool { return t == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return func(ctx context.Context, part Part, app string) (context.Context, func(error)) {
		ends := make([]func(error), len(all))
		for i, t := range all {
			ctx, ends[i] = t(ctx, part, app)
		}
		return ctx, func(err error) {
			for _, end := range ends {
				end(err)
			}
		}
	}
}
