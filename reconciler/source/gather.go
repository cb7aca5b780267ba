package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// Gatherer collects a decision's input.
type Gatherer struct {
	// RenderAt returns an error that wraps ErrNotReady until the render is done.
	RenderAt func(ctx context.Context, app rollout.App, commit string) (*rollout.Render, error)
	// Observe is reconciler.Observer's Observe, or nil for an empty observation.
	Observe func(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed
	// Know is called before Observe, with the kinds of workloads that only some clusters serve. May be nil.
	Know func(kinds []rollout.Partitioned)
}

// ErrNotReady means a fetch or render of a commit is not done.
var ErrNotReady = errors.New("is still being read")

// Gather returns an app's decision input. It observes the cluster last, because reading commits takes time. While the
// recorded commit is being read, the error wraps ErrNotReady, and only Source is missing. If that commit is
// unavailable, Source and the error are nil, and the app follows the head.
func (g Gatherer) Gather(ctx context.Context, a App, now time.Time) (in strategies.Input, err error) {
	in = strategies.Input{
		Now: now, App: a.State.Named(a.App), Head: a.Head, State: a.State, Promotion: a.Promotion, Calendar: a.Calendar,
		Entry: a.Entry, Place: a.Place, Stage: a.Stage,
	}
	if a.State.Source != "" {
		in.Source, err = g.RenderAt(ctx, in.App, a.State.Source)
	}
	if !errors.Is(err, ErrNotReady) {
		err = nil
	}
	if a.Barred != nil && (in.Source == nil || in.Source.Digest != a.Head.Render.Digest) {
		in.Head.Render, in.Head.Err = nil, a.Barred
	}
	left, w := a.State.Release, a.State.Watch
	if w != nil {
		left = &w.Former
	}
	if left != nil && (w != nil || a.State.Phase == rollout.Aborting) {
		var unread error
		in.Left, unread = g.RenderAt(ctx, in.App, left.Commit)
		in.Unread = errors.Is(unread, ErrNotReady)
	}
	g.Look(&in)
	return in, err
}

// Look observes the cluster again.
func (g Gatherer) Look(in *strategies.Input) {
	if kinds := rollout.Partitioneds(in.Head.Render, in.Source); g.Know != nil && len(kinds) > 0 {
		g.Know(kinds)
	}
	if g.Observe != nil {
		in.Observed = g.Observe(in.App.Name, Workloads(*in), routesOf(*in))
	}
}

// Desired returns an app's desired objects. "applied" is the time when the present routes were applied.
func (g Gatherer) Desired(ctx context.Context, in strategies.Input, applied time.Time) ([]rollout.Object, error) {
	s := in.State
	source, err := g.RenderAt(ctx, in.App, s.Source)
	if err != nil {
		return nil, fmt.Errorf("the app's commit %s: %w", rollout.ShortID(s.Source), err)
	}
	view := workloads.View{Now: in.Now, Applied: applied, Source: source, Observed: in.Observed}
	switch {
	case !strategies.NeedsStable(s, view):
	case s.Stable != nil && source.Release() == s.Stable.Hash:
		view.Stable = source
	default:
		if view.Stable, err = g.RenderAt(ctx, in.App, s.Stable.Commit); err != nil {
			return nil, fmt.Errorf("the stable commit %s: %w", rollout.ShortID(s.Stable.Commit), err)
		}
	}
	return strategies.Desired(s, view)
}

// Workloads returns the app's sorted workloads in Git and in its record.
func Workloads(in strategies.Input) []rollout.Workload {
	all := in.State.Workloads()
	if in.Head.Render != nil {
		all = slices.AppendSeq(all, maps.Keys(in.Head.Render.Templates))
	}
	slices.SortFunc(all, rollout.Workload.Compare)
	return slices.Compact(all)
}

func routesOf(in strategies.Input) []rollout.Ref {
	if r := cmp.Or(in.Head.Render, in.Source); r != nil {
		return strategies.Watched(r)
	}
	return nil
}
