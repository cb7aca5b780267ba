package edge

import (
	"context"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// Outlets hand on what the loop reports: to the forge, to people, as Events, and to whoever else is there before the
// first pass.
type Outlets struct {
	Forge    ForgeReader
	Notifier Notifier // nil for nobody
	Client   *cluster.Client
	Others   []func(report.Report)
	Tracers  []report.Tracer

	mu     sync.Mutex
	head   string // that the notifier was told last
	config *rollout.Config
}

// ForgeReader shows on a forge what was recorded. Both methods return at once.
type ForgeReader interface {
	Show(forge rollout.Forge, transitions []rollout.Transition)
	Resume(forge rollout.Forge, transitions []rollout.Transition, branches []string)
}

// Notifier tells people what the state branch records. It is told where the branch is and what the configuration asks
// for whenever either changes, and of each commit that this process makes, and returns at once.
type Notifier interface {
	Notify(config *rollout.Config, head string, made *rollout.Recorded)
}

// Tell is reconciler.Options'.
func (o *Outlets) Tell(r report.Report) {
	o.notify(r)
	if s := r.Forge; s != nil && s.Resume {
		o.Forge.Resume(s.Forge, s.Transitions, s.Branches)
	} else if s != nil {
		o.Forge.Show(s.Forge, s.Transitions)
	}
	for _, a := range r.Apps {
		if a.Happened {
			o.record(a)
		}
	}
	for _, app := range r.Gone {
		o.Client.Forget(app)
	}
	for _, tell := range o.Others {
		tell(r)
	}
}

func (o *Outlets) notify(r report.Report) {
	if o.Notifier == nil || r.Config == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Commit != nil || r.Head != o.head || r.Config != o.config {
		o.head, o.config = r.Head, r.Config
		o.Notifier.Notify(r.Config, r.Head, r.Commit)
	}
}

// eventPatience bounds how long an Event may take: no pass waits for one for longer.
const eventPatience = 5 * time.Second

// record leaves a note on each workload of a transition, for kubectl describe.
func (o *Outlets) record(a report.App) {
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
			o.Client.Record(ctx, w.Ref(), kind, reason, "Reconcile", a.Decision.Subject)
		}
	}
}

// Trace is reconciler.Options': each tracer is told, in the context of the one before it.
func (o *Outlets) Trace(ctx context.Context, part report.Part, app string) (context.Context, func(error)) {
	ends := make([]func(error), len(o.Tracers))
	for i, trace := range o.Tracers {
		ctx, ends[i] = trace(ctx, part, app)
	}
	return ctx, func(err error) {
		for _, end := range ends {
			end(err)
		}
	}
}
