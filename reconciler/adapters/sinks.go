package adapters

import (
	"context"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// Sinks passes each report to the forge, the notifier, Kubernetes Events and the functions in Others.
type Sinks struct {
	Forge    ForgeReader
	Notifier Notifier // nil disables notifications
	Client   *cluster.Client
	Others   []func(report.Report)
	Tracers  []report.Tracer

	mu     sync.Mutex
	head   string
	config *rollout.Config
}

// ForgeReader publishes recorded transitions on a forge. Its methods do not block.
type ForgeReader interface {
	Show(forge rollout.Forge, transitions []rollout.ForgeUpdate)
	Resume(forge rollout.Forge, transitions []rollout.ForgeUpdate, branches []string)
}

// Notifier notifies users. Notify is called after a change of the configuration or the state branch's head, and does
// not block. "made" is the new commit if this process made it, or else nil.
type Notifier interface {
	Notify(config *rollout.Config, head string, made *rollout.StateCommit)
}

// Tell is the callback of reconciler.Options.
func (o *Sinks) Tell(r report.Report) {
	o.notify(r)
	if s := r.Forge; s != nil && s.Resume {
		o.Forge.Resume(s.Forge, s.Updates, s.Branches)
	} else if s != nil {
		o.Forge.Show(s.Forge, s.Updates)
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

func (o *Sinks) notify(r report.Report) {
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

const eventPatience = 5 * time.Second

func (o *Sinks) record(a report.App) {
	ctx, cancel := context.WithTimeout(context.Background(), eventPatience)
	defer cancel()
	reason, warning := a.Note()
	kind := map[bool]cluster.EventKind{true: cluster.Warning, false: cluster.Normal}[warning]
	in := a.Input
	in.State = a.Decision.State
	for _, w := range source.Workloads(in) {
		if _, exists := in.Observed.Workloads[w]; exists {
			o.Client.Record(ctx, w.Ref(), kind, reason, "Reconcile", a.Decision.Subject)
		}
	}
}

// Trace is the callback of reconciler.Options. Each tracer gets the previous tracer's context.
func (o *Sinks) Trace(ctx context.Context, part report.Part, app string) (context.Context, func(error)) {
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
