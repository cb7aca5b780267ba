package main

import (
	"context"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// outlets hand on what the loop reports: to the forge, to people, as Events, and to whoever else is there before the
// first pass.
type outlets struct {
	forge    forgeReader
	notifier notifier
	client   *cluster.Client
	others   []func(reconciler.Report)
	tracers  []reconciler.Tracer

	mu     sync.Mutex
	head   string // that the notifier was told last
	config *rollout.Config
}

// forgeReader shows on a forge what was recorded. Both methods return at once.
type forgeReader interface {
	Show(forge rollout.Forge, transitions []rollout.Transition)
	Resume(forge rollout.Forge, transitions []rollout.Transition, branches []string)
}

// notifier tells people what the state branch records. It is told where the branch is and what the configuration asks
// for whenever either changes, and of each commit that this process makes, and returns at once.
type notifier interface {
	Notify(config *rollout.Config, head string, made *rollout.Recorded)
}

// tell is reconciler.Options'.
func (o *outlets) tell(r reconciler.Report) {
	o.notify(r)
	if s := r.Forge; s != nil && s.Resume {
		o.forge.Resume(s.Forge, s.Transitions, s.Branches)
	} else if s != nil {
		o.forge.Show(s.Forge, s.Transitions)
	}
	for _, a := range r.Apps {
		if a.Happened {
			o.record(a)
		}
	}
	for _, app := range r.Gone {
		o.client.Forget(app)
	}
	for _, tell := range o.others {
		tell(r)
	}
}

func (o *outlets) notify(r reconciler.Report) {
	if o.notifier == nil || r.Config == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Commit != nil || r.Head != o.head || r.Config != o.config {
		o.head, o.config = r.Head, r.Config
		o.notifier.Notify(r.Config, r.Head, r.Commit)
	}
}

// eventPatience bounds how long an Event may take: no pass waits for one for longer.
const eventPatience = 5 * time.Second

// record leaves a note on each workload of a transition, for kubectl describe.
func (o *outlets) record(a reconciler.App) {
	ctx, cancel := context.WithTimeout(context.Background(), eventPatience)
	defer cancel()
	reason, warning := a.Note()
	kind := cluster.Normal
	if warning {
		kind = cluster.Warning
	}
	in := a.Input
	in.State = a.Decision.State
	for _, w := range source.Workloads(in) {
		if _, exists := in.Observed.Workloads[w]; exists {
			o.client.Record(ctx, w.Ref(), kind, reason, "Reconcile", a.Decision.Subject)
		}
	}
}

// trace is reconciler.Options'.
func (o *outlets) trace(ctx context.Context, part reconciler.Part, app string) (context.Context, func(error)) {
	if all := reconciler.Tracers(o.tracers...); all != nil {
		return all(ctx, part, app)
	}
	return ctx, func(error) {}
}
