package reconciler

import "context"

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
